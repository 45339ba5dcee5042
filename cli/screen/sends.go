package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"superstep.dev/thread"
)

// countEvery is how often the count of a group of Sends is shown while more of their tasks end.
const countEvery = time.Second

// counted are the groups of Sends under way: the tasks that Sends made of one node for one superstep.
type counted struct {
	groups []*countedGroup
}

type countedGroup struct {
	step, node string
	of, done   int
	took       time.Duration
	shown      int // the count on the screen
	at         time.Time
}

// count takes in a task that a Send made, and reports whether the count tells enough of it. Failures, questions and other
// attempts have lines of their own, as has every task when the screen is verbose.
func (s *Followed) count(p thread.Progress) bool {
	if !p.Send || p.Of == 1 || s.screen.Verbose {
		return false
	}
	g := s.sends.group(placeOf(p), Clean(p.Node))
	if g.at.IsZero() {
		g.at = s.screen.Now()
	}
	g.of = max(g.of, p.Of)
	switch {
	case p.State == thread.ProgressStarted && p.Attempt <= 1:
		return true
	case p.State != thread.ProgressOK:
		return false
	}
	g.done++
	g.took = max(g.took, p.Duration)
	if now := s.screen.Now(); g.done == g.of || now.Sub(g.at) >= countEvery {
		s.endMessage()
		g.at = now
		s.showGroup(g)
	}
	return true
}

func (c *counted) group(step, node string) *countedGroup {
	at := slices.IndexFunc(c.groups, func(g *countedGroup) bool { return g.step == step && g.node == node })
	if at < 0 {
		c.groups = append(c.groups, &countedGroup{step: step, node: node})
		at = len(c.groups) - 1
	}
	return c.groups[at]
}

// showCounted shows each count that is not on the screen yet: a line of something else comes next. Whole groups are forgotten.
func (s *Followed) showCounted() {
	for _, g := range s.sends.groups {
		s.showGroup(g)
	}
	s.sends.groups = slices.DeleteFunc(s.sends.groups, func(g *countedGroup) bool { return g.of > 0 && g.done >= g.of })
}

func (s *Followed) showGroup(g *countedGroup) {
	if g.done == g.shown {
		return
	}
	g.shown = g.done
	count := fmt.Sprint(g.done)
	if g.of > 0 {
		count += fmt.Sprintf("/%d", g.of)
	}
	head := s.head(g.step, g.node+" "+count)
	state := fmt.Sprintf("%-*s", stateWidth, fmt.Sprintf("ok%6s", Duration(g.took)))
	s.screen.Printf("%s\n", strings.TrimRight(head+s.screen.Status(state), " "))
}
