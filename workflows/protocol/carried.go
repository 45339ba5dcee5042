package protocol

import (
	"cmp"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
)

// Carried is what a run hands to the run that continues it as a new one, beside its thread's state: what it was doing, and
// what it had been told. It is part of a [GraphInput]. To whoever looks at the thread both are one run.
type Carried struct {
	// Loop is the engine's run under way, with its thread, as pregel.Loop.Suspend wrote it; nil when there is none, and
	// then GraphInput.State is the thread.
	Loop pregel.Value `json:"loop,omitempty"`
	// Status and Drained are as in State.
	Status  string `json:"status"`
	Drained string `json:"drained,omitempty"`
	// Invoked says that an invocation is under way. It began at the checkpoint Base, in the run Began.
	Invoked bool   `json:"invoked,omitempty"`
	Base    string `json:"base,omitempty"`
	Began   string `json:"began,omitempty"`
	// SuspectStep is the superstep whose tasks may have acted in an earlier run, -1 for none.
	SuspectStep int `json:"suspect_step"`
	// Suspect says which tasks a segment that was lost may have run; Apart, that those which wait are not for a segment.
	Suspect segment.Suspicion `json:"suspect,omitzero"`
	Apart   bool              `json:"apart,omitempty"`
	// StepEnds is when the superstep under way is out of time; zero when it is not timed.
	StepEnds time.Time `json:"step_ends,omitzero"`
	// IdleEnds is when a run that is kept open ends for want of input; zero while it has something to do.
	IdleEnds time.Time `json:"idle_ends,omitzero"`
	// Invoke was taken and not used yet, because the run is paused; Signals were not even looked at.
	Invoke  *InvokeRequest  `json:"invoke,omitempty"`
	Signals []ResumeRequest `json:"signals,omitempty"`
	// Failure is why the run failed that is held open; nil for one that is not.
	Failure *pregel.NodeError `json:"failure,omitempty"`
}

// ContinueAt are the bounds at which a run is continued as a new one, each 0 for the default.
type ContinueAt struct {
	// Events and Bytes are of the run's history: 4,096 events, 4 MiB.
	Events int `json:"events,omitempty"`
	Bytes  int `json:"bytes,omitempty"`
	// HoldEvents: a run that is not quiet by then starts no more tasks until it is: 20,000 events.
	HoldEvents int `json:"hold_events,omitempty"`
	// Life is the least time that a run lives before, in milliseconds: 1,000. The server delays the next run by what is
	// missing to a second.
	Life int64 `json:"life_ms,omitempty"`
}

// When a run is continued as a new one unless it is told otherwise. The server suggests it, and would end the run at 51,200
// events; it delays the next run when one lived for less than a second.
const (
	continueEvents = 4096
	continueBytes  = 4 << 20
	holdEvents     = 20_000
	minRunLife     = time.Second
	// leastEvents are more than a run begins with: one that only rests is not continued again and again.
	leastEvents = 8
)

// Filled are the bounds with a default for each that is not said.
func (c *ContinueAt) Filled() ContinueAt {
	at := ContinueAt{}
	if c != nil {
		at = *c
	}
	at.Events = max(cmp.Or(at.Events, continueEvents), leastEvents)
	at.Bytes = cmp.Or(at.Bytes, continueBytes)
	at.Life = cmp.Or(at.Life, minRunLife.Milliseconds())
	at.HoldEvents = cmp.Or(at.HoldEvents, holdEvents)
	return at
}
