package record

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// The activities of a record.
const (
	activityBegin    = "begin"
	activitySettle   = "settle"
	activityStop     = "stop"
	activityRollback = "rollback"
	activityErase    = "erase"
	activityCopy     = "copy"
	activityStanding = "standing"
	activityWebhook  = "webhook"
	activityVacant   = "vacant"
)

// Threads are what runs the threads: a *superstep.Client.
type Threads interface {
	Start(ctx context.Context, r thread.StartRequest) (thread.View, error)
	Wait(ctx context.Context, thread string) (thread.View, error)
	Cancel(ctx context.Context, r thread.CancelRequest) (thread.View, error)
	State(ctx context.Context, r thread.StateRequest) (thread.StateView, error)
	History(ctx context.Context, r thread.HistoryRequest) ([]thread.CheckpointView, error)
	Update(ctx context.Context, r thread.UpdateRequest) (thread.StateView, error)
	Fork(ctx context.Context, r thread.ForkRequest) (thread.View, error)
	Offset(v thread.View) string
}

// activities does what records ask for.
type activities struct {
	threads  Threads
	temporal client.Client
	cfg      Config
}

func asApplication(err error, into **temporal.ApplicationError) bool { return errors.As(err, into) }

// final are the errors that do not go away by trying again.
var final = []error{thread.ErrBadInput, thread.ErrNotFound, thread.ErrAnswerRefused, thread.ErrNotFailed}

// told is an error as the record takes it: one that does not go away ends the run.
func told(err error) error {
	for _, kind := range final {
		if errors.Is(err, kind) {
			return temporal.NewNonRetryableApplicationError(err.Error(), "ValueError", nil)
		}
	}
	return err
}

// begin invokes the thread. The request's id is the run's, so an attempt that follows one of which nothing was heard finds what that
// one has begun; again says that an earlier activity may have had such attempts.
func (a *activities) begin(ctx context.Context, r thread.StartRequest, again bool) (begun, error) {
	ctx, done := atWork(ctx)
	defer done()
	if again || activity.GetInfo(ctx).Attempt > 1 {
		b, found, err := a.hasBegun(ctx, r)
		if err != nil || found {
			return b, err
		}
	}
	before, err := a.threads.State(ctx, thread.StateRequest{Thread: r.Thread})
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return begun{}, err
	}
	if given := asGiven(r); err != nil && given.Input == nil && given.Control == nil && given.Resume == nil {
		return begun{}, temporal.NewNonRetryableApplicationError("Received no input for __start__", "EmptyInputError", nil)
	}
	view, err := a.threads.Start(ctx, toOpen(asGiven(r), before.Questions))
	if errors.Is(err, thread.ErrRunning) && before.Status == thread.StatusPaused {
		return begun{}, temporal.NewNonRetryableApplicationError("the thread is paused, and takes no run until it is unpaused", paused, nil)
	}
	if err != nil {
		return begun{}, told(err)
	}
	return begun{Before: before.Checkpoint, Place: a.threads.Offset(view)}, nil
}

// asGiven is a request as it was before it was stored: what was not given is null there.
func asGiven(r thread.StartRequest) thread.StartRequest {
	for _, v := range []*json.RawMessage{&r.Input, &r.Context} {
		if string(*v) == "null" {
			*v = nil
		}
	}
	return r
}

// toOpen leaves of answers by id those to questions that are open. Clients send the others too, for what somebody else has answered
// meanwhile and for what they take for questions of the thread: these change nothing. A request that is left without any goes on where
// the thread stands, which asks what is open once more. What is asked at an earlier checkpoint is not known here: such answers stay.
func toOpen(r thread.StartRequest, open []thread.Question) thread.StartRequest {
	if r.Resume == nil || r.Resume.ByID == nil || r.Checkpoint != "" {
		return r
	}
	left := *r.Resume
	left.ByID = maps.Clone(left.ByID)
	maps.DeleteFunc(left.ByID, func(id string, _ json.RawMessage) bool {
		return !slices.ContainsFunc(open, func(q thread.Question) bool { return q.ID == id })
	})
	if r.Resume = &left; len(left.ByID) == 0 {
		r.Resume = nil
	}
	return r
}

// hasBegun looks for the request in the thread's newest run: in its memo, or among the updates that it took.
func (a *activities) hasBegun(ctx context.Context, r thread.StartRequest) (begun, bool, error) {
	described, err := a.temporal.DescribeWorkflowExecution(ctx, r.Thread, "")
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return begun{}, false, nil
	}
	if err != nil {
		return begun{}, false, err
	}
	info := described.GetWorkflowExecutionInfo()
	run := info.GetExecution().GetRunId()
	var call string
	if p, ok := info.GetMemo().GetFields()[protocol.MemoStart]; ok {
		if err := a.cfg.converter().FromPayload(p, &call); err != nil {
			return begun{}, false, err
		}
	}
	if call == r.ID {
		return begun{Place: a.threads.Offset(thread.View{Thread: r.Thread, RunID: run})}, true, nil
	}
	events := a.temporal.GetWorkflowHistory(ctx, r.Thread, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return begun{}, false, err
		}
		taken := e.GetWorkflowExecutionUpdateAcceptedEventAttributes()
		if taken.GetProtocolInstanceId() == r.ID {
			return begun{Place: a.threads.Offset(thread.View{Thread: r.Thread, RunID: run, Events: e.GetEventId() - 1})}, true, nil
		}
	}
	return begun{}, false, nil
}

// settle waits until the thread rests.
func (a *activities) settle(ctx context.Context, threadID string) (ending, error) {
	defer beat(ctx)()
	view, err := a.threads.Wait(ctx, threadID)
	if err != nil {
		return ending{}, told(err)
	}
	e := ending{Status: Success, Stands: Idle}
	switch {
	case view.Status == thread.StatusFinished:
		return e, nil // nothing is left to do, and nothing is asked
	case view.Status.Failed():
		return ending{Status: Failed, Stands: Errors, Failure: FailureOf(view)}, nil
	case view.Status == thread.StatusCancelled, view.Status == thread.StatusTerminated:
		e.Status = Interrupted
	}
	state, err := a.threads.State(ctx, thread.StateRequest{Thread: threadID})
	if err != nil {
		return ending{}, told(err)
	}
	e.Stands = StandsOf(state)
	if view.Status == thread.StatusPaused && len(state.Questions) == 0 {
		e = ending{Status: Failed, Stands: Errors, Failure: &Failure{Type: paused, Message: pausedBy(view.Paused)}}
	}
	return e, nil
}

// paused is the type of the failure of a run that somebody has paused, as superstep pause does.
const paused = "ThreadPaused"

func pausedBy(p *thread.PauseView) string {
	text := "the run was paused"
	if p != nil && p.By != "" {
		text += " by " + p.By
	}
	if p != nil && p.Reason != "" {
		text += " (" + p.Reason + ")"
	}
	return text + ": it goes on when it is unpaused, and what it does then is in the thread's state"
}

// atWork tells that a brief activity is at work until it is done. It works on when it is wanted no more: whether it has begun what it was
// to begin, its caller learns from its end.
func atWork(ctx context.Context) (work context.Context, done func()) {
	stop := beat(ctx)
	work, end := context.WithDeadline(context.WithoutCancel(ctx), activity.GetInfo(ctx).Deadline)
	return work, func() { end(); stop() }
}

// beat tells that an activity is at work until it is stopped.
func beat(ctx context.Context) (stop func()) {
	ctx, stop = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(3 * time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx)
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// StandsOf is the status of a thread that has this state and no run under way.
func StandsOf(s thread.StateView) string {
	switch {
	case s.Status.Failed():
		return Errors
	case len(s.Next) > 0 || len(s.Questions) > 0:
		return Waits
	}
	return Idle
}

// FailureOf is why a run failed, as clients are told.
func FailureOf(v thread.View) *Failure {
	switch {
	case v.Failure == nil:
		return &Failure{Type: "Error", Message: v.Error}
	case v.Status == thread.StatusOutOfBudget && strings.Contains(strings.ToLower(v.Failure.Type), "recursion"):
		return &Failure{Type: "GraphRecursionError", Message: v.Failure.Message}
	}
	if of := unknownMessage.FindStringSubmatch(v.Failure.Message); of != nil {
		if id, err := strconv.Unquote(of[1]); err == nil {
			return &Failure{Type: "ValueError", Message: "Attempting to delete a message with an ID that doesn't exist ('" + id + "')"}
		}
	}
	return &Failure{Type: v.Failure.Type, Message: v.Failure.Message}
}

// unknownMessage is how a run fails that removes a message which is not there: clients know another name and another text for it.
var unknownMessage = regexp.MustCompile(`messages/v1: cannot remove the message ("(?:[^"\\]|\\.)*"): no message has that id$`)

// stop ends a thread's run, and returns when it has ended.
func (a *activities) stop(ctx context.Context, threadID, how, by string) error {
	ctx, done := atWork(ctx)
	defer done()
	mode := thread.CancelKeep
	if how == Rollback {
		mode = thread.CancelRollback
	}
	_, err := a.threads.Cancel(ctx, thread.CancelRequest{Thread: threadID, Mode: mode, By: by, Reason: "cancelled by a client of the server"})
	if errors.Is(err, thread.ErrNotFound) {
		return nil
	}
	return err
}

// rollback waits until a run is taken back, which its end was asked for, and returns how the thread stands then. A run that ended by
// itself before it heard of that is taken back behind it.
func (a *activities) rollback(ctx context.Context, r Run) (back, error) {
	ctx, done := atWork(ctx)
	defer done()
	threadID := r.Start.Thread
	view, err := a.threads.Wait(ctx, threadID)
	if asked := view.Cancel != nil && view.Cancel.Mode == thread.CancelRollback; err == nil && !asked && view.Status != thread.StatusFinished {
		if err = a.stop(ctx, threadID, Rollback, r.CancelledBy); err == nil {
			view, err = a.threads.Wait(ctx, threadID)
		}
	}
	switch {
	case err != nil:
		return back{}, told(err)
	case view.Status == thread.StatusFinished:
		return back{Late: true}, nil
	case view.Cancel == nil || !view.Cancel.Back:
		return back{}, temporal.NewNonRetryableApplicationError(whyNotBack(view.Cancel), "RollbackRefused", nil)
	}
	return a.tookBack(ctx, threadID, r.Before)
}

// whyNotBack says why a run was not taken back.
func whyNotBack(c *thread.CancelView) string {
	switch {
	case c == nil:
		return "the run was ended in another way before it could be rolled back: its checkpoints stay"
	case len(c.Left) > 0:
		of := c.Left[0]
		text := fmt.Sprintf("the run wrote outside (%s, key %s), and that was not undone: its checkpoints stay", of.Effect, of.Key)
		if of.Reason != "" {
			text += ": " + of.Reason
		}
		if others := len(c.Left) - 1 + c.More; others > 0 {
			text += fmt.Sprintf(" (and %d more)", others)
		}
		return text
	}
	return "the run was not rolled back, its checkpoints stay: " + cmp.Or(c.Halted, c.Problem)
}

// tookBack is how a thread stands that was taken back to a checkpoint, "" for none, and the checkpoints that do not count any more.
func (a *activities) tookBack(ctx context.Context, threadID, before string) (b back, err error) {
	made, err := a.threads.History(ctx, thread.HistoryRequest{Thread: threadID})
	if err != nil && !errors.Is(err, thread.ErrNotFound) {
		return b, told(err)
	}
	for _, c := range made {
		if c.Checkpoint == before {
			break
		}
		b.Hidden = append(b.Hidden, c.Checkpoint)
	}
	b.Stands = Idle
	state, err := a.threads.State(ctx, thread.StateRequest{Thread: threadID})
	if err == nil {
		b.Stands = StandsOf(state)
	} else if errors.Is(err, thread.ErrNotFound) {
		err = nil
	}
	return b, told(err)
}

// copy makes a thread that stands where another one stands, and returns how. One without a checkpoint leaves nothing to stand at.
func (a *activities) copy(ctx context.Context, from, as, by string) (stands string, err error) {
	ctx, done := atWork(ctx)
	defer done()
	state, err := a.threads.State(ctx, thread.StateRequest{Thread: as})
	if errors.Is(err, thread.ErrNotFound) { // else an attempt before has made it
		_, failed := a.threads.Fork(ctx, thread.ForkRequest{Thread: from, As: as, Copy: true, By: by})
		if errors.Is(failed, thread.ErrNotFound) {
			return "", nil
		}
		if state, err = a.threads.State(ctx, thread.StateRequest{Thread: as}); failed != nil && errors.Is(err, thread.ErrNotFound) {
			err = failed
		}
	}
	if err != nil {
		return "", told(err)
	}
	return StandsOf(state), nil
}

// erase asks the server to delete all runs of a thread, which it does in its own time: those that its index has, and the newest.
func (a *activities) erase(ctx context.Context, threadID string) error {
	ctx, done := atWork(ctx)
	defer done()
	runs := []string{""}
	page, err := a.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: a.cfg.Namespace, PageSize: 1000,
		Query: fmt.Sprintf("WorkflowId = %q", threadID)})
	if err != nil {
		return err
	}
	for _, e := range page.GetExecutions() {
		runs = append(runs, e.GetExecution().GetRunId())
	}
	for _, run := range runs {
		_, err := a.temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{Namespace: a.cfg.Namespace,
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: threadID, RunId: run}})
		var missing *serviceerror.NotFound
		if err != nil && !errors.As(err, &missing) {
			return err
		}
	}
	return nil
}

// vacant waits until the server has deleted all that it was asked to delete of a thread, and reports whether it has: a run that has just
// ended it keeps for some seconds, or for half a minute.
func (a *activities) vacant(ctx context.Context, threadID string) (bool, error) {
	ctx, done := atWork(ctx)
	defer done()
	within, stop := context.WithTimeout(ctx, vacantTime)
	defer stop()
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		_, err := a.temporal.DescribeWorkflowExecution(within, threadID, "")
		var missing *serviceerror.NotFound
		if errors.As(err, &missing) {
			return true, nil
		}
		select {
		case <-time.After(wait):
		case <-within.Done():
			return false, nil
		}
	}
}

// vacantTime is how long the first run of a thread waits for that.
const vacantTime = 45 * time.Second

// standing is the newest checkpoint of a thread, "" for none.
func (a *activities) standing(ctx context.Context, threadID string) (string, error) {
	ctx, done := atWork(ctx)
	defer done()
	state, err := a.threads.State(ctx, thread.StateRequest{Thread: threadID})
	if errors.Is(err, thread.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", told(err)
	}
	return state.Checkpoint, nil
}

// webhook posts the end of a run, with the values that the run has left.
func (a *activities) webhook(ctx context.Context, e ended) error {
	ctx, done := atWork(ctx)
	defer done()
	var state thread.StateView
	if e.At != "" {
		var err error
		if state, err = a.threads.State(ctx, thread.StateRequest{Thread: e.Under, Checkpoint: e.At}); err != nil && !errors.Is(err, thread.ErrNotFound) {
			return err
		}
	}
	r := e.Run
	body := map[string]any{"run_id": r.ID, "thread_id": e.Thread, "assistant_id": r.Assistant, "metadata": r.Metadata, "status": r.Status,
		"kwargs": r.Kwargs, "multitask_strategy": r.Strategy, "created_at": r.Created, "updated_at": r.Updated, "values": a.cfg.shown(ctx, state),
		"run_started_at": r.Began, "run_ended_at": r.Ended, "webhook_sent_at": time.Now().UTC()}
	switch {
	case r.Failure != nil:
		body["error"] = r.Failure
	case r.Status == Interrupted:
		body["error"] = WasCancelled()
	case r.Status == RolledBack:
		body["error"] = Failure{Type: "UserRollback", Message: "the run was cancelled and taken back"}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), "BadWebhook", nil)
	}
	return a.post(ctx, r.Webhook, raw)
}

// post sends a body to an address. An answer that is no success is an error.
func (a *activities) post(ctx context.Context, address string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return temporal.NewNonRetryableApplicationError("the webhook's address is not one", "BadWebhook", nil)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.cfg.Webhooks.Do(req)
	if err != nil {
		return errors.New("the webhook was not reached")
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the webhook answered %s", resp.Status)
	}
	return nil
}
