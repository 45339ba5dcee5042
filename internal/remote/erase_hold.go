package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// While the values of a thread are removed a workflow without a worker, the hold, has its id. So no run of the thread can begin whose
// values would go with the others. The rule:
//
//   - whoever starts a run has stored its values by then. Where the hold is open the start is refused, and its values are nobody's;
//   - a hold ends heldFor after the last value was removed, or later. A start that took longer than heldFor, from before its values were
//     stored to the server's reply, may have begun behind a hold in which they went: it looks for them, as does the eraser at its end. See
//     [server.beganWhole];
//   - an eraser removes values for as long as it knows its hold to be open, with no other one that wants it: leased from when it last
//     asked. Another one says so by asking the hold to cancel, and waits for longer than that before it ends it.
//
// The server removes a hold that is open at once, but a run that has just ended only after a while: half a minute, as it comes. A hold
// that nobody ends is over after holdTime. One that is over holds nobody up: see [server.holdBehind].
const (
	heldFor  = 250 * time.Millisecond
	leased   = 3 * time.Second
	holdTime = 10 * time.Minute
)

// isHold reports whether a workflow is a hold.
func isHold(d *workflowservice.DescribeWorkflowExecutionResponse) bool {
	return d.GetWorkflowExecutionInfo().GetType().GetName() == protocol.ErasureWorkflow
}

// beingErased refuses a call on a thread that is held.
func beingErased(id string) *thread.Error {
	return &thread.Error{Kind: thread.ErrErasing, Thread: id, Message: fmt.Sprintf("thread %q is being erased", id),
		Do:      fmt.Sprintf("Try again in a moment. An erasure that was killed holds the thread for %v at most, or until it is called again", holdTime),
		Command: []string{"erase", id, "--yes"}}
}

// hold is the hold of one eraser.
type hold struct {
	run     string
	emptied time.Time // when the last value had gone; zero before
}

// holdID takes the id of the thread. It fails when a run has begun since the runs were read, or while it looks.
func (e *eraser) holdID(ctx context.Context, own *threadRuns) error {
	newest, err := e.described(ctx, own.id, "")
	switch {
	case err != nil:
		return err
	case isHold(newest) && isOpen(newest):
		if err := e.takeOver(ctx, runID(newest)); err != nil {
			return err
		}
	case newest != nil && !isHold(newest) && runID(newest) != runID(own.newest):
		return e.begunMeanwhile(own.id)
	}
	reply, err := e.temporal.WorkflowService().StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace: e.cfg.Namespace, WorkflowId: own.id, RequestId: uuid.NewString(), Identity: e.cfg.Identity,
		WorkflowType:             &commonpb.WorkflowType{Name: protocol.ErasureWorkflow},
		TaskQueue:                &taskqueuepb.TaskQueue{Name: protocol.ErasureWorkflow, Kind: enumspb.TASK_QUEUE_KIND_NORMAL}, // nobody's
		WorkflowExecutionTimeout: durationpb.New(holdTime),
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
	})
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		return cmp.Or(e.held(ctx, own.id), e.begunMeanwhile(own.id))
	}
	if err != nil {
		return err
	}
	e.hold.run = reply.GetRunId()
	own.holds = append(own.holds, e.hold.run)
	return e.knowsAll(ctx, *own)
}

func (e *eraser) begunMeanwhile(id string) error {
	return e.isOpen(id, "a run of it has begun meanwhile", []string{"show", id})
}

// knowsAll holds that no run has begun and ended between the last look and the hold. The index is a moment behind: where it has the hold,
// it has what was before.
func (e *eraser) knowsAll(ctx context.Context, own threadRuns) error {
	var listed []*commonpb.WorkflowExecution
	err := e.until(ctx, "the server's index does not have the hold of thread "+own.id, func() (is bool, err error) {
		listed, err = e.listed(ctx, "WorkflowId = "+quotedInQuery(own.id))
		return slices.ContainsFunc(listed, func(run *commonpb.WorkflowExecution) bool { return run.GetRunId() == e.hold.run }), err
	})
	for _, run := range listed {
		if own.has(run.GetRunId()) {
			continue
		}
		d, err := e.described(ctx, own.id, run.GetRunId())
		if err != nil || d != nil && !isHold(d) { // the index still has what was removed a moment ago
			return cmp.Or(err, e.begunMeanwhile(own.id))
		}
	}
	return err
}

// whileHeld calls with a context that ends when the hold may have ended.
func (e *eraser) whileHeld(ctx context.Context, id string, do func(context.Context) error) error {
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lost := &thread.Error{Kind: thread.ErrErasing, Thread: id, Message: fmt.Sprintf("the erasure of thread %q was interrupted: it lasted too long, or somebody else erases it", id),
		Do: "Erase it again", Command: []string{"erase", id, "--yes"}}
	lease := time.AfterFunc(leased, func() { cancel(lost) })
	defer lease.Stop()
	look := func() error {
		asked := time.Now()
		d, err := e.described(held, id, e.hold.run)
		switch {
		case err != nil:
		case d == nil || !isOpen(d) || d.GetWorkflowExtendedInfo().GetCancelRequested():
			cancel(lost)
		case held.Err() == nil:
			lease.Reset(time.Until(asked.Add(leased)))
		}
		return err
	}
	if err := look(); err != nil {
		return err
	}
	go func() {
		tick := time.NewTicker(leased / 5)
		defer tick.Stop()
		for {
			select {
			case <-held.Done():
				return
			case <-tick.C:
				_ = look() // the lease may outlast that
			}
		}
	}()
	err := do(held)
	if held.Err() != nil && ctx.Err() == nil {
		return lost
	}
	return err
}

// letGo ends the hold, and removes it with those that other erasures have left.
func (e *eraser) letGo(ctx context.Context, own threadRuns) error {
	for _, run := range own.holds {
		if run == e.hold.run {
			if err := pass(ctx, time.Until(e.hold.emptied.Add(heldFor))); err != nil {
				return err
			}
		}
		if err := e.delete(ctx, own.id, run); err != nil {
			return err
		}
	}
	return nil
}

// giveUp lets others begin again at once after an erasure that failed; should that fail too, the hold ends in its time. A context that
// has ended is no reason not to.
func (e *eraser) giveUp(ctx context.Context) {
	if e.hold.run == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	_ = pass(ctx, heldFor)
	_ = e.delete(ctx, e.Thread, e.hold.run)
}

// takeOver ends another eraser's hold, when that one certainly removes nothing any more.
func (e *eraser) takeOver(ctx context.Context, run string) error {
	_, err := e.temporal.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace: e.cfg.Namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: e.Thread, RunId: run}, RequestId: uuid.NewString()})
	var over *serviceerror.NotFound
	if err != nil && !errors.As(err, &over) {
		return err
	}
	err = e.goneOr(ctx, run, leased+heldFor)
	if err != nil {
		return err
	}
	return e.delete(ctx, e.Thread, run)
}

// goneOr waits until a hold is over, or for so long: its eraser lets it go when it ends.
func (e *eraser) goneOr(ctx context.Context, run string, most time.Duration) error {
	for late := time.Now().Add(most); time.Now().Before(late); {
		d, err := e.described(ctx, e.Thread, run)
		if err != nil || d == nil || !isOpen(d) {
			return err
		}
		if err := pass(ctx, heldFor); err != nil {
			return err
		}
	}
	return nil
}

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// held refuses a call on a thread that is held; nil while it is not, or when that cannot be told.
func (c *server) held(ctx context.Context, id string) error {
	if d, err := c.described(ctx, id, ""); err == nil && d != nil && isHold(d) && isOpen(d) {
		return beingErased(id)
	}
	return nil
}

// holdBehind is the hold that is over and has the id of a thread that is to begin, nil for none: the server refuses a new thread where it
// has a run of that id, so the thread begins behind that as another one continues its last run. An open hold is an error.
func (c *server) holdBehind(ctx context.Context, id string) (*lastRun, error) {
	d, err := c.described(ctx, id, "")
	switch {
	case err != nil || d == nil || !isHold(d):
		return nil, err
	case isOpen(d):
		return nil, beingErased(id)
	}
	return &lastRun{kind: protocol.ErasureWorkflow, thread: id, runID: runID(d)}, nil
}

// beganWhole holds that the values of a run that began lie in the storage. Where they went with those of an erased thread the run is removed,
// which no worker could begin. since is from before they were stored.
func (c *server) beganWhole(ctx context.Context, id, run string, since time.Time) error {
	if c.cfg.Storage == nil || time.Since(since) <= heldFor {
		return nil
	}
	first, err := c.startOf(ctx, id, run)
	if err != nil || first.GetInput() == nil {
		return nil // it is the run's to say
	}
	space, there := storage.SpaceOf(c.cfg.Namespace, id), map[string]bool{}
	missing := false
	err = c.cfg.Storage.References(ctx, first.GetInput(), func(name string) error {
		if !strings.HasPrefix(name, space+"/") || missing {
			return nil
		}
		if len(there) == 0 {
			all, err := c.cfg.Storage.List(ctx, space)
			if err != nil {
				return err
			}
			there[""] = true
			for _, o := range all {
				there[o.Name] = true
			}
		}
		missing = !there[name]
		return nil
	})
	if missing = missing || errors.Is(err, storage.ErrMissing); !missing {
		return nil
	}
	if err := c.delete(ctx, id, run); err != nil {
		return err
	}
	e := beingErased(id)
	e.Message, e.Do, e.Command = fmt.Sprintf("thread %q was erased while a run of it was begun; the run is removed, and nothing of it was done", id), "Begin it again", nil
	return e
}
