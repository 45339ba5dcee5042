package superstep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"superstep.dev/graphadapter"
	"superstep.dev/workflows/protocol"
)

// maxInputBytes bounds a run's input: with the thread's state it has to fit one event of 2 MiB.
const maxInputBytes = 1 << 20

// workflowTaskTimeout is how long a lost worker keeps a run's workflow task; the default of 10 s would be most of the
// time that a recovery takes.
const workflowTaskTimeout = 3 * time.Second

// Start begins a run of a thread: of a new one, or of one whose last run has ended, which then goes on from its state.
// A worker checks the input first; nothing is started when it does not fit.
//
// Errors: ErrBadInput; ErrRunning when the thread's run is open; ErrNoWorker when no worker serves the graph;
// ErrNoServer.
func (c *Client) Start(ctx context.Context, req StartRequest) (ThreadView, error) {
	return c.startRun(ctx, nil, req)
}

func (c *Client) startRun(ctx context.Context, g *graphadapter.Graph, req StartRequest) (ThreadView, error) {
	if req.Thread == "" {
		req.Thread, req.NewThread = NewThreadID(req.Graph), true
	}
	if err := checkStart(req); err != nil {
		return ThreadView{}, err
	}
	named := len(req.InterruptBefore)+len(req.InterruptAfter) > 0
	reply, err := c.admit(ctx, protocol.AdmitRequest{Graph: req.Graph, Input: req.Input, WithSpec: named})
	if err != nil {
		return ThreadView{}, err
	}
	req.notices, req.served, req.governed = reply.Notices, reply.Print, reply.Governs
	if reply.Spec != nil {
		if problem := (runOptions{request: req}).problem(reply.Spec); problem != "" {
			return ThreadView{}, &Error{Kind: ErrBadInput, Graph: req.Graph, Thread: req.Thread, Message: problem}
		}
	}
	for {
		view, err := c.begin(ctx, g, req)
		if !errors.Is(err, errEnded) {
			return view, err
		}
	}
}

func checkStart(req StartRequest) error {
	e := &Error{Kind: ErrBadInput, Graph: req.Graph, Thread: req.Thread}
	switch {
	case threadIDProblem(req.Thread) != "":
		e.Message = threadIDProblem(req.Thread)
	case req.NewThread && req.Checkpoint != "":
		e.Message = "a thread that must be new has no checkpoint to begin at"
	case strings.HasPrefix(req.Thread, deskPrefix):
		e.Message = fmt.Sprintf("thread ids that start with %q are taken", deskPrefix)
	case checkAsker(req.Thread, req.By, req.Reason) != nil:
		return checkAsker(req.Thread, req.By, req.Reason)
	case len(req.Input) > maxInputBytes:
		e.Message = fmt.Sprintf("the input has %d bytes, at most %d can be stored", len(req.Input), maxInputBytes)
		e.Do = "Keep the large value outside and give a reference to it"
	case req.Input != nil && (req.Resume != nil || req.Control != nil):
		e.Message = "new input abandons what the thread was about to do: answers and commands do not go with it"
	case req.IdleTimeout < 0 || req.IdleTimeout > 0 && !req.KeepOpen || req.IdleTimeout > 0 && req.IdleTimeout < time.Millisecond:
		e.Message = "the idle time is how long a run is kept open: at least a millisecond, of one that is kept open"
	case req.Input != nil && !json.Valid(req.Input):
		e.Message = "the input is not JSON"
	case settingsOf(req).Problem() != "":
		e.Message = settingsOf(req).Problem()
	default:
		return nil
	}
	return e
}

// launch starts the execution. Its request id follows from the run it continues, so of several clients that continue
// the same run only one succeeds, and the same start sent twice is one.
func (c *Client) launch(ctx context.Context, req StartRequest, in protocol.GraphInput, last *lastRun) (ThreadView, error) {
	return c.launchAs(ctx, uuid.NewString(), req, in, last)
}

// launchAs is launch by the call of that id, which is noted with the run.
func (c *Client) launchAs(ctx context.Context, call string, req StartRequest, in protocol.GraphInput, last *lastRun) (ThreadView, error) {
	if last != nil {
		in.Previous = last.runID
	}
	set := settingsOf(req)
	in.Durability, in.Fused, in.Options, in.Context = set.Durability, set.Fused, set.Options, set.Context
	in.Requester = set.Requester
	in.MaxConcurrency, in.StepTimeout, in.KeepOpen, in.Hold = set.MaxConcurrency, set.StepTimeout, set.KeepOpen, set.Hold
	if in.Spec == nil {
		in.Noted = req.served
	}
	run, err := c.startExecution(ctx, req.Thread, in, last, call)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		return ThreadView{}, somebodyElse(req.Graph, req.Thread)
	}
	if err != nil {
		return ThreadView{}, c.explain(err, req.Graph, req.Thread)
	}
	return ThreadView{Thread: req.Thread, Graph: req.Graph, Status: StatusRunning, RunID: run, Started: time.Now()}, nil
}

// execute starts an execution and returns its run. It fails with a WorkflowExecutionAlreadyStarted when it was not this
// call that started it; shared says that other calls may have sent the same request id.
func (c *Client) execute(ctx context.Context, start *workflowservice.StartWorkflowExecutionRequest, call string, shared bool) (string, error) {
	reply, err := c.temporal.WorkflowService().StartWorkflowExecution(ctx, start)
	ours := err == nil && reply.GetStarted()
	if ours && shared {
		ours, err = c.startedBy(ctx, start.GetWorkflowId(), reply.GetRunId(), call)
	}
	if err == nil && !ours {
		err = &serviceerror.WorkflowExecutionAlreadyStarted{Message: "another call has started it", RunId: reply.GetRunId()}
	}
	return reply.GetRunId(), err
}

// stillLast refuses when another run of the thread has followed since last was read, which may be long ago: to read an
// earlier checkpoint takes a replay. The request id alone tells of the one run that came next, not of those behind it.
func (c *Client) stillLast(ctx context.Context, last *lastRun) error {
	if last == nil {
		return nil
	}
	now, err := c.lastOf(ctx, last.thread, last.kind)
	if err == nil && (now == nil || now.runID != last.runID) {
		err = somebodyElse(last.graph, last.thread)
	}
	return err
}

func somebodyElse(graph, thread string) error {
	return &Error{Kind: ErrRunning, Graph: graph, Thread: thread,
		Message: fmt.Sprintf("somebody else has just continued thread %q", thread), Do: "Look at it", Command: []string{"show", thread}}
}

// startedBy reports whether this very call started a run. To the server two calls with one request id are one call made
// twice, and both are told that they started it.
func (c *Client) startedBy(ctx context.Context, thread, runID, call string) (bool, error) {
	described, err := c.temporal.DescribeWorkflowExecution(ctx, thread, runID)
	if err != nil {
		return false, err
	}
	return c.callOf(described) == call, nil
}

// callOf returns the id of the call that started a run, "" when it is not known.
func (c *Client) callOf(described *workflowservice.DescribeWorkflowExecutionResponse) (call string) {
	if p, ok := described.GetWorkflowExecutionInfo().GetMemo().GetFields()[protocol.MemoStart]; ok {
		if err := c.cfg.DataConverter.FromPayload(p, &call); err != nil {
			return ""
		}
	}
	return call
}

// startExecution starts a run of a thread, the first or the one that follows last.
func (c *Client) startExecution(ctx context.Context, thread string, in protocol.GraphInput, last *lastRun, call string) (string, error) {
	fields, err := memoFields(in, call)
	if err != nil {
		return "", err
	}
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return "", err
	}
	if last == nil && c.cfg.Identity == "" {
		return c.startNew(ctx, thread, in, fields, has)
	}
	memo, err := c.memoOf(in.Graph, fields)
	if err != nil {
		return "", err
	}
	start, err := c.executionRequest(thread, protocol.GraphWorkflow, in, memo, last)
	if err != nil {
		return "", &Error{Kind: ErrBadInput, Graph: in.Graph, Thread: thread, Message: "the input cannot be encoded", Cause: err}
	}
	if has.Lists {
		start.SearchAttributes = runAttributes(in.Graph)
	}
	summary, err := c.cfg.DataConverter.ToPayload("graph " + in.Graph)
	if err != nil {
		return "", &Error{Kind: ErrBadInput, Graph: in.Graph, Thread: thread, Message: "the summary cannot be encoded", Cause: err}
	}
	start.UserMetadata = &sdkpb.UserMetadata{Summary: summary}
	if err := c.stillLast(ctx, last); err != nil {
		return "", err
	}
	return c.execute(ctx, start, call, last != nil)
}

// executionRequest starts an execution, the first one of its id or the one that follows last.
func (c *Client) executionRequest(id, workflowType string, in any, memo *commonpb.Memo, last *lastRun) (*workflowservice.StartWorkflowExecutionRequest, error) {
	input, err := c.cfg.DataConverter.ToPayloads(in)
	if err != nil {
		return nil, err
	}
	start := &workflowservice.StartWorkflowExecutionRequest{
		Namespace: c.cfg.Namespace, WorkflowId: id, Identity: c.cfg.Identity,
		WorkflowType: &commonpb.WorkflowType{Name: workflowType},
		TaskQueue:    &taskqueuepb.TaskQueue{Name: c.cfg.TaskQueue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
		Input:        input, RequestId: uuid.NewString(), WorkflowTaskTimeout: durationpb.New(workflowTaskTimeout),
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

// runAttributes are the search attributes of a run that begins.
func runAttributes(graph string) *commonpb.SearchAttributes {
	return &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
		protocol.AttributeGraph:  keyword(graph),
		protocol.AttributeStatus: keyword(protocol.StatusRunning),
	}}
}

// memoFields name the graph, and the Spec: the one that the run goes on with, or else the one that a worker serves. A new run
// that finds another one on its own worker notes that itself.
func memoFields(in protocol.GraphInput, call string) (map[string]string, error) {
	fields := map[string]string{protocol.MemoGraph: in.Graph, protocol.MemoStart: call}
	if in.Spec != nil {
		print, err := graphadapter.Fingerprint(in.Spec)
		if err != nil {
			return nil, &Error{Kind: ErrBadInput, Graph: in.Graph, Message: "the thread's graph cannot be read", Cause: err}
		}
		fields[protocol.MemoSpec] = print
	} else if in.Noted != "" {
		fields[protocol.MemoSpec] = in.Noted
	}
	return fields, nil
}

func (c *Client) memoOf(graph string, fields map[string]string) (*commonpb.Memo, error) {
	memo := &commonpb.Memo{Fields: map[string]*commonpb.Payload{}}
	for name, value := range fields {
		p, err := c.cfg.DataConverter.ToPayload(value)
		if err != nil {
			return nil, &Error{Kind: ErrBadInput, Graph: graph, Message: "the memo cannot be encoded", Cause: err}
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

func quote(s string) string { return strconv.Quote(s) }
