package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Workflow is the type of a record's workflow.
const Workflow = "superstep.thread_record"

// The updates and the query of a record.
const (
	updatePut    = "put"
	updateRun    = "run"
	updateCancel = "cancel"
	updateRemove = "remove"
	updateDelete = "delete"
	updateNote   = "note"
	updateAwait  = "await"
	queryThread  = "thread"
)

// The types of the errors with which a record refuses.
const (
	errExists  = "superstep.ThreadExists"
	errBusy    = "superstep.ThreadBusy"
	errMissing = "superstep.Missing"
	errGone    = "superstep.ThreadGone"
)

// put creates a thread, or changes its metadata.
type put struct {
	Create   bool                       `json:"create,omitempty"`
	Exists   bool                       `json:"exists,omitempty"` // it may be there
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
	// Graph, Assistant and Stands are those of a thread that is made as a copy.
	Graph     string `json:"graph,omitempty"`
	Assistant string `json:"assistant,omitempty"`
	Stands    string `json:"stands,omitempty"`
}

// cancel ends runs.
type cancel struct {
	Runs   []string `json:"runs"`
	Action string   `json:"action"`
	By     string   `json:"by,omitempty"`
}

// note says how the thread stands after its state was changed from outside.
type note struct {
	Stands string   `json:"stands"`
	Graph  string   `json:"graph,omitempty"`
	Hidden []string `json:"hidden,omitempty"`
}

// await returns when the thread has a version behind one, or after a while.
type await struct {
	Behind int64 `json:"behind"`
}

// The stages of a run that can be waited for; "" is not waited for.
const (
	StageBegun = "begun"
	StageEnded = "ended"
)

// awaitTime bounds an await: callers ask again.
const awaitTime = 20 * time.Second

// keeper is a record at work.
type keeper struct {
	thread Thread
	// current is the run that the loop is at, "" for none.
	current string
	// standing says that the loop waits where another run of the record can go on, and updates counts those that this one has taken.
	standing bool
	updates  int
}

// Keep is a record's workflow: it begins with nothing, or with what an earlier run of it has left.
func Keep(ctx workflow.Context, t Thread) error {
	k := &keeper{thread: t}
	if k.thread.ID == "" {
		k.thread.Created = workflow.Now(ctx)
		k.thread.Updated, k.thread.Metadata = k.thread.Created, map[string]json.RawMessage{}
	}
	if err := k.listen(ctx); err != nil {
		return err
	}
	for {
		var err error
		switch next := k.thread.Next(); {
		case k.thread.Deleted && k.current == "":
			return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
		case next != nil:
			err = k.run(ctx, next.ID)
		default:
			err = k.until(ctx, func() bool { return k.thread.Next() != nil || k.thread.Deleted })
		}
		if err != nil && !errors.Is(err, errMoves) {
			return err
		}
		if err == nil {
			continue
		}
		k.standing = true // who waits for a change is told to ask again: the run that follows
		if err := workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) }); err != nil {
			return err
		}
		if k.standing = false; !k.thread.Deleted {
			return workflow.NewContinueAsNewError(ctx, Workflow, k.thread)
		}
	}
}

// The size of a history from which on a record goes on as a new run. A server of Temporal refuses the 2,001st update of a run.
const (
	mostEvents  = 4000
	mostUpdates = 1500
)

// full reports whether the history is long enough to begin a new one.
func (k *keeper) full(ctx workflow.Context) bool {
	info := workflow.GetInfo(ctx)
	return info.GetContinueAsNewSuggested() || info.GetCurrentHistoryLength() > mostEvents || k.updates >= mostUpdates
}

// moves reports whether the record is about to go on as a new run.
func (k *keeper) moves(ctx workflow.Context) bool { return k.standing && k.full(ctx) }

func (k *keeper) listen(ctx workflow.Context) error {
	if err := workflow.SetQueryHandler(ctx, queryThread, func() (Thread, error) { return k.thread.since(-1), nil }); err != nil {
		return err
	}
	for _, u := range []struct {
		name      string
		do, check any
	}{
		{updatePut, k.put, k.checkPut},
		{updateRun, k.add, k.checkAdd},
		{updateCancel, k.cancel, k.checkCancel},
		{updateRemove, k.remove, k.checkRemove},
		{updateDelete, k.delete, func(workflow.Context) error { return k.there() }},
		{updateNote, k.note, func(workflow.Context, note) error { return k.there() }},
		{updateAwait, k.await, func(workflow.Context, await) error { return k.there() }},
	} {
		if err := workflow.SetUpdateHandlerWithOptions(ctx, u.name, u.do, workflow.UpdateHandlerOptions{Validator: u.check}); err != nil {
			return err
		}
	}
	return nil
}

func refuse(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// there refuses what is asked of a thread that was deleted, or was never created.
func (k *keeper) there() error {
	switch {
	case k.thread.Deleted:
		return refuse(errGone, "the thread was deleted")
	case k.thread.ID == "":
		return refuse(errMissing, "there is no such thread")
	}
	return nil
}

// told is the thread as it is told to who has changed it: see Thread.since.
func (k *keeper) told() Thread { return k.thread.since(k.thread.Version) }

// changed notes a change.
func (k *keeper) changed(ctx workflow.Context) {
	k.thread.Version++
	k.thread.Updated = workflow.Now(ctx)
}

// tell makes lists know of the thread: its memo is the index.
func (k *keeper) tell(ctx workflow.Context) {
	if err := workflow.UpsertMemo(ctx, map[string]any{MemoThread: k.thread.Line()}); err != nil {
		workflow.GetLogger(ctx).Warn("the thread's line in lists was not written", "error", err)
	}
}

func (k *keeper) checkPut(_ workflow.Context, p put) error {
	switch {
	case p.Create && k.thread.ID != "" && !k.thread.Deleted && !p.Exists:
		return refuse(errExists, "the thread exists already")
	case p.Create && !k.thread.Deleted:
		return nil
	}
	return k.there()
}

func (k *keeper) put(ctx workflow.Context, p put) (Thread, error) {
	k.updates++
	if p.Create && k.thread.ID != "" {
		return k.told(), nil
	}
	if p.Create {
		k.thread.ID = IDOf(workflow.GetInfo(ctx).WorkflowExecution.ID)
		k.thread.Graph, k.thread.Assistant, k.thread.Stands = p.Graph, p.Assistant, p.Stands
		if k.thread.Under == "" {
			k.thread.Under = k.thread.ID
		}
	}
	//workflowcheck:ignore A copy does not depend on the order in which the members come.
	maps.Copy(k.thread.Metadata, p.Metadata)
	k.changed(ctx)
	k.tell(ctx)
	return k.told(), nil
}

func (k *keeper) checkAdd(_ workflow.Context, r Run) error {
	if err := k.there(); err != nil {
		return err
	}
	waiting := 0
	for _, other := range k.thread.Runs {
		if other.ID == r.ID {
			return nil // the same request again
		}
		if !other.Over() {
			waiting++
		}
	}
	switch {
	case waiting > 0 && r.Strategy == Reject:
		return refuse(errBusy, "a run of the thread is under way, and multitask_strategy is reject")
	case waiting > mostPending:
		return refuse(errBusy, "%d runs of the thread wait already", waiting-1)
	}
	return nil
}

// add takes in a run, which begins when those before it have ended.
func (k *keeper) add(ctx workflow.Context, r Run) (Thread, error) {
	k.updates++
	if k.thread.Run(r.ID) != nil {
		return k.toldOf(r.ID), nil
	}
	if r.Strategy == Interrupt || r.Strategy == Rollback {
		for i := range k.thread.Runs {
			if !k.thread.Runs[i].Over() {
				k.end(ctx, k.thread.Runs[i].ID, r.Strategy, r.Start.By)
			}
		}
	}
	r.Status, r.Created, r.Updated = Pending, workflow.Now(ctx), workflow.Now(ctx)
	if r.Command {
		k.thread.Commands++
		r.Ordinal = k.thread.Commands
	}
	r.Version = k.thread.Version + 1
	k.thread.Runs = append(k.thread.Runs, r)
	k.thread.Graph, k.thread.Assistant = r.Start.Graph, r.Assistant
	k.thread.Metadata["graph_id"], k.thread.Metadata["assistant_id"] = quoted(r.Start.Graph), quoted(r.Assistant)
	k.thread.trim()
	k.changed(ctx)
	k.tell(ctx)
	// Who waits here takes one of the few places that a server has for those. A run that waits its turn is waited for outside.
	if k.thread.Next().ID == r.ID {
		if _, err := workflow.AwaitWithTimeout(ctx, awaitTime, func() bool { return k.thread.at(r.ID, r.Wait) || k.moves(ctx) }); err != nil {
			return Thread{}, err
		}
	}
	return k.toldOf(r.ID), nil
}

// toldOf is the thread as it is told to who asks for a run.
func (k *keeper) toldOf(run string) Thread {
	t := k.told()
	if of := k.thread.Run(run); of != nil {
		*t.Run(run) = of.told()
	}
	return t
}

func quoted(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // a string always encodes
	return raw
}

func (k *keeper) checkCancel(_ workflow.Context, c cancel) error {
	if err := k.there(); err != nil {
		return err
	}
	for _, id := range c.Runs {
		if r := k.thread.Run(id); r == nil || r.Over() {
			return refuse(errMissing, "there is no run %s under way", id)
		}
	}
	return nil
}

// cancel says which runs are to end.
func (k *keeper) cancel(ctx workflow.Context, c cancel) (Thread, error) {
	k.updates++
	for _, id := range c.Runs {
		if r := k.thread.Run(id); r != nil && !r.Over() {
			k.end(ctx, id, c.Action, c.By)
		}
	}
	k.changed(ctx)
	return k.told(), nil
}

// end says that a run is to end: at once while it waits its turn, else by the loop, which waits for it.
func (k *keeper) end(ctx workflow.Context, id, how, by string) {
	r := k.thread.Run(id)
	r.Cancel, r.CancelledBy, r.Updated, r.Version = how, by, workflow.Now(ctx), k.thread.Version+1
	if k.current != id {
		k.over(ctx, id, ending{Status: Interrupted})
	}
}

// over notes the end of a run. One that was rolled back is gone, unless that could not be done.
func (k *keeper) over(ctx workflow.Context, id string, e ending) {
	r := k.thread.Run(id)
	if r == nil {
		return
	}
	r.Status, r.Failure, r.Stands = e.Status, e.Failure, e.Stands
	r.Ended, r.Updated, r.Version = workflow.Now(ctx), workflow.Now(ctx), k.thread.Version+1
	if e.Stands != "" {
		k.thread.Stands, k.thread.Failure = e.Stands, e.Failure
	}
	if r.Cancel == Rollback && e.Failure == nil {
		k.without(id)
	}
	k.thread.trim()
	k.changed(ctx)
	k.tell(ctx)
}

func (k *keeper) without(id string) {
	kept := k.thread.Runs[:0]
	for _, r := range k.thread.Runs {
		if r.ID != id {
			kept = append(kept, r)
		}
	}
	k.thread.Runs = kept
}

func (k *keeper) checkRemove(_ workflow.Context, id string) error {
	if err := k.there(); err != nil {
		return err
	}
	switch r := k.thread.Run(id); {
	case r == nil:
		return refuse(errMissing, "there is no run %s", id)
	case !r.Over():
		return refuse(errBusy, "run %s is under way: cancel it first", id)
	}
	return nil
}

// remove forgets a run that has ended; its checkpoints stay.
func (k *keeper) remove(ctx workflow.Context, id string) (Thread, error) {
	k.updates++
	k.without(id)
	k.changed(ctx)
	return k.told(), nil
}

// delete ends everything. The thread is gone at once; the server deletes its runs in its own time.
func (k *keeper) delete(ctx workflow.Context) (Thread, error) {
	k.updates++
	for i := range k.thread.Runs {
		if r := &k.thread.Runs[i]; !r.Over() {
			r.Cancel, r.Version = Interrupt, k.thread.Version+1
		}
	}
	k.thread.Deleted = true
	k.changed(ctx)
	k.tell(ctx)
	return k.told(), workflow.ExecuteActivity(brief(ctx), activityErase, k.thread.Under).Get(ctx, nil)
}

func (k *keeper) note(ctx workflow.Context, n note) (Thread, error) {
	k.updates++
	k.thread.Stands, k.thread.Failure = n.Stands, nil
	k.thread.Edits++
	k.thread.Hidden = append(k.thread.Hidden, n.Hidden...)
	k.changed(ctx)
	k.tell(ctx)
	return k.told(), nil
}

func (k *keeper) await(ctx workflow.Context, a await) (Thread, error) {
	k.updates++
	_, err := workflow.AwaitWithTimeout(ctx, awaitTime, func() bool { // a run that ends waits for nobody
		return k.thread.Version > a.Behind || k.thread.Deleted || k.moves(ctx)
	})
	return k.thread.since(a.Behind), err
}
