package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/thread"
)

// prefix begins the workflow ids of records.
const prefix = "superstep.thread-record/"

// IDOf is the thread whose record a workflow id names.
func IDOf(workflowID string) string { return strings.TrimPrefix(workflowID, prefix) }

// The errors that callers tell apart.
var (
	ErrExists  = errors.New("the thread exists already")
	ErrBusy    = errors.New("a run of the thread is under way")
	ErrMissing = errors.New("there is no such thread or run")
	// ErrTooLarge is that of metadata which lists could not carry: see MostMetadata.
	ErrTooLarge = errors.New("the metadata is too large")
)

// Records reads and changes records.
type Records struct {
	temporal client.Client
	cfg      Config
	turns    turns
	edits    turns // one at a time
	readings readings
	watches  watches
	makings  makings
}

// New returns the records of the threads of a client, and makes a worker work on them. The Temporal client is the one that the threads
// are on.
func New(c client.Client, threads Threads, w worker.Registry, cfg Config) *Records {
	w.RegisterWorkflowWithOptions(Keep, workflow.RegisterOptions{Name: Workflow})
	w.RegisterWorkflowWithOptions(tellEnd, workflow.RegisterOptions{Name: webhookWorkflow})
	a := &activities{threads: threads, temporal: c, cfg: cfg}
	for name, do := range map[string]any{activityBegin: a.begin, activitySettle: a.settle, activityStop: a.stop,
		activityRollback: a.rollback, activityErase: a.erase, activityCopy: a.copy, activityStanding: a.standing, activityVacant: a.vacant,
		activityWebhook: a.webhook} {
		w.RegisterActivityWithOptions(do, activity.RegisterOptions{Name: name})
	}
	return &Records{temporal: c, cfg: cfg, edits: turns{most: 1}}
}

// Config is what records need beside the threads.
type Config struct {
	Namespace, TaskQueue string
	// DataConverter is that of the Temporal client; nil for Temporal's default.
	DataConverter converter.DataConverter
	// Webhooks posts to the addresses that callers give.
	Webhooks *http.Client
	// Shown are a state's values as clients see them; nil for as they are.
	Shown func(context.Context, thread.StateView) any
}

func (c Config) converter() converter.DataConverter {
	if c.DataConverter == nil {
		return converter.GetDefaultDataConverter()
	}
	return c.DataConverter
}

func (c Config) shown(ctx context.Context, s thread.StateView) any {
	if c.Shown == nil {
		return s.Values
	}
	return c.Shown(ctx, s)
}

// refusal is what a record refuses, in its own words, as callers tell it apart.
type refusal struct {
	kind error
	says string
}

// Error implements error in one line.
func (r *refusal) Error() string { return r.says }

// Unwrap lets errors.Is see the kind.
func (r *refusal) Unwrap() error { return r.kind }

// explained is a record's refusal as callers know it.
func explained(err error) error {
	var refused *temporal.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &refused):
		for kind, known := range map[string]error{errExists: ErrExists, errBusy: ErrBusy, errMissing: ErrMissing, errGone: ErrMissing, errLarge: ErrTooLarge} {
			if refused.Type() == kind {
				return &refusal{known, refused.Message()}
			}
		}
	case errors.As(err, &missing):
		return ErrMissing // the server names the workflow, which callers do not know
	}
	return err
}

// change asks a record to change, when it is its turn.
func (r *Records) change(ctx context.Context, threadID, id, name string, args ...any) (Thread, error) {
	done, err := r.turns.take(ctx, threadID)
	if err != nil {
		return Thread{}, err
	}
	defer done()
	return r.update(ctx, threadID, id, name, args...)
}

// update sends an update to a record, and tries again where the record was just ending or being continued.
func (r *Records) update(ctx context.Context, threadID, id, name string, args ...any) (t Thread, err error) {
	for range 5 {
		var handle client.WorkflowUpdateHandle
		handle, err = r.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: prefix + threadID, UpdateID: id, UpdateName: name,
			Args: args, WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			err = handle.Get(ctx, &t)
		}
		var aborted *serviceerror.Aborted
		if !errors.As(err, &aborted) {
			break
		}
	}
	return t, explained(err)
}

// Create makes a thread. With exists one that is there is returned as it is.
func (r *Records) Create(ctx context.Context, threadID string, metadata map[string]json.RawMessage, exists bool) (Thread, error) {
	if err := checkSize(metadata); err != nil { // before there is a record, which would be left empty
		return Thread{}, explained(err)
	}
	return r.create(ctx, threadID, put{Create: true, Exists: exists, Metadata: metadata})
}

// Copy makes a thread that stands where another one stands, with its history. A server that is killed meanwhile has made it, or leaves
// the rest to another one.
func (r *Records) Copy(ctx context.Context, threadID string, of Thread, by string) (Thread, error) {
	return r.create(ctx, threadID, put{Create: true, Metadata: of.Metadata, By: by,
		Copy: &Thread{ID: of.ID, Under: of.Under, Named: of.Named, Graph: of.Graph, Assistant: of.Assistant, Hidden: of.Hidden}})
}

func (r *Records) create(ctx context.Context, threadID string, p put) (t Thread, err error) {
	var begin Thread
	reuse := enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	for range 3 {
		start := r.temporal.NewWithStartWorkflowOperation(client.StartWorkflowOptions{ID: prefix + threadID, TaskQueue: r.cfg.TaskQueue,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, WorkflowIDReusePolicy: reuse,
			WorkflowTaskTimeout: 5 * time.Second}, Workflow, begin)
		var handle client.WorkflowUpdateHandle
		handle, err = r.temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start,
			UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: prefix + threadID, UpdateName: updatePut,
				Args: []any{p}, WaitForStage: client.WorkflowUpdateStageCompleted}})
		if err == nil {
			err = handle.Get(ctx, &t)
		}
		var refused *temporal.ApplicationError
		var already *serviceerror.WorkflowExecutionAlreadyStarted
		if !errors.As(err, &already) && (!errors.As(err, &refused) || refused.Type() != errGone) {
			break
		}
		// What an earlier thread of that id had is the server's to delete, in its own time: until then this one has no states.
		reuse, begin.Under, begin.Anew = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, threadID+"~"+uuid.NewString(), true
	}
	if err == nil {
		r.makings.tell(threadID)
	}
	return t, explained(err)
}

// Made returns a thread when somebody has made it. Another process may do that, which is asked for ever more seldom, at last every 5 s. The
// error is that of the context, or of a server of Temporal that does not answer.
func (r *Records) Made(ctx context.Context, threadID string) (t Thread, err error) {
	made, leave := r.makings.join(threadID)
	defer leave()
	for wait := soon; ; wait = min(2*wait, seldom) {
		if t, err = r.Get(ctx, threadID); !errors.Is(err, ErrMissing) {
			return t, err
		}
		select {
		case <-made:
		case <-time.After(wait):
		case <-ctx.Done():
			return t, ctx.Err()
		}
	}
}

// How soon a thread that is waited for is looked for again, and how seldom at last.
const (
	soon   = 200 * time.Millisecond
	seldom = 5 * time.Second
)

// Patch merges metadata.
func (r *Records) Patch(ctx context.Context, threadID string, metadata map[string]json.RawMessage) (Thread, error) {
	return r.change(ctx, threadID, "", updatePut, put{Metadata: metadata})
}

// Run asks for a run, once for each of its ids. The next run of its thread is at the stage of its Wait when Run returns, unless that takes
// longer than a while; for one that waits its turn nobody waits here. Who asks again with another Wait is told at once.
func (r *Records) Run(ctx context.Context, threadID string, run Run) (Thread, error) {
	return r.change(ctx, threadID, "run "+run.ID+" "+run.Wait, updateRun, run)
}

// Await returns when a run of a thread as it is known is at a stage, or has ended.
func (r *Records) Await(ctx context.Context, known Thread, run, stage string) (Thread, error) {
	return r.until(ctx, known, func(t Thread) bool { return t.at(run, stage) })
}

// Changed returns when a thread is not as it is known any more.
func (r *Records) Changed(ctx context.Context, known Thread) (Thread, error) {
	return r.until(ctx, known, func(t Thread) bool { return t.Version > known.Version })
}

func (r *Records) until(ctx context.Context, known Thread, wanted func(Thread) bool) (Thread, error) {
	f := r.Follow(known)
	defer f.Leave()
	return f.Until(ctx, wanted)
}

// changed waits until a record that is known as a whole has changed.
func (r *Records) changed(ctx context.Context, known Thread) (Thread, error) {
	for {
		t, err := r.update(ctx, known.ID, "", updateAwait, await{Behind: known.Version})
		if err != nil || t.Version > known.Version {
			return t.upon(known), err
		}
	}
}

// Cancel ends runs in somebody's name, and returns when they have ended, or after a while.
func (r *Records) Cancel(ctx context.Context, threadID, by, action string, runs ...string) (Thread, error) {
	t, err := r.change(ctx, threadID, "", updateCancel, cancel{Runs: runs, Action: action, By: by})
	if err != nil {
		return t, err
	}
	within, stop := context.WithTimeout(ctx, awaitTime)
	defer stop()
	ended, err := r.until(within, t, func(t Thread) bool {
		return !slices.ContainsFunc(runs, func(id string) bool { return !t.at(id, StageEnded) })
	})
	switch {
	case errors.Is(err, ErrMissing): // a thread of its own is gone with its run
		t.Deleted = true
		return t, nil
	case err != nil && ctx.Err() == nil:
		return t, nil // they take longer
	}
	return ended, err
}

// Remove forgets a run.
func (r *Records) Remove(ctx context.Context, threadID, run string) (Thread, error) {
	return r.change(ctx, threadID, "", updateRemove, run)
}

// Delete deletes a thread with its runs and checkpoints.
func (r *Records) Delete(ctx context.Context, threadID string) (Thread, error) {
	return r.change(ctx, threadID, "", updateDelete)
}

// Edit lets one of those who change the state of a thread in this process do so at a time: the engine refuses who comes second.
func (r *Records) Edit(ctx context.Context, threadID string, do func() error) error {
	done, err := r.edits.take(ctx, threadID)
	if err != nil {
		return err
	}
	defer done()
	return do()
}

// Note says how a thread stands since its state was changed.
func (r *Records) Note(ctx context.Context, threadID, stands string) (Thread, error) {
	return r.change(ctx, threadID, "", updateNote, note{Stands: stands})
}

// Get returns a thread's record.
func (r *Records) Get(ctx context.Context, threadID string) (Thread, error) {
	t, err := r.readings.get(ctx, threadID, func(ctx context.Context) (t Thread, err error) {
		value, err := r.temporal.QueryWorkflow(ctx, prefix+threadID, "", queryThread)
		if err == nil {
			err = value.Get(&t)
		}
		return t, err
	})
	if err == nil && (t.Deleted || t.ID == "") {
		err = ErrMissing
	}
	return t, explained(err)
}

// mostOrigins is how many of the threads that a thread was copied from, one from the other, are asked what their runs were.
const mostOrigins = 10

// Before returns the runs of the threads that a thread was copied from, as far as those are there, the oldest first.
func (r *Records) Before(ctx context.Context, t Thread) (runs []Run, err error) {
	for range mostOrigins {
		if t.Origin == "" {
			break
		}
		if t, err = r.Get(ctx, t.Origin); errors.Is(err, ErrMissing) {
			return runs, nil
		}
		if err != nil {
			return nil, err
		}
		runs = slices.Concat(t.Runs, runs)
	}
	return runs, nil
}

// List calls on for each thread that the server's index has, newest first, until it returns false. The index is a moment behind. Threads
// of other task queues are left out: their servers may be away, and nobody else can say how they are.
func (r *Records) List(ctx context.Context, on func(Line) bool) error {
	var token []byte
	for {
		page, err := r.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: r.cfg.Namespace, PageSize: 500,
			Query: fmt.Sprintf("WorkflowType = %q AND ExecutionStatus = \"Running\" AND TaskQueue = %q", Workflow, r.cfg.TaskQueue), NextPageToken: token})
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			var l Line
			p, ok := e.GetMemo().GetFields()[MemoThread]
			if !ok || r.cfg.converter().FromPayload(p, &l) != nil {
				continue
			}
			if !on(l) {
				return nil
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}
