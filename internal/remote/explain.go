package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/codec"
	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/thread/secret"
	"superstep.dev/thread/secret/endpoint"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// startServer says how a server is started on one's own machine, in whatever program the reader is.
const startServer = "Superstep's devserver, or temporal server start-dev"

// abortedType is the type of the server's error about an update that a run has accepted, and which ended with the run: somebody terminated
// the run.
const abortedType = "AcceptedUpdateCompletedWorkflow"

// errAborted says that a run ended while it did what an update asks for.
var errAborted = errors.New("the run has ended meanwhile")

// explain turns a Temporal error into one that says what to do.
func (c *server) explain(err error, graph, threadID string) error {
	var (
		already     *thread.Error
		notFound    *serviceerror.NotFound
		unavailable *serviceerror.Unavailable
		tooLarge    *serviceerror.InvalidArgument
		deadline    *serviceerror.DeadlineExceeded
		unreadable  *codec.UnreadableError
	)
	if stored := storageError(threadID, err); stored != nil && !errors.As(err, &already) {
		return stored
	}
	if sealed := sealedError(threadID, err); sealed != nil && !errors.As(err, &already) {
		return sealed
	}
	e := &thread.Error{Graph: graph, Thread: threadID, Cause: err}
	switch {
	case errors.As(err, &already):
		return err
	case errors.As(err, &unreadable):
		return unreadablePayload(threadID, unreadable.Err)
	case errors.As(err, &notFound):
		e.Kind, e.Cause = thread.ErrNotFound, nil
		e.Message, e.Do, e.Command = "there is no thread "+strconv.Quote(threadID), "List the threads there are", []string{"list"}
	case errors.As(err, &unavailable):
		return c.noServer(err, graph, threadID)
	case errors.As(err, &tooLarge):
		e.Kind, e.Message = thread.ErrBadInput, "the server refused the request"
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &deadline), errors.Is(err, context.DeadlineExceeded):
		if trouble := c.serverTrouble(graph, threadID); trouble != nil {
			return trouble
		}
		fallthrough
	default:
		e.Kind, e.Message = thread.ErrNoServer, "the call failed"
	}
	return e
}

// explainQuery does the same for what a worker was asked.
func (c *server) explainQuery(err error, graph, threadID string) error {
	var (
		failed   *serviceerror.QueryFailed
		notReady *serviceerror.WorkflowNotReady
	)
	switch {
	case errors.As(err, &failed) && strings.HasPrefix(failed.Message, protocol.StateTooLarge):
		return &thread.Error{Kind: thread.ErrNoWorker, Graph: graph, Thread: threadID, Cause: errTooLarge,
			Message: "no worker can show all of thread " + strconv.Quote(threadID) + " in one reply"}
	case errors.As(err, &failed) && strings.Contains(failed.Message, undecodedQuery):
		return unreadablePayload(threadID, err)
	case errors.As(err, &failed):
		return &thread.Error{Kind: thread.ErrNoWorker, Graph: graph, Thread: threadID, Cause: err,
			Message: "the worker cannot show this run", Do: "Start a worker that serves its graph"}
	case errors.As(err, &notReady):
		return stuck(c, threadID, err)
	}
	return c.explain(err, graph, threadID)
}

// isSilence reports whether a call got no answer from a worker, as far as its error tells.
func isSilence(err error) bool {
	var (
		deadline *serviceerror.DeadlineExceeded
		refused  *serviceerror.Canceled
		update   *client.WorkflowUpdateServiceTimeoutOrCanceledError
	)
	return errors.As(err, &deadline) || errors.As(err, &refused) || errors.As(err, &update) ||
		errors.Is(err, context.DeadlineExceeded)
}

// unanswered reports whether no worker answered, for want of workers or of their time.
func unanswered(err error) bool {
	return errors.Is(err, thread.ErrNoWorker) || errors.Is(err, thread.ErrBusy)
}

// silence says why a worker that was asked about a run has not answered: the server is in trouble, nobody is there
// (ErrNoWorker), or somebody was there within a minute (ErrBusy): a worker that takes all its time for other tasks looks like
// one that was lost a moment ago. A caller that went away hears of that alone.
func (c *server) silence(ctx context.Context, last *lastRun) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	if trouble := c.serverTrouble(last.graph, last.thread); trouble != nil {
		return trouble
	}
	queue := c.queueOf(last)
	if !c.seenOfLate(queue) {
		return noWorker(last.graph, last.thread, queue)
	}
	return &thread.Error{Kind: thread.ErrBusy, Graph: last.graph, Thread: last.thread, Cause: ctx.Err(), Do: doWhenBusy,
		Message: "no worker on task queue " + strconv.Quote(queue) + " has answered yet: the workers of the last minute are busy, or gone"}
}

// queueOf is the task queue of a run's workers, for which the server is asked of a run that nobody has looked at yet; "" when it does
// not say.
func (c *server) queueOf(last *lastRun) string {
	if last.queue != "" || last.thread == "" {
		return last.queue
	}
	ctx, cancel := context.WithTimeout(context.Background(), troubleWithin)
	defer cancel()
	now, err := c.lastRun(ctx, last.thread)
	if err != nil || now == nil {
		return ""
	}
	return now.queue
}

// doWhenBusy is what helps when workers are there and do not get round to answering.
const doWhenBusy = "Wait longer, start more workers, or let each do more at once (WorkerConfig's Options)"

// pollWindow is how long ago a worker may have asked for its last task and still count as there. Whoever has asked longer
// ago has the question open, and would have got the call that nobody answered; or is dead; or has had no room for another
// task all that time.
const pollWindow = time.Minute

// seenOfLate reports whether a worker has asked for workflow tasks of a queue within the window. A server that does not say
// leaves it open, and is asked again with the next call.
func (c *server) seenOfLate(queue string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), troubleWithin)
	defer cancel()
	described, err := c.temporal.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
	return err != nil || slices.ContainsFunc(described.GetPollers(), func(p *taskqueuepb.PollerInfo) bool {
		return time.Since(p.GetLastAccessTime().AsTime()) < pollWindow
	})
}

// undecodedQuery is what the SDK of a worker says of a query that its data converter cannot read.
const undecodedQuery = "unable to decode the input for queryType"

// errTooLarge says that a run has more than one reply takes; its history has it.
var errTooLarge = errors.New(protocol.StateTooLarge)

// noWorker says that nobody answers on a task queue: the run's own, where there is a run.
func noWorker(graph, threadID, queue string) error {
	do := "Start one"
	if graph != "" {
		do = "Start one that serves the graph " + strconv.Quote(graph)
	}
	return &thread.Error{Kind: thread.ErrNoWorker, Graph: graph, Thread: threadID,
		Message: "no worker answers on task queue " + strconv.Quote(queue), Do: do, Command: []string{"worker"}}
}

// unreadablePayload is the error of a client that lacks the codec or the storage of what is stored, or has another one.
func unreadablePayload(threadID string, err error) error {
	if stored := cmp.Or(storageError(threadID, err), sealedError(threadID, err)); stored != nil {
		return stored
	}
	return &thread.Error{Kind: thread.ErrBadInput, Thread: threadID, Message: "what is stored cannot be read with this program's data converter", Cause: err,
		Do: "Give the program the data converter that the run's worker has, with its codec and key"}
}

// noDriver is how Temporal's SDK says that a payload lies in a storage, and that it was given none.
const noDriver = "[TMPRL1105]"

// storageError is the error of a client that cannot have a stored value, nil when err is another one.
func storageError(threadID string, err error) error {
	var stored *storage.Error
	if err == nil || !errors.As(err, &stored) && !strings.Contains(err.Error(), noDriver) {
		return nil
	}
	if stored == nil {
		stored = &storage.Error{Kind: storage.ErrNone}
	}
	return &thread.Error{Kind: thread.ErrStorage, Thread: threadID, Message: unreadable(threadID), Cause: stored}
}

// unreadable says what cannot be read, where the thread is known and where it is not.
func unreadable(threadID string) string {
	if threadID == "" {
		return "what is stored cannot be read"
	}
	return "the thread " + strconv.Quote(threadID) + " cannot be read"
}

// sealedError is the error of a client that lacks the key of what is stored, or whose codec endpoint does not answer; nil when err is
// another one.
func sealedError(threadID string, err error) error {
	var sealed *secret.Error
	var away *endpoint.Error
	e := &thread.Error{Kind: thread.ErrBadInput, Thread: threadID, Message: unreadable(threadID)}
	switch {
	case errors.As(err, &sealed):
		e.Cause = sealed
	case errors.As(err, &away):
		e.Kind, e.Cause = thread.ErrStorage, away
	default:
		return nil
	}
	return e
}

func (c *server) explainUpdate(ctx context.Context, err error, threadID string) error {
	if err == nil {
		return nil
	}
	var refused *temporal.ApplicationError
	e := &thread.Error{Thread: threadID}
	switch {
	case errors.Is(err, errAborted):
		return &thread.Error{Kind: thread.ErrAnswerRefused, Thread: threadID, Message: fmt.Sprintf("the run of thread %q was ended before it was done with that", threadID),
			Cause: errAborted, Do: "Look at it", Command: []string{"show", threadID}}
	case errors.As(err, &refused) && refused.Type() == protocol.ErrTypeJobRefused:
		return refusedJob(threadID, refused)
	case errors.As(err, &refused):
		var why *life.Ruling
		if refused.HasDetails() && life.Kind(refused.Type()) == life.NotAllowed && refused.Details(&why) != nil {
			why = nil
		}
		e = runtime.RefusedAs(life.Kind(refused.Type()), "", threadID, refused.Message(), why)
		if cause := refusedBy(refused); cause != nil && why == nil {
			e.Cause = cause
			e.Message = strings.TrimSuffix(strings.TrimSuffix(e.Message, cause.Error()), ": ")
			if e.Message == "" {
				e.Message = "the run refuses it"
			}
		}
		return e
	case unanswered(err):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	var (
		notFound *serviceerror.NotFound
		notReady *serviceerror.WorkflowNotReady
		tooMany  *serviceerror.ResourceExhausted
	)
	switch {
	case errors.As(err, &notReady):
		return stuck(c, threadID, err)
	case errors.As(err, &tooMany):
		return &thread.Error{Kind: thread.ErrBusy, Thread: threadID, Cause: err, Do: "Send it again",
			Message: fmt.Sprintf("the server takes no more messages for thread %q at the moment", threadID)}
	case errors.As(err, &notFound):
		return &thread.Error{Kind: thread.ErrAnswerRefused, Thread: threadID, Message: fmt.Sprintf("the run of thread %q has just ended", threadID),
			Do: "Look at it", Command: []string{"show", threadID}, Cause: errEnded}
	}
	return c.explain(err, "", threadID)
}

// notTaken says what no answer means to who sent a message: the server keeps what it was sent for a worker that comes, so that
// the message may count although its sender has gone.
func notTaken(err error, last *lastRun, id, name string) error {
	var silent *thread.Error
	if name == protocol.UpdateRest || !errors.As(err, &silent) {
		return err // it asks how the run stands, and changes nothing
	}
	told := *silent
	told.Message += "; the server has the message, and a worker may take it yet"
	told.Do += ". Look whether it was taken before you send it again"
	switch name {
	case protocol.UpdateResume:
		told.Do += fmt.Sprintf("; under the same id (--id %s) an answer counts once, and resume --signal stores it without a worker", id)
	case protocol.UpdateState:
		told.Do += fmt.Sprintf("; under the same id (--id %s) an update counts once", id)
	}
	told.Command = []string{"show", last.thread}
	if id, ok := strings.CutPrefix(last.thread, job.WorkflowID("")); ok {
		told.Command = []string{"job", "show", id}
	}
	return &told
}

// refusedBy is the engine's error for which a run refused a message, nil when it was not the engine's. Its text is the
// message's end.
func refusedBy(refused *temporal.ApplicationError) *pregel.NodeError {
	var cause pregel.NodeError
	if !refused.HasDetails() || refused.Details(&cause) != nil {
		return nil
	}
	return &cause
}

// What is said of a server that is there and cannot do its work.
const (
	serverInTrouble = "the Temporal server is there and cannot do its work"
	lookAtTheServer = "Look at its log: a disk that is full, or a database that is away or locked, shows there"
)

// troubleWithin bounds a look at the server after a call that got no reply.
const troubleWithin = 3 * time.Second

// serverTrouble is why a call got no reply, as far as that is the server's: Temporal's client repeats what the server
// fails to do until its time is over, and then tells of the time alone, as if no worker had answered. So the server is
// asked for something that takes no worker, once. It is nil when the server can tell.
func (c *server) serverTrouble(graph, threadID string) error {
	ctx, cancel := context.WithTimeout(context.Background(), troubleWithin)
	defer cancel()
	look := func(id string) error {
		_, err := c.temporal.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
			Namespace: c.cfg.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id}})
		var notFound *serviceerror.NotFound
		if errors.As(err, &notFound) {
			return nil
		}
		return err
	}
	desk := runtime.DeskPrefix + c.cfg.TaskQueue
	err := look(cmp.Or(threadID, desk))
	var busy *serviceerror.ResourceExhausted
	if errors.As(err, &busy) && busy.Cause == enumspb.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW {
		err = look(desk) // the server is at work on that run: another one tells
	}
	if err == nil {
		return nil
	}
	return c.noServer(err, graph, threadID)
}

// noServer says whether the server is away, or is there and in trouble.
func (c *server) noServer(err error, graph, threadID string) *thread.Error {
	e := &thread.Error{Kind: thread.ErrNoServer, Graph: graph, Thread: threadID, Message: "the Temporal server does not answer", Cause: err,
		Do: "Check its address, or start one: " + startServer}
	if c.serverIsThere() {
		e.Message, e.Do = serverInTrouble, lookAtTheServer
	}
	return e
}

// serverIsThere reports whether something at the server's address says that it serves.
func (c *server) serverIsThere() bool {
	ctx, cancel := context.WithTimeout(context.Background(), troubleWithin)
	defer cancel()
	_, err := c.temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err == nil
}
