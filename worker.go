package superstep

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/worker"
	"go.uber.org/zap"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/acked"
	"superstep.dev/internal/codec"
	"superstep.dev/internal/lateness"
	"superstep.dev/internal/nexttask"
	"superstep.dev/internal/sdklog"
	"superstep.dev/internal/serving"
	"superstep.dev/internal/tracing"
	"superstep.dev/job"
	"superstep.dev/store"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows"
)

// stickyTimeout is how long a lost worker's runs wait for it before any other takes them. The SDK's 5 s are most of a
// recovery on a stock server.
const stickyTimeout = time.Second

// deadlockTimeout is how long the SDK lets a workflow run without a pause. Only our own code and reducers run there. The SDK's second is
// less than a slow machine may need for a state near its bound, each time anew, while the server gives such a task more time with each
// attempt.
const deadlockTimeout = 10 * time.Second

// pollers is how many long polls a worker keeps open for each kind of task: a server's queue has four partitions by
// default, and with fewer pollers than that a task may wait for one to come round.
const pollers = 5

// The bounds of [WorkerConfig.LostAfter]: what it is where nothing is said, and the least, which leaves room for two heartbeats
// and for the server to store one.
const (
	DefaultLostAfter = workflows.DefaultLostAfter
	LeastLostAfter   = time.Second
)

// WorkerConfig is what a [Worker] serves and how.
type WorkerConfig struct {
	// Graphs are served; their names must differ.
	Graphs []Runnable
	// Leaders are served, with the graphs of their experts; their names must differ.
	Leaders []Leader
	// TaskQueue is where the worker takes its tasks from; "" means DefaultTaskQueue.
	TaskQueue string
	// Transport takes what nodes emit to the readers of streams while the nodes run; nil for with their results only.
	Transport live.Transport
	// Options are Temporal's own. Zero fields get defaults that make recovery fast: StickyScheduleToStartTimeout 1 s,
	// five pollers, 10 s of DeadlockDetectionTimeout, and 30 s of WorkerStopTimeout to drain.
	Options worker.Options
	// DataConverter encodes and decodes what is stored; nil means Temporal's default. It must be that of the clients. With
	// one, errors are encoded by it too: the worker then makes a Temporal client of its own over the connection of the given
	// one, without that one's interceptors and context propagators, unless FailureConverter is set.
	DataConverter converter.DataConverter
	// FailureConverter says that the Temporal client was made with it and with DataConverter, as the options of [Encoded]
	// have them, and is to be used as it is. One that leaves readable what DataConverter hides is refused. Nil says nothing.
	FailureConverter converter.FailureConverter
	// Storage takes large values out of the histories; nil leaves them there. All workers and clients of a namespace need the same. With
	// one, the worker makes a Temporal client of its own as with a DataConverter, unless FailureConverter says that the given one has the storage.
	Storage *storage.Storage
	// Store is the nodes' long-term memory ([StoreFrom]); nil for none. It stays the caller's to close, after the worker has ended. Give the
	// same to all workers of the task queue.
	Store *Store
	// InputBytes is what the worker keeps in memory of the large values that its runs' nodes are about to read; 0 means
	// 128 MiB. One that is not there any more is found by replaying its run, which takes longer.
	InputBytes int
	// LostAfter is after how much silence a worker that runs tasks is taken for lost, and its tasks are given to another one; 0 means
	// [DefaultLostAfter], which a recovery mostly waits for. Where machines stand still for longer than that (a processor that is
	// throttled or shared, a pause of a virtual machine), a task that nobody lost runs again: give more there. A task that is to end
	// hears so with its next heartbeat, within a third of this time. NewWorker refuses less than [LeastLostAfter] with ErrBadInput. It
	// is the heartbeat timeout (Temporal) of the tasks that this worker schedules: give the same to all workers of the task queue.
	// A run's own decisions, and the first half second of what it is given to do, are in a workflow task, which goes to another worker after
	// 2 s whatever is set here; when it is lost three times in a row, the server waits longer.
	LostAfter time.Duration
	// Gate verifies answers to approvals, and is asked again right before what was approved is done. Nil is closed: such a
	// worker takes no answer to an approval and does nothing that needs one. All workers of a queue need the same gate.
	Gate *approval.Gate
	// AuditSigner signs the end of a thread's audit for those who export it: a token.Signer of a worker's key. Nil signs none.
	AuditSigner approval.HeadSigner
	// Notify is told of every question that runs ask, of warnings and of deadlines that pass, so that people hear of them:
	// superstep.dev/approval/webhook posts them to URLs. Nothing waits for it, and it is tried for a day. Runs that began
	// while the worker had none tell nobody before they are invoked anew. Give it to all workers of the task queue. Nil
	// tells nobody.
	Notify approval.Notifier
	// Traces takes spans of runs: a span for each run, superstep, task, attempt, and call of an effect, with ids that are the same
	// whichever worker tells of it. The provider must have been made with the IDGenerator [SpanIDs]. Nil, and one that does nothing,
	// trace nothing. Give it to all workers of the task queue: some spans are told by the worker that has the run, others by the
	// worker that has the task.
	Traces trace.TracerProvider
	// Register is called with the Temporal worker before it polls, for workflows and activities of one's own; it may be nil.
	Register func(worker.Registry)
	// Logger is told when the worker starts and stops; nil means silence. Temporal's own log lines go to the logger
	// of the Temporal client, and of a worker that makes one of its own to this one, without the texts of errors.
	Logger *zap.Logger
	// OnReady is called once the worker polls and the server knows of a worker on the queue; it may be nil.
	OnReady func()
}

// Leader is a leader as a worker serves it; package job/leader makes one. Its planner divides jobs into subjobs, and its experts,
// each of which has a graph, do them.
type Leader interface {
	Name() string
	Planner() job.Planner
	Experts() []job.Profile
	Graphs() []Runnable
}

// Worker serves graphs: it runs their workflows and their nodes. It holds no state that matters: any worker can be
// stopped or killed at any time, and another one goes on.
type Worker struct {
	client client.Client
	worker worker.Worker
	cfg    WorkerConfig
	fatal  chan error
	// watched says that the connection is: see [Watched].
	watched atomic.Bool
}

// NewWorker returns a worker on a Temporal connection, which stays the caller's to close.
//
// Errors: ErrBadInput; with a DataConverter and no FailureConverter also ErrNoServer, when there is no connection yet.
func NewWorker(c client.Client, cfg WorkerConfig) (*Worker, error) {
	if c == nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "a Worker needs a Temporal client: dial one first"}
	}
	if cfg.TaskQueue == "" {
		cfg.TaskQueue = DefaultTaskQueue
	}
	if cfg.Logger == nil {
		cfg.Logger = zap.NewNop()
	}
	if cfg.LostAfter != 0 && cfg.LostAfter < LeastLostAfter {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: fmt.Sprintf("WorkerConfig.LostAfter is %v: give at least %v, or 0 for %v", cfg.LostAfter, LeastLostAfter, DefaultLostAfter)}
	}
	c, err := codec.Over(c, cfg.FailureConverter, client.Options{DataConverter: cfg.DataConverter, ExternalStorage: cfg.Storage.External(), Logger: sdklog.New(cfg.Logger.Named("temporal"))})
	if err != nil {
		return nil, err
	}
	graphs, err := adaptersOf(cfg.served())
	if err != nil {
		return nil, err
	}
	leaders, planners, err := leadersOf(cfg.Leaders)
	if err != nil {
		return nil, err
	}
	tracer, err := tracing.NewTracer(cfg.Traces)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "WorkerConfig.Traces cannot be used", Cause: err}
	}
	w := &Worker{client: c, cfg: cfg, fatal: make(chan error, 1)}
	w.worker = worker.New(c, cfg.TaskQueue, w.options())
	serving.Register(w.worker, c, serving.Config{Tracer: tracer, Graphs: graphs, Leaders: leaders, Planners: planners,
		DataConverter: cfg.DataConverter, Storage: cfg.Storage, InputBytes: cfg.InputBytes, NodesOnly: cfg.Options.DisableWorkflowWorker, LostAfter: cfg.LostAfter,
		Gate: cfg.Gate, AuditSigner: cfg.AuditSigner, Notify: cfg.Notify, Transport: cfg.Transport, Openings: openings(cfg.Options), NextTask: w.watched.Load})
	if cfg.Register != nil {
		cfg.Register(w.worker)
	}
	return w, nil
}

func (w *Worker) options() worker.Options {
	o := w.cfg.Options
	if o.StickyScheduleToStartTimeout == 0 {
		o.StickyScheduleToStartTimeout = stickyTimeout
	}
	if o.DeadlockDetectionTimeout == 0 {
		o.DeadlockDetectionTimeout = deadlockTimeout
	}
	if o.WorkerStopTimeout == 0 {
		o.WorkerStopTimeout = 30 * time.Second
	}
	if o.MaxConcurrentWorkflowTaskPollers == 0 && o.WorkflowTaskPollerBehavior == nil {
		o.MaxConcurrentWorkflowTaskPollers = pollers
	}
	if o.MaxConcurrentActivityTaskPollers == 0 && o.ActivityTaskPollerBehavior == nil {
		o.MaxConcurrentActivityTaskPollers = pollers
	}
	o.DisableRegistrationAliasing = true
	if o.BackgroundActivityContext == nil {
		o.BackgroundActivityContext = context.Background()
	}
	o.BackgroundActivityContext = store.NewContext(o.BackgroundActivityContext, w.cfg.Store)
	inform := o.OnFatalError
	o.OnFatalError = func(err error) {
		if inform != nil {
			inform(err)
		}
		select {
		case w.fatal <- err:
		default:
		}
	}
	return o
}

// openings is how many nodes may run in a worker for a segment to begin within a workflow task. Where the worker's nodes are
// bounded in another way than by their number, or it is to have none, each begins in an activity.
func openings(o worker.Options) int {
	if o.LocalActivityWorkerOnly || o.Tuner != nil || o.WorkerActivitiesPerSecond > 0 || o.TaskQueueActivitiesPerSecond > 0 {
		return -1
	}
	return o.MaxConcurrentActivityExecutionSize
}

// seenWithin bounds the wait for the server to notice a poller: it does at the first poll.
const seenWithin = 10 * time.Second

// awaitSeen waits until the server knows of a poller on the queue: a client that asks before is told that there is none. It
// reports whether the connection is watched: see [Watched].
func (w *Worker) awaitSeen(ctx context.Context) bool {
	ctx, watched := acked.Probe(ctx)
	ctx, cancel := context.WithTimeout(ctx, seenWithin)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		queue, err := w.client.DescribeTaskQueue(ctx, w.cfg.TaskQueue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		if err == nil && len(queue.GetPollers()) > 0 {
			return watched.Load()
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// served are the graphs of a configuration, those of its leaders' experts included: leaders may share experts.
func (cfg WorkerConfig) served() []Runnable {
	graphs := slices.Clone(cfg.Graphs)
	for _, l := range cfg.Leaders {
		for _, of := range l.Graphs() {
			if !slices.ContainsFunc(graphs, func(g Runnable) bool { return g.Adapter() == of.Adapter() }) {
				graphs = append(graphs, of)
			}
		}
	}
	return graphs
}

// Run polls until ctx is done, then takes no new tasks, lets those that run finish for at most
// Options.WorkerStopTimeout, and returns nil. A task that does not make it is taken over by another worker. An error
// means that the server would not have the worker.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.worker.Start(); err != nil {
		return &thread.Error{Kind: thread.ErrNoServer, Message: "the worker could not start", Cause: err, Do: "Check the server and the namespace"}
	}
	var names []string
	for _, g := range w.cfg.served() {
		names = append(names, g.Name())
	}
	if w.watched.Store(w.awaitSeen(ctx)); w.watched.Load() {
		defer acked.Serve(w.client, w.cfg.TaskQueue)()
	}
	w.cfg.Logger.Info("worker polls", zap.Strings("graphs", names), zap.String("task_queue", w.cfg.TaskQueue))
	if w.cfg.OnReady != nil {
		w.cfg.OnReady()
	}
	var fatal error
	select {
	case <-ctx.Done():
	case fatal = <-w.fatal:
	}
	w.worker.Stop()
	w.cfg.Logger.Info("worker drained")
	if fatal != nil {
		return &thread.Error{Kind: thread.ErrNoServer, Message: "the worker stopped", Cause: fatal,
			Do: "Check the server and the namespace, and start the worker again"}
	}
	return nil
}

// Watched completes the options of a Temporal client that is given to a [Worker], so that calls of its connection are watched, and its
// runs take less time:
//
//   - In sync mode a superstep of one task that is over at once is stored with the workflow task that it ran in, and the next superstep
//     begins in the workflow task that follows at once. Without it, the superstep behind such a one is an activity.
//   - Where a [Client] of the same process is given the same Temporal client, [Thread.Invoke] of a new thread is begun by that worker at
//     once, and its end is known from the server's reply to the worker, so that nobody waits on the way through the server's queue. With a
//     storage or a data converter that is so if the options are [Encoded] and both are given the FailureConverter.
//   - Where the server hands out tasks late, as it or the workers are busy, nodes that begin then have more time for their heartbeats, up to
//     a second and a half. Without it that is so where a run begins late only.
//
// Nothing else differs. Programs made with package cli dial so.
//
//	c, err := client.Dial(superstep.Watched(client.Options{}))
func Watched(o client.Options) client.Options {
	return lateness.Options(nexttask.Options(acked.Watched(o)))
}

// Encoded completes the options of a Temporal client that has a data converter with a codec, so that nothing of a run is
// stored or logged as plain text: the texts and details of errors go through the data converter too, which Temporal's
// SDK leaves to a FailureConverter of its own, and the SDK's log lines name the types of errors only. A FailureConverter that is set
// stays. Options without a data converter get one that encodes nothing, and says of what is encrypted that there are no keys (package thread/secret): a
// worker with it gives such runs back, where one with Temporal's own would end them.
//
// Dial with these options, and give their DataConverter and FailureConverter to [ClientConfig] and [WorkerConfig]. Options with the
// ExternalStorage of a [storage.Storage] are completed too, so that the client is used as it is.
//
// Readable for everybody on the server stay ids, the names of graphs, nodes, effects and error types, and search
// attributes: a run's status, how many questions it has open, who is to approve until when, and at which risk.
func Encoded(o client.Options) client.Options { return codec.Options(o) }

// SpanIDs makes the ids of spans of runs from what they are of, so that a span has one id whichever worker tells of it; all other
// spans of a program get random ones. It is for the tracer provider of [WorkerConfig].Traces:
//
//	provider := sdktrace.NewTracerProvider(sdktrace.WithIDGenerator(superstep.SpanIDs{}), sdktrace.WithBatcher(exporter))
type SpanIDs = tracing.IDs

// leadersOf are leaders as their workflow knows them, and their planners by the leaders' names.
func leadersOf(leaders []Leader) ([]workflows.Leader, map[string]job.Planner, error) {
	var out []workflows.Leader
	planners := map[string]job.Planner{}
	for _, l := range leaders {
		if planners[l.Name()] != nil {
			return nil, nil, &thread.Error{Kind: thread.ErrBadInput, Graph: l.Name(), Message: fmt.Sprintf("two leaders are called %q", l.Name()),
				Do: "Give each leader of a worker a name of its own"}
		}
		planners[l.Name()] = l.Planner()
		out = append(out, workflows.Leader{Name: l.Name(), Experts: l.Experts()})
	}
	return out, planners, nil
}

func adaptersOf(graphs []Runnable) ([]*graphadapter.Graph, error) {
	if len(graphs) == 0 {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "a worker needs a graph or a leader to serve: give it one"}
	}
	seen := map[string]bool{}
	var out []*graphadapter.Graph
	for _, g := range graphs {
		if seen[g.Name()] {
			return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Name(), Message: fmt.Sprintf("two graphs are called %q", g.Name()),
				Do: "Give each graph of a worker a name of its own, those of its leaders' experts too"}
		}
		seen[g.Name()] = true
		if _, err := g.Adapter().Program(); err != nil {
			return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Name(), Message: "the graph cannot be served", Cause: err}
		}
		out = append(out, g.Adapter())
	}
	return out, nil
}
