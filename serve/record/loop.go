package record

import (
	"errors"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/thread"
)

// begun is how a run began.
type begun struct {
	Before string `json:"before,omitempty"`
	Place  string `json:"place"`
}

// ending is how a run ended, and how the thread stands then.
type ending struct {
	Status  string   `json:"status"`
	Failure *Failure `json:"failure,omitempty"`
	Stands  string   `json:"stands,omitempty"`
}

// back is what a rollback took back.
type back struct {
	Hidden []string `json:"hidden,omitempty"`
	Stands string   `json:"stands"`
	// Late says that the run had ended by itself, with success: it stays.
	Late bool `json:"late,omitempty"`
}

// brief are the options of activities that end soon. They are tried again for as long as it takes. Whoever has one tells that it still
// has: what a server was at when it was killed is soon another one's.
func brief(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute, HeartbeatTimeout: 10 * time.Second, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1.5, MaximumInterval: 3 * time.Second}})
}

// long are those of an activity that lasts as long as the run does. Whoever has it tells that it still has.
func long(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: 10 * 365 * 24 * time.Hour, HeartbeatTimeout: 10 * time.Second,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 1.5, MaximumInterval: 3 * time.Second}})
}

// run leads one run from its turn to its end, or until the record moves: the error is errMoves then.
func (k *keeper) run(ctx workflow.Context, id string) error {
	k.current = id
	e, failed := k.invoke(ctx, id)
	switch {
	case errors.Is(failed, errMoves):
		return errMoves
	case errors.Is(failed, errYields):
		k.current = ""
		return nil
	}
	if failed != nil {
		e = k.refused(id, failureOf(failed))
	}
	if r := k.thread.Run(id); r != nil && r.Cancel == Rollback && r.Place != "" {
		e = k.rollBack(ctx, r, e)
	}
	k.current = ""
	k.after(ctx, k.over(ctx, id, e))
	return nil
}

// refused is the end of a run whose beginning was refused, or that could not be followed. A thread that asks goes on asking when it refuses
// an answer: inboxes look for it by that.
func (k *keeper) refused(id string, why *Failure) ending {
	e := ending{Status: Failed, Failure: why, Stands: Errors}
	if r := k.thread.Run(id); r != nil && r.Place == "" && k.thread.Stands == Waits && k.thread.Failure == nil {
		e.Stands = ""
	}
	return e
}

// errMoves says that the record goes on as a new workflow run, which leads the thread's run on.
var errMoves = errors.New("the record goes on as a new run")

// errYields says that a run that is put off lets another one go first.
var errYields = errors.New("another run goes first")

// next is the run that is under way or whose turn it is, nil when there is none: that which was asked for first, unless it is put off and
// another one is not, or is so for less long.
func (k *keeper) next(ctx workflow.Context) *Run {
	var next *Run
	for i := range k.thread.Runs {
		r := &k.thread.Runs[i]
		switch {
		case r.Over():
		case r.Begins || r.Place != "":
			return r
		case next == nil || next.putOff(workflow.Now(ctx)) && r.before(next, workflow.Now(ctx)):
			next = r
		}
	}
	return next
}

// putOff reports whether a run that waits lets others go first.
func (r *Run) putOff(now time.Time) bool { return r.Cancel == "" && r.Due.After(now) }

// before reports whether a run goes before another one that is put off.
func (r *Run) before(other *Run, now time.Time) bool {
	return !r.putOff(now) || r.Due.Before(other.Due)
}

// turn puts a run in front of those that wait: the order of runs is that in which they are begun.
func (k *keeper) turn(id string) {
	first := slices.IndexFunc(k.thread.Runs, func(r Run) bool { return !r.Over() })
	at := slices.IndexFunc(k.thread.Runs, func(r Run) bool { return r.ID == id })
	if first >= 0 && at > first {
		r := k.thread.Runs[at]
		k.thread.Runs = slices.Insert(slices.Delete(k.thread.Runs, at, at+1), first, r)
	}
}

// until waits for a condition, or for the record to move.
func (k *keeper) until(ctx workflow.Context, condition func() bool) error {
	k.standing = true
	err := workflow.Await(ctx, func() bool { return condition() || k.moves(ctx) })
	k.standing = false
	if err == nil && !condition() {
		return errMoves
	}
	return err
}

// invoke begins a run when its time has come, and waits for its end. One that an earlier run of the record has begun is gone on with.
func (k *keeper) invoke(ctx workflow.Context, id string) (ending, error) {
	cancelled := func() bool { r := k.thread.Run(id); return r == nil || r.Cancel != "" }
	if r := k.thread.Run(id); r.Place == "" {
		if err := k.due(ctx, r, cancelled); err != nil {
			return ending{}, err
		}
		if cancelled() {
			return ending{Status: Interrupted}, nil
		}
		k.turn(id)
		if r := k.thread.Run(id); r.Refused != nil {
			return ending{}, temporal.NewNonRetryableApplicationError(r.Refused.Message, r.Refused.Type, nil)
		}
		b, err := k.begin(ctx, id, cancelled)
		if temporal.IsCanceledError(err) {
			return ending{Status: Interrupted}, nil
		} else if err != nil {
			return ending{}, err
		}
		r = k.thread.Run(id)
		r.Status, r.Before, r.Place = Running, b.Before, b.Place
		r.Began, r.Updated = workflow.Now(ctx), workflow.Now(ctx)
		k.thread.Version++
		r.Version = k.thread.Version
	}
	settles := workflow.ExecuteActivity(long(ctx), activitySettle, k.thread.Under)
	if err := k.until(ctx, func() bool { return settles.IsReady() || cancelled() }); err != nil {
		return ending{}, err
	}
	if !settles.IsReady() {
		if err := workflow.ExecuteActivity(brief(ctx), activityStop, k.thread.Under, k.thread.Run(id).Cancel, k.thread.Run(id).CancelledBy).Get(ctx, nil); err != nil {
			return ending{}, err
		}
		if err := k.until(ctx, settles.IsReady); err != nil {
			return ending{}, err
		}
	}
	var e ending
	err := settles.Get(ctx, &e)
	if err == nil && cancelled() && e.Status != Success {
		e.Status, e.Failure = Interrupted, nil
	}
	return e, err
}

// due waits until a run that was put off is due, or cancelled. The error is errYields when another one goes first.
func (k *keeper) due(ctx workflow.Context, r *Run, cancelled func() bool) error {
	if r.Delay <= 0 {
		return nil
	}
	within, stop := workflow.WithCancel(ctx)
	defer stop()
	timer := workflow.NewTimer(within, r.Due.Sub(workflow.Now(ctx)))
	id := r.ID
	yields := func() bool { next := k.next(ctx); return next != nil && next.ID != id }
	err := k.until(ctx, func() bool { return timer.IsReady() || cancelled() || yields() })
	if err == nil && !timer.IsReady() && !cancelled() {
		err = errYields
	}
	return err
}

// begin invokes the thread. Whether an attempt of which nothing was heard has done so, the next one finds out.
func (k *keeper) begin(ctx workflow.Context, id string, cancelled func() bool) (b begun, err error) {
	if err := k.awaitVacant(ctx); err != nil {
		return b, err
	}
	r := k.thread.Run(id)
	if r == nil || cancelled() {
		return b, temporal.NewCanceledError()
	}
	start, again := r.Start, r.Begins
	start.Thread, r.Begins = k.thread.Under, true
	within, stop := workflow.WithCancel(ctx)
	defer stop()
	begins := workflow.ExecuteActivity(brief(within), activityBegin, start, again)
	moves := k.until(ctx, func() bool { return begins.IsReady() || cancelled() })
	if moves != nil && !errors.Is(moves, errMoves) {
		return b, moves
	}
	if !begins.IsReady() {
		stop()
	}
	if err = begins.Get(ctx, &b); moves != nil && temporal.IsCanceledError(err) {
		err = moves
	}
	return b, err
}

// awaitVacant waits until the server has deleted the states of an earlier thread of that id, so that this one has its states, and its nodes
// hear of it, under the same id. Where that takes too long it keeps another one.
func (k *keeper) awaitVacant(ctx workflow.Context) error {
	if !k.thread.Anew {
		return nil
	}
	vacant := false
	if err := workflow.ExecuteActivity(brief(ctx), activityVacant, k.thread.ID).Get(ctx, &vacant); err != nil {
		return err
	}
	if k.thread.Anew && vacant {
		k.thread.Under = k.thread.ID
	}
	k.thread.Anew = false
	return nil
}

// rollBack takes the thread back to where the run found it. Where that cannot be done the run stays, and its failure says why; one that
// had ended before stays as it ended.
func (k *keeper) rollBack(ctx workflow.Context, r *Run, ended ending) ending {
	var b back
	of := Run{ID: r.ID, Before: r.Before, CancelledBy: r.CancelledBy, Start: thread.StartRequest{Thread: k.thread.Under}}
	if err := workflow.ExecuteActivity(brief(ctx), activityRollback, of).Get(ctx, &b); err != nil {
		return ending{Status: Failed, Failure: failureOf(err), Stands: Errors}
	}
	if b.Late {
		if r := k.thread.Run(of.ID); r != nil {
			r.Cancel = ""
		}
		return ended
	}
	k.thread.Hidden = append(k.thread.Hidden, b.Hidden...)
	if over := len(k.thread.Hidden) - mostHidden; over > 0 {
		k.thread.Hidden = k.thread.Hidden[over:]
	}
	return ending{Status: Interrupted, Stands: b.Stands}
}

// mostHidden bounds the checkpoints that are remembered as taken back: the newest ones count.
const mostHidden = 5000

// after sees to it that a webhook is told of the end, and deletes a thread that was only for this run.
func (k *keeper) after(ctx workflow.Context, r Run) {
	told := func() bool { return true }
	if r.Webhook != "" {
		metadata := maps.Clone(k.thread.Metadata)
		//workflowcheck:ignore A copy does not depend on the order in which the members come.
		maps.Copy(metadata, r.Metadata)
		r.Metadata = metadata
		told = k.tellWebhook(ctx, r)
	}
	if !r.Forget {
		return
	}
	others := func() bool { return k.thread.Deleted || k.thread.Busy() }
	if r.Read {
		if _, err := workflow.AwaitWithTimeout(ctx, readTime, func() bool { return k.thread.Run(r.ID) == nil || others() }); err != nil {
			return
		}
	}
	if err := workflow.Await(ctx, func() bool { return told() || others() }); err != nil {
		return
	}
	if !others() {
		if _, err := k.delete(ctx); err != nil {
			workflow.GetLogger(ctx).Warn("a thread was not deleted", "error", err)
		}
	}
}

// ended is the end of a run, of which its webhook is told.
type ended struct {
	Thread string `json:"thread"`
	// Run is the run as it ended.
	Run Run `json:"run"`
	// Under is the thread that had its states then, and At the checkpoint at which the run has left it, "" for none.
	Under string `json:"under"`
	At    string `json:"at,omitempty"`
}

// tellWebhook begins to tell a webhook of a run's end, and returns what reports whether that is over. A workflow of its own does it: whoever
// answers slowly, or not at all, holds up no other run, and the record may go on as a new run or be deleted meanwhile. Where the run has
// left the thread is found out before the next one begins.
func (k *keeper) tellWebhook(ctx workflow.Context, r Run) (over func() bool) {
	e := ended{Thread: k.thread.ID, Run: r.told(), Under: k.thread.Under}
	if r.Status != RolledBack {
		if err := workflow.ExecuteActivity(brief(ctx), activityStanding, e.Under).Get(ctx, &e.At); err != nil {
			workflow.GetLogger(ctx).Warn("a webhook is told of a run's end without the values", "run", r.ID, "error", err)
		}
	}
	tells := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: webhookWorkflow + "/" + r.ID,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE, ParentClosePolicy: enumspb.PARENT_CLOSE_POLICY_ABANDON}), webhookWorkflow, e)
	if err := tells.GetChildWorkflowExecution().Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Warn("a webhook is not told of a run's end", "run", r.ID, "error", err)
	}
	return tells.IsReady
}

// tellEnd is the workflow that tells a webhook of a run's end, at least once, unless that fails six times.
func tellEnd(ctx workflow.Context, e ended) error {
	tries := workflow.WithRetryPolicy(brief(ctx), temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumAttempts: 6})
	return workflow.ExecuteActivity(tries, activityWebhook, e).Get(ctx, nil)
}

// readTime is how long whoever asked for a run has to read what it has led to.
const readTime = 2 * time.Minute

// failureOf is an activity's error as clients see it.
func failureOf(err error) *Failure {
	var said *temporal.ApplicationError
	if asApplication(err, &said) {
		return &Failure{Type: said.Type(), Message: said.Message()}
	}
	return &Failure{Type: "Error", Message: err.Error()}
}
