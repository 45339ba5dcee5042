package screen

import (
	"fmt"
	"time"
)

// Duration shows a duration in at most five characters: 31ms, 1.2s, 45s, 3m05s, 2h07m, 12d.
func Duration(d time.Duration) string {
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

// Ago shows how long ago t was, "" for no time.
func (s *Screen) Ago(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	since := s.Now().Sub(t)
	if since < time.Second { // or ahead: two machines, two clocks
		return "just now"
	}
	return Duration(since) + " ago"
}

// Distance shows how far t is from now; "" for no time.
func (s *Screen) Distance(t time.Time) string {
	if left := t.Sub(s.Now()); left > 0 {
		return "in " + Duration(left)
	}
	return s.Ago(t)
}

// Moment shows t on the reader's clock; "" for no time.
func (s *Screen) Moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(s.Now().Location()).Format("2006-01-02 15:04:05")
}

// MomentAgo is Moment, and how long ago that was; "" for no time.
func (s *Screen) MomentAgo(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return s.Moment(t) + ", " + s.Ago(t)
}
