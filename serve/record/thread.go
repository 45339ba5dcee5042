package record

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"superstep.dev/thread"
)

// Thread is a thread's record.
type Thread struct {
	ID string `json:"id"`
	// Under is the id of the thread that has the states: the same, unless an earlier one of that id was deleted and is still there.
	Under string `json:"under"`
	// Anew says that an earlier thread of that id was deleted, and that this one has no states yet: once the server has deleted the
	// other's it has them under its own id.
	Anew    bool      `json:"anew,omitempty"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
	// Moved is when a run last ended or the state was updated from outside, or when the thread was made.
	Moved    time.Time                  `json:"moved,omitzero"`
	Metadata map[string]json.RawMessage `json:"metadata"`
	// Graph and Assistant are those of the run that was asked for last, "" before the first.
	Graph     string `json:"graph,omitempty"`
	Assistant string `json:"assistant,omitempty"`
	// Runs are in the order in which they were asked for. The newest 200 are kept.
	Runs []Run `json:"runs,omitempty"`
	// Stands is how the thread stood when its last run ended or its state was updated: see the statuses of threads.
	Stands string `json:"stands,omitempty"`
	// Failure is why the last run failed, nil when it did not.
	Failure *Failure `json:"failure,omitempty"`
	// Edits counts the updates of the state from outside.
	Edits int64 `json:"edits,omitempty"`
	// Commands counts the runs that commands began.
	Commands int64 `json:"commands,omitempty"`
	// Origin is the thread that this one was copied from, "" for none, and Named the one whose id its checkpoints and tasks are named by,
	// "" for its own: a copy calls them what its origin does.
	Origin string `json:"origin,omitempty"`
	Named  string `json:"named,omitempty"`
	// Hidden are checkpoints that a rollback took back.
	Hidden []string `json:"hidden,omitempty"`
	// Version grows with each change.
	Version int64 `json:"version"`
	// Deleted says that the thread is gone.
	Deleted bool `json:"deleted,omitempty"`
}

// Names is the id of the thread that the checkpoints and tasks are named by.
func (t Thread) Names() string { return cmp.Or(t.Named, t.ID) }

// The statuses of a run.
const (
	Pending     = "pending"
	Running     = "running"
	Success     = "success"
	Failed      = "error"
	Interrupted = "interrupted"
	// RolledBack is that of a run that was taken back, as its webhook is told: the record has it no more.
	RolledBack = "rollback"
)

// The statuses of a thread.
const (
	Idle   = "idle"
	Busy   = "busy"
	Waits  = "interrupted"
	Errors = "error"
)

// The strategies for a run that comes while another is under way.
const (
	Enqueue   = "enqueue"
	Reject    = "reject"
	Interrupt = "interrupt"
	Rollback  = "rollback"
)

// Run is one run of a thread: one invocation of its graph.
type Run struct {
	ID string `json:"id"`
	// Version is the thread's since which the run is as it is.
	Version   int64                      `json:"version,omitempty"`
	Assistant string                     `json:"assistant,omitempty"`
	Metadata  map[string]json.RawMessage `json:"metadata,omitempty"`
	// Kwargs is what the caller asked for, as the protocol shows it.
	Kwargs   json.RawMessage `json:"kwargs,omitempty"`
	Strategy string          `json:"strategy,omitempty"`
	Status   string          `json:"status"`
	Created  time.Time       `json:"created,omitzero"`
	Updated  time.Time       `json:"updated,omitzero"`
	// Began is when the run began, and Ended when it ended; zero before.
	Began time.Time `json:"began,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// Command says that a command of the protocol's second version began the run: its events are streamed. Ordinal counts such runs of
	// the thread from 1, in the order in which they were asked for; 0 of any other run.
	Command bool  `json:"command,omitempty"`
	Ordinal int64 `json:"ordinal,omitempty"`
	// Before is the checkpoint at which the thread stood when the run began, "" for none.
	Before string `json:"before,omitempty"`
	// Place is where the run begins in the thread's stream: see superstep.Client.Offset. "" until it has begun.
	Place   string   `json:"place,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
	// Stands is how the thread stood when the run had ended: see the statuses of threads.
	Stands string `json:"stands,omitempty"`
	// Refused is why the thread is not invoked: the run fails when its turn has come.
	Refused *Failure `json:"refused,omitempty"`
	// Start is how the thread is invoked.
	Start thread.StartRequest `json:"start,omitzero"`
	// Delay is how long the run is put off, and Due until when: runs that are asked for later go first until then.
	Delay time.Duration `json:"delay,omitempty"`
	Due   time.Time     `json:"due,omitzero"`
	// Begins says that the thread may have been invoked, although Place is not known yet.
	Begins bool `json:"begins,omitempty"`
	// Webhook is where the end is told, "" for nowhere.
	Webhook string `json:"webhook,omitempty"`
	// Forget deletes the thread when the run has ended. With Read whoever asked for the run reads first what it has led to, and removes it
	// then; one who has gone is waited for two minutes, or until the thread has another run.
	Forget bool `json:"forget,omitempty"`
	Read   bool `json:"read,omitempty"`
	// Resumable says that its events have ids.
	Resumable bool `json:"resumable,omitempty"`
	// Wait is the stage that whoever asks for the run waits for.
	Wait string `json:"wait,omitempty"`
	// Cancel is how the run is to end, "" while nobody has cancelled it, and CancelledBy who wanted that, "" when it is not known.
	Cancel      string `json:"cancel,omitempty"`
	CancelledBy string `json:"cancelled_by,omitempty"`
}

// Failure is why a run failed.
type Failure struct {
	Type    string `json:"error"`
	Message string `json:"message"`
}

// WasCancelled is what clients are told of a run that was cancelled.
func WasCancelled() *Failure {
	return &Failure{Type: "UserInterrupt", Message: "the run was cancelled: a run without an input goes on from here"}
}

// Over reports whether the run has ended.
func (r *Run) Over() bool { return r.Status != Pending && r.Status != Running }

// Run returns a run of the thread, nil when there is none of that id.
func (t *Thread) Run(id string) *Run {
	at := slices.IndexFunc(t.Runs, func(r Run) bool { return r.ID == id })
	if at < 0 {
		return nil
	}
	return &t.Runs[at]
}

// Busy reports whether a run is under way or waits its turn.
func (t *Thread) Busy() bool {
	return slices.ContainsFunc(t.Runs, func(r Run) bool { return !r.Over() })
}

// at reports whether a run is at a stage, has ended, or is no more.
func (t *Thread) at(run, stage string) bool {
	r := t.Run(run)
	return r == nil || r.Over() || stage == "" || stage == StageBegun && r.Place != "" || t.Deleted
}

// since is the thread for somebody who knows it as it was at a version: runs that have not changed since are bare, and of none is told
// how it was invoked, but for its graph. Answers of a record stay in its history, where all that was asked for would come again each time.
func (t *Thread) since(version int64) Thread {
	out := *t
	out.Runs = make([]Run, len(t.Runs))
	for i, r := range t.Runs {
		if r.Version > version {
			out.Runs[i] = r.told()
		} else {
			out.Runs[i] = Run{ID: r.ID, Status: r.Status, Ordinal: r.Ordinal}
		}
	}
	return out
}

func (r Run) told() Run {
	r.Start = thread.StartRequest{Graph: r.Start.Graph}
	return r
}

// upon completes a thread that is told to somebody who knows it: see since.
func (t Thread) upon(known Thread) Thread {
	for i := range t.Runs {
		if r := known.Run(t.Runs[i].ID); r != nil && t.Runs[i].Version == 0 {
			t.Runs[i] = *r
		}
	}
	return t
}

// The bounds of a record.
const (
	mostRuns    = 200
	mostPending = 200
	// mostKept is how much of what was asked for is kept of a run that has ended, and mostKeptOfAll how much of what was asked for and of
	// the metadata of all that have: a server of Temporal takes 2 MiB in one value, which the record has to be to go on.
	mostKept      = 4 << 10
	mostKeptOfAll = 1 << 20
	// MostMetadata is how many bytes the metadata of a thread may have, and that of a run: that of a thread lies in its memo, which lists
	// read of all threads, and a record that cannot write its memo can be neither read nor deleted any more.
	MostMetadata = 64 << 10
)

// size is how many bytes metadata has.
func size(metadata map[string]json.RawMessage) (n int) {
	//workflowcheck:ignore A sum does not depend on the order in which the members come.
	for name, v := range metadata {
		n += len(name) + len(v)
	}
	return n
}

// checkSize refuses metadata that is too large when each is merged into those before it.
func checkSize(each ...map[string]json.RawMessage) error {
	all := map[string]json.RawMessage{}
	for _, one := range each {
		//workflowcheck:ignore A copy does not depend on the order in which the members come.
		maps.Copy(all, one)
	}
	if size(all) > MostMetadata {
		return refuse(errLarge, "the metadata has %d bytes, at most %d can be kept", size(all), MostMetadata)
	}
	return nil
}

// trim forgets what is beyond the bounds: the oldest runs that have ended, long inputs of those that have, and of the older of these all.
func (t *Thread) trim() {
	for i := range t.Runs {
		r := &t.Runs[i]
		if !r.Over() {
			continue
		}
		r.Start = thread.StartRequest{}
		if len(r.Kwargs) > mostKept {
			r.Kwargs = json.RawMessage(`{}`)
		}
	}
	room := mostKeptOfAll
	for i := len(t.Runs) - 1; i >= 0; i-- {
		if r := &t.Runs[i]; r.Over() {
			if room -= len(r.Kwargs) + size(r.Metadata); room < 0 {
				r.Kwargs, r.Metadata = json.RawMessage(`{}`), nil
			}
		}
	}
	for len(t.Runs) > mostRuns && t.Runs[0].Over() {
		t.Runs = t.Runs[1:]
	}
}

// MemoThread is the memo field in which a record's workflow has its Line.
const MemoThread = "superstep.thread"

// Line is what lists know of a thread.
type Line struct {
	ID       string                     `json:"id"`
	Under    string                     `json:"under"`
	Created  time.Time                  `json:"created"`
	Updated  time.Time                  `json:"updated"`
	Moved    time.Time                  `json:"moved,omitzero"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	Status   string                     `json:"status"`
	Version  int64                      `json:"version"`
	Deleted  bool                       `json:"deleted,omitempty"`
}

// Line is what lists know of the thread.
func (t *Thread) Line() Line {
	return Line{ID: t.ID, Under: t.Under, Created: t.Created, Updated: t.Updated, Moved: t.Moved, Metadata: t.Metadata, Status: t.Status(), Version: t.Version, Deleted: t.Deleted}
}

// Place is where a list has the line, and how new it is.
func (l Line) Place() (id string, created time.Time, version int64, deleted bool) {
	return l.ID, l.Created, l.Version, l.Deleted
}

// Cancelled reports whether the run that ended last was cancelled.
func (t *Thread) Cancelled() bool {
	var last Run
	for _, r := range t.Runs {
		if r.Over() && !r.Ended.Before(last.Ended) {
			last = r
		}
	}
	return last.Status == Interrupted
}

// Status is the thread's, as far as its record knows.
func (t *Thread) Status() string {
	switch {
	case t.Busy():
		return Busy
	case t.Failure != nil:
		return Errors
	case t.Stands == "":
		return Idle
	}
	return t.Stands
}
