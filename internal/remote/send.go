package remote

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// update sends an update and repeats it under the same id while the run cannot take it for the moment: a worker was
// lost, or the run is between two workflow tasks. A run that is continued as a new one takes it there, and knows the id
// of what it had taken before. A refusal that may be told too early is asked for twice: see [protocol.RefusedEarly].
func (c *server) update(ctx context.Context, last *lastRun, id, name string, arg, reply any) error {
	_, err := c.updateRun(ctx, ctx, last, id, name, arg, reply)
	return err
}

// updateSoon is update for what can be stored without a worker: a busy one is not waited for longer than one that is lost.
func (c *server) updateSoon(ctx context.Context, last *lastRun, id, name string, arg, reply any) error {
	accept, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_, err := c.updateRun(ctx, accept, last, id, name, arg, reply)
	return err
}

// updateRun is update whose update has to be accepted before accept ends, and returns the run that took it. As long as there are
// workers of which none takes the update it is sent again.
func (c *server) updateRun(ctx, accept context.Context, last *lastRun, id, name string, arg, reply any) (run string, err error) {
	for {
		run, err = c.updateTry(ctx, accept, last, id, name, arg, reply)
		if errors.Is(err, errUnheard) {
			err = c.silence(accept, last)
		}
		if accept.Err() == nil && errors.Is(err, thread.ErrBusy) {
			continue
		}
		if unanswered(err) {
			return run, notTaken(err, last, id, name)
		}
		return run, c.explainUpdate(ctx, err, last.thread)
	}
}

// updateTry is one try, of which only the acceptance is bounded. Its errors are the server's.
func (c *server) updateTry(ctx, accept context.Context, last *lastRun, id, name string, arg, reply any) (run string, err error) {
	bounded, cancel := context.WithTimeout(accept, answerTimeout)
	defer cancel()
	for early := true; ; {
		run, err = c.updateOnce(ctx, bounded, last, id, name, arg, reply)
		if early && protocol.RefusedEarly(err) {
			early = false
			continue
		}
		if err == nil || !passing(err) {
			return run, err
		}
		select {
		case <-bounded.Done():
			return run, err
		case <-time.After(updatePause):
		}
	}
}

// errUnheard says that no worker took an update.
var errUnheard = errors.New("no worker took the update")

// updatePause keeps repeated updates from spinning; nothing that succeeds ever waits for it.
const updatePause = 200 * time.Millisecond

// doneTimeout is how long a call waits for what an update does before it asks whether anybody took the update: mostly what it does
// is done by then, and one call has brought the outcome.
const doneTimeout = answerTimeout / 2

// updateOnce returns when the run has done what the update asks for. Only its acceptance is bounded: what was accepted is
// stored, and may take as long as a node does.
func (c *server) updateOnce(ctx, accept context.Context, last *lastRun, id, name string, arg, reply any) (run string, err error) {
	send := func(ctx context.Context, stage client.WorkflowUpdateStage) (client.WorkflowUpdateHandle, error) {
		return c.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: last.thread, FirstExecutionRunID: last.first, UpdateID: id, UpdateName: name, Args: []any{arg}, WaitForStage: stage,
		})
	}
	defer func() { c.changed.note(last.thread, true) }()
	soon, cancel := context.WithTimeout(accept, doneTimeout)
	handle, err := send(soon, client.WorkflowUpdateStageCompleted)
	cancel()
	if err != nil && isSilence(err) && accept.Err() == nil {
		handle, err = send(accept, client.WorkflowUpdateStageAccepted)
	}
	if err != nil && isSilence(err) {
		return "", fmt.Errorf("%w: %w", errUnheard, err)
	}
	if err != nil {
		return "", err
	}
	c.polled.note(last.queue, true)
	return handle.RunID(), c.outcome(ctx, last.thread, handle, reply)
}

// errEnded says that an open run has ended before it took a message.
var errEnded = errors.New("it ended first")

// passing reports whether an update may be taken a moment later.
func passing(err error) bool {
	var (
		notReady *serviceerror.WorkflowNotReady
		aborted  *serviceerror.Aborted
		busy     *serviceerror.ResourceExhausted
	)
	return errors.As(err, &notReady) || errors.As(err, &aborted) || errors.As(err, &busy)
}

// signal stores a message for a run, or for the one that it was continued as meanwhile. It fails with errEnded when the run has ended.
func (c *server) signal(ctx context.Context, last *lastRun, name string, arg any) error {
	defer func() { c.changed.note(last.thread, true) }()
	for run := last.runID; ; {
		err := c.temporal.SignalWorkflow(ctx, last.thread, run, name, arg)
		var over *serviceerror.NotFound
		switch {
		case err == nil:
			return nil
		case !errors.As(err, &over):
			return c.explain(err, last.graph, last.thread)
		}
		now, lookErr := c.lastRun(ctx, last.thread)
		switch {
		case lookErr != nil:
			return lookErr
		case now == nil || now.first != last.first || now.runID == run || !now.open:
			return errEnded
		}
		run = now.runID
	}
}

// newCall names one call, so that its outcome can be told from that of a call before.
func newCall() string { return rand.Text()[:16] }

// execute starts an execution and returns its run. It fails with a WorkflowExecutionAlreadyStarted when it was not this
// call that started it, where it must be: other calls may have sent the same request id.
func (c *server) execute(ctx context.Context, start *workflowservice.StartWorkflowExecutionRequest, call string, mustBeOurs bool) (string, error) {
	defer func() { c.changed.note(start.GetWorkflowId(), true) }()
	reply, err := patiently(ctx, c, start.GetWorkflowId(), func() (*workflowservice.StartWorkflowExecutionResponse, error) {
		bounded, cancel := context.WithTimeout(ctx, answerTimeout)
		defer cancel()
		return c.service.StartWorkflowExecution(bounded, start)
	})
	ours := err == nil && reply.GetStarted()
	if ours && mustBeOurs {
		ours, err = c.startedBy(ctx, start.GetWorkflowId(), reply.GetRunId(), call)
	}
	if err == nil && !ours {
		err = &serviceerror.WorkflowExecutionAlreadyStarted{Message: "another call has started it", RunId: reply.GetRunId()}
	}
	return reply.GetRunId(), err
}

// stillLast refuses when another run of the thread has followed since last was read, which may be long ago: to read an
// earlier checkpoint takes a replay. The request id alone tells of the one run that came next, not of those behind it.
func (c *server) stillLast(ctx context.Context, last *lastRun) error {
	if last == nil {
		return nil
	}
	if last.kind == protocol.ErasureWorkflow {
		if now, err := c.holdBehind(ctx, last.thread); err != nil || now != nil && now.runID == last.runID {
			return err
		}
		return somebodyElse("", last.thread)
	}
	now, err := c.lastOf(ctx, last.thread, last.kind)
	if err == nil && (now == nil || now.runID != last.runID) {
		err = somebodyElse(last.graph, last.thread)
	}
	return err
}

func somebodyElse(graph, threadID string) *thread.Error {
	return &thread.Error{Kind: thread.ErrRunning, Graph: graph, Thread: threadID,
		Message: fmt.Sprintf("somebody else has just continued thread %q", threadID), Do: "Look at it", Command: []string{"show", threadID}}
}

// startedBy reports whether this very call started a run. To the server two calls with one request id are one call made
// twice, and both are told that they started it.
func (c *server) startedBy(ctx context.Context, thread, runID, call string) (bool, error) {
	described, err := patiently(ctx, c, thread, func() (*workflowservice.DescribeWorkflowExecutionResponse, error) {
		return c.temporal.DescribeWorkflowExecution(ctx, thread, runID)
	})
	if err != nil {
		return false, err
	}
	return c.callOf(described) == call, nil
}

// callOf returns the id of the call that started a run, "" when it is not known.
func (c *server) callOf(described *workflowservice.DescribeWorkflowExecutionResponse) (call string) {
	if p, ok := described.GetWorkflowExecutionInfo().GetMemo().GetFields()[protocol.MemoStart]; ok {
		if err := c.cfg.DataConverter.FromPayload(p, &call); err != nil {
			return ""
		}
	}
	return call
}

// executionRequest starts an execution, the first one of its id or the one that follows last.
func (c *server) executionRequest(id, workflowType string, in any, memo *commonpb.Memo, last *lastRun) (*workflowservice.StartWorkflowExecutionRequest, error) {
	input, err := storage.For(c.cfg.DataConverter, c.cfg.Namespace, id).ToPayloads(in)
	if err != nil {
		return nil, err
	}
	start := &workflowservice.StartWorkflowExecutionRequest{
		Namespace: c.cfg.Namespace, WorkflowId: id, Identity: c.cfg.Identity,
		WorkflowType: &commonpb.WorkflowType{Name: workflowType},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: c.cfg.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:        input, RequestId: uuid.NewString(), WorkflowTaskTimeout: durationpb.New(protocol.WorkflowTaskTimeout),
		// A thread that is not known to have run must really be new.
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		Memo:                     memo,
	}
	if last != nil {
		start.WorkflowIdReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
		sum := sha256.Sum256([]byte("continue\n" + last.runID))
		start.RequestId = hex.EncodeToString(sum[:16])
	}
	return start, nil
}

func (c *server) memoOf(graph string, fields map[string]string) (*commonpb.Memo, error) {
	memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{}}
	for name, value := range fields {
		p, err := c.cfg.DataConverter.ToPayload(value)
		if err != nil {
			return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Message: "the memo cannot be encoded", Cause: err}
		}
		memo.Fields[name] = p
	}
	return memo, nil
}

// keyword is a search attribute's value; those are never encoded by a codec.
func keyword(value string) *commonpb.Payload {
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("json/plain"), "type": []byte("Keyword")},
		Data: []byte(strconv.Quote(value))}
}
