package cli

import (
	"fmt"
	"time"
)

// shortDuration shows a duration in at most five characters: 31ms, 1.2s, 45s, 3m05s, 2h07m, 12d.
func shortDuration(d time.Duration) string {
	switch {
	case d < 0:
		return "0ms"
	case d < time.Second-500*time.Microsecond:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d < 10*time.Second-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < time.Minute-500*time.Millisecond:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Hour-500*time.Millisecond:
		d = d.Round(time.Second)
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		d = d.Round(time.Minute)
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
}

// ago shows how long ago t was, "" for no time.
func (a *app) ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	since := a.now().Sub(t)
	if since < time.Second { // or ahead: two machines, two clocks
		return "just now"
	}
	return shortDuration(since) + " ago"
}

// moment shows t on the reader's clock.
func (a *app) moment(t time.Time) string {
	return t.In(a.now().Location()).Format("2006-01-02 15:04:05")
}
