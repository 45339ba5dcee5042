package job

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// maxDraftID is up to where a draft's id becomes part of the subjob's.
const maxDraftID = MaxID - idPrefix

// answerID is the id of the subjob that makes one answer of the tails' outputs: no plan's ids look like it.
const answerID = "answer"

// plant makes the first plan the job's graph.
func (b *Board) plant(d Draft, now time.Time) {
	added := b.grow(d, nil)
	b.log(now, Event{Kind: "planned", Text: fmt.Sprintf("plan %d: %d subjobs", b.PlanVersion, len(added))})
	if b.Job.Expert != "" || b.Job.Policy.Synthesis == "" {
		return
	}
	answer := DraftSubJob{
		ID: answerID, Goal: b.Job.Goal, Expert: b.Job.Policy.Synthesis, Dependencies: leavesOf(added),
		Context: "The parts of this goal are done: make one answer of their outputs.",
	}
	b.SubJobs = append(b.SubJobs, &SubJob{DraftSubJob: answer, LifeCycle: b.lifeCycle(nil), Status: StatusCreated, PlanVersion: b.PlanVersion})
}

// replace puts a plan in the place of a subjob: what it depended on, the plan's roots depend on, and what depended on it
// depends on all of the plan's leaves.
func (b *Board) replace(s *SubJob, d Draft, now time.Time) {
	added := b.grow(d, s)
	leaves := leavesOf(added)
	for _, other := range b.SubJobs {
		if at := slices.Index(other.Dependencies, s.ID); at >= 0 && !other.Legacy {
			other.Dependencies = withoutRepetitions(slices.Concat(other.Dependencies[:at], leaves, other.Dependencies[at+1:]))
			delete(other.Reopens, s.ID)
		}
	}
	b.moveSubJob(s, StatusStopped, "")
	s.Legacy, s.Lessons, s.Context, s.Thinking, s.OutputSchema, s.Refused, s.Reopens = true, nil, "", "", "", "", nil
	b.logSubJob(now, "replaced", s, fmt.Sprintf("plan %d: %d subjobs in its place", b.PlanVersion, len(added)))
}

// grow adds a draft's subjobs, as parts of another one when parent is not nil.
func (b *Board) grow(d Draft, parent *SubJob) []*SubJob {
	ids := b.idsOf(d)
	added := make([]*SubJob, len(d.SubJobs))
	for i, draft := range d.SubJobs {
		s := &SubJob{DraftSubJob: draft, LifeCycle: b.lifeCycle(parent), Status: StatusCreated, PlanVersion: b.PlanVersion}
		s.ID, s.Expert, s.Dependencies = ids[draft.ID], b.expert(draft.Expert).Name, nil
		for _, on := range withoutRepetitions(draft.Dependencies) {
			s.Dependencies = append(s.Dependencies, ids[on])
		}
		if parent != nil {
			s.Parent = parent.ID
			if len(s.Dependencies) == 0 {
				s.Dependencies = slices.Clone(parent.Dependencies)
			}
		}
		added[i] = s
	}
	b.SubJobs = append(b.SubJobs, added...)
	return added
}

// idsOf are the subjobs' ids by their drafts': "p2-load" is what plan 2 calls "load". When a plan has an id that does not
// fit, its subjobs are numbered.
func (b *Board) idsOf(d Draft) map[string]string {
	fit := !slices.ContainsFunc(d.SubJobs, func(s DraftSubJob) bool { return !validID(s.ID) || len(s.ID) > maxDraftID })
	ids := make(map[string]string, len(d.SubJobs))
	for i, s := range d.SubJobs {
		id := s.ID
		if !fit {
			id = strconv.Itoa(i + 1)
		}
		ids[s.ID] = "p" + strconv.Itoa(b.PlanVersion) + "-" + id
	}
	return ids
}

// lifeCycle is how often a part of a subjob may be planned again; nil is the job.
func (b *Board) lifeCycle(parent *SubJob) int {
	if parent != nil {
		return parent.LifeCycle - 1
	}
	return max(b.Job.Policy.LifeCycle, 0)
}

func leavesOf(subjobs []*SubJob) []string {
	g := new(Graph)
	for _, s := range subjobs {
		g.Add(s.ID, s.Dependencies)
	}
	return g.Tails()
}

// sizeOf is what a draft adds to the job's subjobs in the place of s; nil is the job itself.
func (b *Board) sizeOf(s *SubJob, d Draft) int {
	n, leaves, roots := 0, 0, 0
	g := new(Graph)
	for _, draft := range d.SubJobs {
		g.Add(draft.ID, draft.Dependencies)
		n += draft.size() + kept("assigned_expert", expertOf(draft.Expert, b.Experts).Name)
	}
	for _, id := range g.Tails() {
		leaves += dependencySize(id)
	}
	roots = len(g.Roots())
	if s == nil {
		if b.Job.Policy.Synthesis != "" {
			n += 2*ownSize + quoted(b.Job.Goal) + leaves
		}
		return n
	}
	n += len(d.SubJobs) * kept("parent", s.ID)
	for _, on := range s.Dependencies {
		n += roots * dependencySize(on)
	}
	return n + leaves*len(b.graph().Successors(s.ID))
}

// graph is the job's graph as it counts: without what was replaced.
func (b *Board) graph() *Graph {
	g := new(Graph)
	for _, s := range b.SubJobs {
		if !s.Legacy {
			g.Add(s.ID, s.Dependencies)
		}
	}
	return g
}
