package remote

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tracing"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// StartRun implements runtime.Runtime. A new thread takes one call once the workers are known.
func (c *Threads) StartRun(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (thread.View, error) {
	ctx = tracing.Within(ctx, req.Trace)
	if req.Thread == "" {
		req.Thread, req.NewThread = thread.NewID(req.Graph), true
	}
	if err := checkStart(ctx, c, req); err != nil {
		return thread.View{}, err
	}
	if c.mayBeNew(req) {
		view, err := c.startUnseen(ctx, g, req)
		if !errors.Is(err, errNotNew) {
			return view, err
		}
	}
	last, err := c.lastBefore(ctx, req)
	if err == nil && last == nil && !req.NewThread {
		c.ended.note(req.Thread, true) // nobody is behind it but a hold, if the server refuses it again
	}
	if err != nil {
		return thread.View{}, err
	}
	for last != nil && last.open { // which checks the request itself
		view, err := c.beginOpen(ctx, g, req, last)
		if !errors.Is(err, errEnded) {
			return view, err
		}
		if last, err = c.lastRun(ctx, req.Thread); err != nil {
			return thread.View{}, err
		}
	}
	if err := c.admitStart(ctx, g, &req); err != nil {
		return thread.View{}, err
	}
	for {
		view, err := c.begin(ctx, g, req, last)
		if !errors.Is(err, errEnded) {
			return view, err
		}
		if last, err = c.lastRun(ctx, req.Thread); err != nil {
			return thread.View{}, err
		}
	}
}

// mayBeNew reports whether a request may begin a thread, as far as this client knows.
func (c *Threads) mayBeNew(req runtime.Start) bool {
	return !req.NewThread && req.Input != nil && req.Checkpoint == "" && req.Resume == nil && req.Control == nil && !c.ended.within(req.Thread, rememberedFor)
}

// errNotNew says that a thread that was to begin has run before.
var errNotNew = errors.New("it has begun before")

// startUnseen begins a thread that nobody has looked at: the server itself refuses to begin one that is there, which is errNotNew.
// Where a worker refuses the request, it depends on the thread whether there is more to say.
func (c *Threads) startUnseen(ctx context.Context, g *graphadapter.Graph, req runtime.Start) (thread.View, error) {
	err := c.admitStart(ctx, g, &req)
	if err == nil {
		return c.begin(ctx, g, req, nil)
	}
	if ctx.Err() != nil || errors.Is(err, thread.ErrNoServer) {
		return thread.View{}, err
	}
	switch last, lookErr := c.lastRun(ctx, req.Thread); {
	case lookErr != nil:
		return thread.View{}, lookErr
	case last != nil:
		return thread.View{}, errNotNew
	}
	return thread.View{}, err
}

// admitStart asks a worker about a request for a run, as far as that is not known. An input that this program's own graph takes is
// left to the run: should a worker's graph be another one, the run does not begin, and says so.
func (c *Threads) admitStart(ctx context.Context, g *graphadapter.Graph, req *runtime.Start) error {
	ask := protocol.AdmitRequest{Graph: req.Graph, Input: req.Input, WithSpec: len(req.InterruptBefore)+len(req.InterruptAfter) > 0}
	if g == nil {
		g = c.known(req.Graph)
	}
	if req.Checked || g != nil && req.Input != nil && (g.CheckInput == nil || g.CheckInput(req.Input) == nil) {
		ask.Input = nil
	}
	reply, err := c.admission(ctx, ask)
	if err != nil {
		return err
	}
	req.Notices, req.Governed = reply.Notices, reply.Governs
	if reply.Spec == nil {
		return nil
	}
	if problem := runtime.StartProblem(*req, reply.Spec); problem != "" {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: req.Graph, Thread: req.Thread, Message: problem}
	}
	return nil
}

// inputFor is what a request gives a run, the first of a thread or one that follows.
func inputFor(req runtime.Start) protocol.GraphInput {
	return protocol.GraphInput{Graph: req.Graph, Input: protocol.Input(runtime.InputOf(req)), Asked: runtime.AskedOf(req.By, req.Reason, req.Token)}
}

// launch starts the execution. Its request id follows from the run it continues, so of several clients that continue
// the same run only one succeeds, and the same start sent twice is one.
func (c *Threads) launch(ctx context.Context, req runtime.Start, in protocol.GraphInput, last *lastRun) (thread.View, error) {
	return c.launchAs(ctx, cmp.Or(req.ID, uuid.NewString()), req, in, last)
}

// launchAs is launch by the call of that id, which is noted with the run.
func (c *Threads) launchAs(ctx context.Context, call string, req runtime.Start, in protocol.GraphInput, last *lastRun) (thread.View, error) {
	in = launchInput(ctx, req, in, last)
	run, err := c.startExecution(ctx, req.Thread, in, last, call, last != nil)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) && last == nil && !c.mayBeNew(req) { // else whoever asks looks what the thread is
		hold, lookErr := c.holdBehind(ctx, req.Thread)
		if lookErr != nil {
			return thread.View{}, lookErr
		}
		if hold != nil {
			run, err = c.startExecution(ctx, req.Thread, in, hold, call, true)
		}
	}
	switch {
	case errors.As(err, &already) && req.NewThread:
		_, err := c.theLastRun(ctx, req.Thread) // it may be of another kind
		return thread.View{}, cmp.Or(err, runtime.NotNew(req))
	case errors.As(err, &already) && last == nil:
		e := somebodyElse(req.Graph, req.Thread)
		e.Cause = errNotNew
		return thread.View{}, e
	case errors.As(err, &already):
		return thread.View{}, cmp.Or(c.held(ctx, req.Thread), error(somebodyElse(req.Graph, req.Thread)))
	}
	if err != nil {
		return thread.View{}, c.explain(err, req.Graph, req.Thread)
	}
	return thread.View{Thread: req.Thread, Graph: req.Graph, Status: thread.StatusRunning, RunID: run, Started: time.Now()}, nil
}

// launchInput is the input that a run is started with: in, under the id and with the settings of the request, behind last, nil for none.
func launchInput(ctx context.Context, req runtime.Start, in protocol.GraphInput, last *lastRun) protocol.GraphInput {
	if last != nil {
		in.Previous = last.runID
	}
	in.Set(*runtime.SettingsOf(req))
	in.ID, in.Trace = req.ID, tracing.Carried(ctx) // the same request that comes as a turn is the one that the run has begun with
	return in
}

// startExecution starts a run of a thread, the first or the one that follows last. Where it must be this call's, who has started it is looked up:
// of two that continue the same run the server tells both that they have.
func (c *Threads) startExecution(ctx context.Context, threadID string, in protocol.GraphInput, last *lastRun, call string, mustBeOurs bool) (string, error) {
	if in.Cancel == nil { // a run that only undoes does no work twice
		if err := c.notOfAJob(ctx, in.Graph, threadID); err != nil {
			return "", err
		}
	}
	since := time.Now()
	run, err := startOnce(ctx, c, threadID, in, last, call, mustBeOurs)
	if err == nil {
		err = c.beganWhole(ctx, threadID, run, since)
	}
	return run, err
}

func startOnce(ctx context.Context, c *Threads, threadID string, in protocol.GraphInput, last *lastRun, call string, mustBeOurs bool) (string, error) {
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return "", err
	}
	fields := graphMemo(in.Graph, has)
	fields[protocol.MemoStart] = call
	if last == nil && c.cfg.Identity == "" {
		return c.startNew(ctx, threadID, in, call, fields, has)
	}
	memo, err := c.memoOf(in.Graph, fields)
	if err != nil {
		return "", err
	}
	start, err := c.executionRequest(threadID, protocol.GraphWorkflow, in, memo, last)
	if err != nil {
		return "", &thread.Error{Kind: thread.ErrBadInput, Graph: in.Graph, Thread: threadID, Message: "the input cannot be encoded", Cause: err}
	}
	if has.Lists {
		start.SearchAttributes = runAttributes(in.Graph)
	}
	summary, err := c.cfg.DataConverter.ToPayload("graph " + in.Graph)
	if err != nil {
		return "", &thread.Error{Kind: thread.ErrBadInput, Graph: in.Graph, Thread: threadID, Message: "the summary cannot be encoded", Cause: err}
	}
	start.UserMetadata = &sdkpb.UserMetadata{Summary: summary}
	if err := c.stillLast(ctx, last); err != nil {
		return "", err
	}
	return c.execute(ctx, start, call, mustBeOurs)
}

// startNew starts the first run of a thread as the Temporal client does it, with the interceptors and propagators that it
// was made with. Where a worker of the graph runs on that very client, it has the run at once: it does not go through the
// server's queue first (Temporal's eager start). It fails with a WorkflowExecutionAlreadyStarted when the thread has run.
func (c *Threads) startNew(ctx context.Context, thread string, in protocol.GraphInput, call string, memo map[string]string, has protocol.Found) (string, error) {
	defer func() { c.changed.note(thread, true) }()
	tries := 0
	run, err := patiently(ctx, c.server, thread, func() (client.WorkflowRun, error) {
		tries++
		return c.temporal.ExecuteWorkflow(ctx, c.startOptions(thread, in.Graph, memo, has), protocol.GraphWorkflow, in)
	})
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if tries > 1 && errors.As(err, &already) { // it may be the try before of which nothing was heard
		ours, lookErr := c.startedBy(ctx, thread, already.RunId, call)
		if ours || lookErr != nil {
			return already.RunId, lookErr
		}
	}
	if err != nil {
		return "", err
	}
	return run.GetRunID(), nil
}

// startOptions start the first run of a thread.
func (c *server) startOptions(thread, graph string, memo map[string]string, has protocol.Found) client.StartWorkflowOptions {
	options := client.StartWorkflowOptions{
		ID: thread, TaskQueue: c.cfg.TaskQueue, WorkflowTaskTimeout: protocol.WorkflowTaskTimeout,
		// A thread that is not known to have run must really be new.
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		EnableEagerStart:                         true,
		// What Temporal's own screens show beside the type, which is the same for all graphs.
		StaticSummary: "graph " + graph,
		Memo:          map[string]any{},
	}
	for name, value := range memo {
		options.Memo[name] = value
	}
	if has.Lists {
		options.TypedSearchAttributes = temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(protocol.AttributeGraph).ValueSet(graph),
		)
	}
	return options
}

// runAttributes are the search attributes of a run that begins.
func runAttributes(graph string) *commonpb.SearchAttributes {
	return &commonpb.SearchAttributes{IndexedFields: map[string]*commonpb.Payload{
		protocol.AttributeGraph: keyword(graph),
	}}
}

// graphMemo names the graph where no search attribute does.
func graphMemo(graph string, has protocol.Found) map[string]string {
	if has.Lists {
		return map[string]string{}
	}
	return map[string]string{protocol.MemoGraph: graph}
}
