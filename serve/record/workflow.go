package record

import (
	"encoding/json"
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// Workflow is the type of a record's workflow.
const Workflow = "superstep.thread_record"

// webhookWorkflow is the type of the workflow that tells a webhook of a run's end.
const webhookWorkflow = "superstep.webhook"

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
	errLarge   = "superstep.ThreadTooLarge"
)

// The stages of a run that can be waited for; "" is not waited for.
const (
	StageBegun = "begun"
	StageEnded = "ended"
)

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
		k.thread.Updated, k.thread.Moved, k.thread.Metadata = k.thread.Created, k.thread.Created, map[string]json.RawMessage{}
	}
	if err := k.listen(ctx); err != nil {
		return err
	}
	for {
		var err error
		switch next := k.next(ctx); {
		case k.thread.Deleted && k.current == "":
			return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
		case next != nil:
			err = k.run(ctx, next.ID)
		default:
			err = k.until(ctx, func() bool { return k.thread.Busy() || k.thread.Deleted })
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

// end says that a run is to end: at once while it waits its turn, else by the loop, which waits for it.
func (k *keeper) end(ctx workflow.Context, id, how, by string) {
	r := k.thread.Run(id)
	r.Cancel, r.CancelledBy, r.Updated, r.Version = how, by, workflow.Now(ctx), k.thread.Version+1
	if k.current != id {
		k.over(ctx, id, ending{Status: Interrupted})
	}
}

// over notes the end of a run, and returns the run as it ended; one that was forgotten meanwhile has no id. One that was rolled back is
// gone, unless that could not be done.
func (k *keeper) over(ctx workflow.Context, id string, e ending) Run {
	r := k.thread.Run(id)
	if r == nil {
		return Run{}
	}
	r.Status, r.Failure, r.Stands = e.Status, e.Failure, e.Stands
	r.Ended, r.Updated, r.Version = workflow.Now(ctx), workflow.Now(ctx), k.thread.Version+1
	if e.Stands != "" {
		k.thread.Stands, k.thread.Failure = e.Stands, e.Failure
	}
	k.thread.trim()
	ended := *r
	if r.Cancel == Rollback && e.Failure == nil {
		ended.Status = RolledBack
		k.without(id)
	}
	k.changed(ctx)
	k.thread.Moved = k.thread.Updated
	k.tell(ctx)
	return ended
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
