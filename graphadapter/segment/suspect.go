package segment

import (
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// suspects are the tasks that an execution which was lost may have run without a trace.
//
// In sync mode a superstep begins when the one before is durable, so a lost execution was at the first that is not: its
// tasks are those that are ready when the record has been delivered. In async and exit mode it may have been at any
// later one; nobody knows how far it came, so all are suspect, also in segments after this one, up to where the lost
// execution cannot have passed by itself: a question, an end, tasks that are for other workers.
type suspects struct {
	all, lost bool
	tasks     []string
}

func newSuspects(req *Request, repeated bool, ready []*pregel.Task) suspects {
	s := suspects{all: req.Suspect.All, lost: req.Suspect.Lost, tasks: slices.Clone(req.Suspect.Tasks)}
	if !repeated {
		return s
	}
	if req.Durability == graphadapter.DurabilityAsync || req.Durability == graphadapter.DurabilityExit {
		s.all, s.lost = true, true
	}
	for _, t := range ready {
		s.tasks = append(s.tasks, t.Key())
	}
	return s
}

func (s *suspects) has(t *pregel.Task) bool { return s.all || slices.Contains(s.tasks, t.Key()) }

// rest are those that have not been run since.
func (s *suspects) rest(queue []*pregel.Task) Suspicion {
	out := Suspicion{All: s.all, Lost: s.lost}
	for _, t := range queue {
		if slices.Contains(s.tasks, t.Key()) {
			out.Tasks = append(out.Tasks, t.Key())
		}
	}
	return out
}
