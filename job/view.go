package job

import (
	"fmt"
	"slices"
	"time"
)

// EventsAfter are the events after the one of that number, oldest first; 0 is all. Those that the board has forgotten are
// missing: then the first one's number is not the next.
func (b *Board) EventsAfter(seq int64) []Event {
	at, _ := slices.BinarySearchFunc(b.Events, seq+1, func(e Event, seq int64) int { return int(e.Seq - seq) })
	return slices.Clone(b.Events[at:])
}

// View is a job as people see it: its board without what only a planner or an expert reads.
type View struct {
	ID          string    `json:"id"`
	Leader      string    `json:"leader,omitempty"`
	Goal        string    `json:"goal"`
	Requester   string    `json:"requester,omitempty"`
	Status      Status    `json:"status"`
	Phase       Phase     `json:"phase,omitempty"`
	Reason      string    `json:"reason,omitempty"`
	PlanVersion int       `json:"plan_version"`
	Started     time.Time `json:"started,omitzero"`
	Ended       time.Time `json:"ended,omitzero"`
	// Duration is the time that the job has run, without the time that it was stopped, up to the moment At: now, or its end.
	Duration time.Duration `json:"duration"`
	At       time.Time     `json:"at,omitzero"`
	Spent    Usage         `json:"spent,omitzero"`
	Budget   Budget        `json:"budget,omitzero"`
	// Finished of Total subjobs of the plan that counts are finished.
	Finished int `json:"finished"`
	Total    int `json:"total"`
	// SubJobs are in topological order, those that were replaced after what replaced them. Contexts, schemas and outputs
	// are left out.
	SubJobs []SubJob  `json:"subjobs,omitempty"`
	Experts []Profile `json:"experts,omitempty"`
	// Proposed is the plan that waits for a decision, nil when none does.
	Proposed *Draft `json:"proposed,omitempty"`
	// Tails are the subjobs whose outputs are the answer, in topological order.
	Tails []string `json:"tails,omitempty"`
	// LastEvent is the number of the newest event.
	LastEvent int64 `json:"last_event"`
}

// View is the job as people see it.
func (b *Board) View(now time.Time) View {
	v := View{
		ID: b.Job.ID, Goal: b.Job.Goal, Requester: b.Job.Requester, Status: b.Status, Phase: b.Phase, Reason: b.Reason,
		PlanVersion: b.PlanVersion, Started: b.Started, Ended: b.Ended, Duration: b.worked(stamp(now)), Spent: b.Spent,
		Budget: b.Job.Budget, Experts: b.assignable(), LastEvent: b.lastEvent(), At: stamp(now),
	}
	if !b.Ended.IsZero() {
		v.At = b.Ended
	}
	if p := b.planning(); p != nil && p.Proposed != nil {
		v.Proposed = &Draft{SubJobs: slices.Clone(p.Proposed.SubJobs)}
	}
	g := b.graph()
	order := g.Topological()
	for _, id := range order {
		v.Total++
		if b.find(id).Status == StatusFinished {
			v.Finished++
		}
		if len(g.successors[id]) == 0 {
			v.Tails = append(v.Tails, id)
		}
	}
	v.SubJobs = b.seen(order)
	return v
}

// Until is the view at a later moment up to which nothing has happened but that time went by.
func (v View) Until(now time.Time) View {
	if by := stamp(now).Sub(v.At); by > 0 && v.Ended.IsZero() && !v.Started.IsZero() {
		v.Duration, v.At = v.Duration+by, stamp(now)
	}
	return v
}

// seen are the subjobs in an order, those that were replaced after the last of what replaced them.
func (b *Board) seen(order []string) []SubJob {
	parts := map[string]int{} // that are not listed yet, by what they replaced
	for _, s := range b.SubJobs {
		parts[s.Parent]++
	}
	list := make([]SubJob, 0, len(b.SubJobs))
	for _, id := range order {
		for s := b.find(id); s != nil; s = b.find(s.Parent) {
			list = append(list, b.shown(s))
			if parts[s.Parent]--; parts[s.Parent] > 0 || s.Parent == "" {
				break
			}
		}
	}
	return list
}

// shown is a subjob without what only a planner or an expert reads.
func (b *Board) shown(s *SubJob) SubJob {
	c := *s
	c.Context, c.OutputSchema, c.Reopens, c.Refused = "", "", nil, ""
	c.Dependencies, c.Lessons = slices.Clone(s.Dependencies), slices.Clone(s.Lessons)
	if s.Result != nil {
		r := *s.Result
		r.Text = ""
		if r.Stored != nil {
			r.Stored = b.whole(s.ID, s.Result)
		}
		c.Result = &r
	}
	return c
}

// Answer is what the job has made so far: the outputs of the tails that have finished, in topological order. With
// Policy.Synthesis the one tail is the subjob that makes one answer of them.
func (b *Board) Answer() []Input {
	g := b.graph()
	var answer []Input
	for _, id := range g.Topological() {
		if s := b.find(id); len(g.successors[id]) == 0 && s.Status == StatusFinished {
			answer = append(answer, b.outputOf(s))
		}
	}
	return answer
}

// Standing is the job's status and phase in words.
func (v View) Standing() string {
	if v.Phase == "" {
		return string(v.Status)
	}
	return fmt.Sprintf("%s (%s)", v.Status, v.Phase)
}
