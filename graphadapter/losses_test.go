package graphadapter

import (
	"testing"
	"time"
)

// worker is a process in which activities run until one kills it. Every activity is given to it again when it is back; how
// they come in changes from life to life.
type tenant struct {
	kills   bool
	needs   int // lives in which it may run, until it is done; 0 for one that never is
	attempt int32
	losses  Losses
	asked   bool
	done    bool
}

// live is one life of a worker, in which the first of all that are on trial has the turn. It reports whether it was killed.
func live(all []*tenant, first int) (killed bool) {
	busy := false
	var ran []*tenant
	for i := range all {
		m := all[(first+i)%len(all)]
		if m.done || m.asked {
			continue
		}
		m.attempt++
		m.losses = m.losses.Since(m.attempt)
		if m.losses.Counted(m.attempt) >= MostLosses {
			m.asked = true
			continue
		}
		if m.losses.OnTrial(m.attempt) {
			if busy {
				continue // lost, or given back, before it began
			}
			busy, m.losses = true, m.losses.Tried()
		}
		ran = append(ran, m)
		killed = killed || m.kills
	}
	for _, m := range ran {
		if !killed && !m.kills {
			m.needs--
			m.done = m.needs <= 0
			m.losses = m.losses.Ended(m.attempt)
		}
	}
	return killed
}

// TestWhoKillsItsWorkerIsAskedAbout, and nobody else, however many it takes along and in whichever order they come in.
func TestWhoKillsItsWorkerIsAskedAbout(t *testing.T) {
	for _, killers := range []int{1, 3} {
		var all []*tenant
		for i := range 8 {
			all = append(all, &tenant{kills: i < killers, needs: 1})
		}
		lives := 0
		for ; lives < 500; lives++ {
			live(all, lives)
		}
		for i, m := range all {
			if m.kills != m.asked || m.kills == m.done {
				t.Errorf("%d killers: activity %d kills %t: asked %t, done %t, %+v after %d attempts", killers, i, m.kills, m.asked, m.done,
					m.losses, m.attempt)
			}
			if m.kills && m.losses.Trials != MostLosses-freeLosses {
				t.Errorf("%d killers: activity %d was asked about after %d trials", killers, i, m.losses.Trials)
			}
		}
	}
}

func TestLosses(t *testing.T) {
	for _, c := range []struct {
		name    string
		losses  Losses
		attempt int32
		counted int
		trial   bool
	}{
		{"the first", Losses{}, 1, 0, false},
		{"one was lost", Losses{}, 2, 1, false},
		{"three were", Losses{}, 4, 3, true},
		{"and two while they waited for their turn", Losses{}, 6, 3, true},
		{"and one of them on trial", Losses{Trials: 1}, 6, 4, true},
		{"too many on trial", Losses{Trials: 7}, 20, MostLosses, true},
		{"the end of the last is known", Losses{Accounted: 3}, 4, 0, false},
		{"it was reset", Losses{Accounted: 9, Trials: 7}, 1, 0, false},
		{"it came further", Losses{Trials: 5}.Cleared(9), 10, 1, false},
		{"the end of this one is known", Losses{Trials: 5}.Ended(9), 10, 0, false},
	} {
		if got := c.losses.Counted(c.attempt); got != c.counted {
			t.Errorf("%s: %d count, want %d", c.name, got, c.counted)
		}
		if got := c.losses.OnTrial(c.attempt); got != c.trial {
			t.Errorf("%s: on trial %t", c.name, got)
		}
	}
	for ran, want := range map[time.Duration]time.Duration{0: leastTrial, time.Second: leastTrial, time.Minute: 2 * time.Minute} {
		if got := (Losses{}).Ran(ran).Ran(0).TrialTime(); got != want {
			t.Errorf("after %v: %v on trial", ran, got)
		}
	}
}
