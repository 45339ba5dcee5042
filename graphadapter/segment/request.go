package segment

import (
	"encoding/json"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Request is the input of a segment: consecutive supersteps of a run that one activity runs.
type Request struct {
	Graph  string `json:"graph"`
	Thread string `json:"thread"`
	// Print is the fingerprint of the Spec that the run goes on with. Spec is that Spec; nil when the graph that is
	// served has the same fingerprint.
	Print string       `json:"print"`
	Spec  *pregel.Spec `json:"spec,omitempty"`
	// Loop is the run, suspended (pregel.Loop.Suspend).
	Loop       pregel.Value            `json:"loop,omitempty"`
	Durability graphadapter.Durability `json:"durability,omitempty"`
	// Context is the run's context value; nil for none.
	Context pregel.Value `json:"context,omitempty"`
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string `json:"requester,omitempty"`
	// OriginalRunID is as in [NodeRequest].
	OriginalRunID string `json:"original_run_id"`
	// Suspect says which tasks an earlier execution may have run without a trace.
	Suspect Suspicion `json:"suspect,omitzero"`
	// Behind is Env.Behind in milliseconds, when the segment was scheduled.
	Behind int64 `json:"behind_ms,omitempty"`
	// LedgerBytes bounds what heartbeats carry of the record, and of the ledgers of the tasks under way.
	LedgerBytes int `json:"ledger_bytes"`
	// MaxConcurrency bounds the tasks under way at once, StepTimeout a superstep's wall clock in milliseconds; 0 means no
	// bound.
	MaxConcurrency int   `json:"max_concurrency,omitempty"`
	StepTimeout    int64 `json:"step_timeout_ms,omitempty"`
	// ResumeBefore asks for a resume point in the result: the newest that is at least so many supersteps before where the
	// segment ends. 0 asks for none.
	ResumeBefore int `json:"resume_before,omitempty"`
	// References are the large parts that the request goes without.
	References []graphadapter.Reference `json:"references,omitempty"`
}

// Fill puts the values in place of the request's references; see NodeRequest.Fill.
func (r *Request) Fill(value func(graphadapter.Reference) (pregel.Value, error)) error {
	filled := *r
	filled.References = nil
	for _, ref := range r.References {
		if err := graphadapter.Fill(ref, value, filled.put); err != nil {
			return err
		}
	}
	*r = filled
	return nil
}

func (r *Request) put(ref graphadapter.Reference, v pregel.Value) error {
	switch ref.Part {
	case graphadapter.PartLoop:
		r.Loop = v
	case graphadapter.PartContext:
		r.Context = v
	case graphadapter.PartSpec:
		return json.Unmarshal(v, &r.Spec)
	default:
		return graphadapter.UnknownPart(ref)
	}
	return nil
}

// Serves drops the reference to the Spec when that is the one of g: g is compiled already.
func (r *Request) Serves(g *graphadapter.Graph) error {
	print, err := graphadapter.Fingerprint(g.Spec)
	if err == nil && print == r.Print {
		r.References = slices.DeleteFunc(r.References, func(ref graphadapter.Reference) bool { return ref.Part == graphadapter.PartSpec })
	}
	return err
}

// Suspicion says which tasks may have acted outside in an execution that left no trace of them: all that run from here
// on, or those of these keys (pregel.Task.Key).
type Suspicion struct {
	All   bool     `json:"all,omitempty"`
	Tasks []string `json:"tasks,omitempty"`
	// Lost says that there was such an execution indeed: what it did is not known until its tasks have run again. Without
	// Lost, All is a precaution.
	Lost bool `json:"lost,omitempty"`
}

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
	if graphadapter.IsRelaxed(req.Durability) {
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
