package superstep

import (
	"cmp"
	"context"
	"iter"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/codec"
	"superstep.dev/internal/remote"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
	"superstep.dev/thread/storage"
)

// DefaultTaskQueue is the task queue of clients and workers that name none.
const DefaultTaskQueue = "superstep"

// defaultNamespace is Temporal's.
const defaultNamespace = "default"

// ClientConfig says where a [Client]'s runs go. The zero value works with a client of the default namespace.
type ClientConfig struct {
	// TaskQueue is that of the workers that serve the graphs; "" means DefaultTaskQueue.
	TaskQueue string
	// Namespace must be the one that the Temporal client was made with; "" means "default".
	Namespace string
	// DataConverter encodes and decodes what is stored; nil means Temporal's default. It must be that of the workers.
	// With one, errors are encoded by it too: the Client then makes a Temporal client of its own over the connection of the
	// given one, without that one's interceptors and context propagators, unless FailureConverter is set.
	DataConverter converter.DataConverter
	// FailureConverter says that the Temporal client was made with it and with DataConverter, as the options of [Encoded]
	// have them, and is to be used as it is. One that leaves readable what DataConverter hides is refused. Nil says nothing.
	FailureConverter converter.FailureConverter
	// Storage takes large values out of the histories; nil leaves them there. It must be that of the workers. With one, the Client makes a
	// Temporal client of its own as with a DataConverter, unless FailureConverter says that the given one has the storage.
	Storage *storage.Storage
	// Identity names this client in histories; "" leaves it to the Temporal client, which then starts new threads by itself:
	// with its interceptors, and by a worker of the same process at once where both share it: see [Watched].
	Identity string
	// Graphs are those that this program knows. The past of a run whose graph has reducers of its own can be read only
	// with that graph; others need none. Of these, Start and Invoke check the input without asking a worker.
	Graphs []Runnable
	// Transport brings streams what nodes emit while they run; nil for with their results. See [live.Transport].
	Transport live.Transport
}

// Client starts, reads and answers threads on a Temporal server. It is safe for concurrent use. Its methods return an
// [*thread.Error] that says what to do; none of them changes anything when it fails before it is accepted. What a worker has
// to answer waits as long as the context, while there are workers: then it is ErrBusy that comes, and ErrNoWorker when no worker
// has asked for a task within a minute.
type Client struct {
	threads *remote.Threads
	jobs    *remote.Jobs
}

func (c *Client) runtime() runtime.Runtime { return c.threads }

// NewClient returns a client on a Temporal connection, which stays the caller's to close.
//
// Errors: ErrBadInput; with a DataConverter and no FailureConverter also ErrNoServer, when there is no connection yet.
func NewClient(c client.Client, cfg ClientConfig) (*Client, error) {
	if c == nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "a Client needs a Temporal client: dial one first"}
	}
	inner := remote.Config{TaskQueue: cmp.Or(cfg.TaskQueue, DefaultTaskQueue), Namespace: cmp.Or(cfg.Namespace, defaultNamespace),
		DataConverter: cfg.DataConverter, Identity: cfg.Identity, Transport: cfg.Transport, Storage: cfg.Storage}
	for _, g := range cfg.Graphs {
		inner.Graphs = append(inner.Graphs, g.Adapter())
	}
	c, err := codec.Over(c, cfg.FailureConverter, client.Options{DataConverter: cfg.DataConverter, ExternalStorage: cfg.Storage.External(),
		Namespace: inner.Namespace, Identity: cfg.Identity})
	if err != nil {
		return nil, err
	}
	if inner.DataConverter == nil {
		inner.DataConverter = codec.Open()
	}
	inner.DataConverter = cfg.Storage.Converter(inner.DataConverter)
	threads, jobs := remote.New(c, inner)
	return &Client{threads: threads, jobs: jobs}, nil
}

// Start begins a run of a thread: of a new one, or of one whose last run has ended, which then goes on from its state.
// A worker checks the input first; nothing is started when it does not fit. Who waits for the run anyway calls Invoke: one call of the
// server, where Start and Wait are four.
//
// Errors: ErrBadInput; ErrRunning when the thread's run is open; ErrNoWorker when no worker serves the graph;
// ErrNoServer.
func (c *Client) Start(ctx context.Context, req thread.StartRequest) (thread.View, error) {
	return c.threads.StartRun(ctx, nil, runtime.Start{StartRequest: req})
}

// Invoke is Start and Wait, in as few calls of the server as there can be: the open run of a thread that rests takes new input as a
// turn, and any other thread begins, or goes on, with it. A request without a thread is for a new one. New input for a thread that
// is new, or rests in an open run, is one call where the client has the graph (ClientConfig.Graphs); else a worker is asked first whether
// the input fits. A thread whose last run is over takes more calls, as its state is needed.
//
// The end of ctx ends only the waiting. How a run failed is in the view. Errors: those of Start and Wait.
func (c *Client) Invoke(ctx context.Context, req thread.StartRequest) (thread.View, error) {
	if req.Thread == "" {
		req.Thread = thread.NewID(req.Graph)
	}
	rest, err := c.threads.Invoke(ctx, nil, runtime.Start{StartRequest: req})
	return rest.Whole(), err
}

// Answer is Resume and Wait, in one call of the server. The end of ctx ends only the waiting. How a run failed is in the view.
//
// Errors: those of Resume and Wait.
func (c *Client) Answer(ctx context.Context, req thread.ResumeRequest) (thread.View, error) {
	rest, err := c.threads.Answer(ctx, req)
	return rest.Whole(), err
}

// Resume answers a question of a waiting thread, and returns when the answer is stored and taken. Without a question
// it answers the only one that is open, or lets the run pass the breakpoint at which it stands. With Answers it answers
// several, all or none. A request whose ID was taken before is no error, also when the run is over: the reply is Repeated.
// Who waits for the run anyway calls Answer: one call of the server.
//
// Errors: ErrNotFound; ErrBadInput when the answer does not fit what was asked; ErrAnswerRefused when nothing is asked
// or the question was answered before, and with a Code when a gate does not allow an answer to an approval; ErrNoWorker
// when no worker answers: one that comes may take the answer yet, and sent again with the same ID it counts once. Signal stores it
// without a worker.
func (c *Client) Resume(ctx context.Context, req thread.ResumeRequest) (thread.ResumeReply, error) {
	return c.threads.Resume(ctx, req)
}

// SendEvent sends an event to a thread: to every task that waits for it with [WaitEvent], or, when none does yet, for the
// first that will. A thread keeps at most 100 events for waits to come, of 512 KiB together. Without a worker the event
// is stored unchecked. A request whose ID was taken before is no error, also when the run is over: the reply is Repeated.
//
// Errors: ErrNotFound; ErrBadInput when the event does not fit what waits for it; ErrAnswerRefused when the thread's run
// is over; ErrRunning when the thread keeps too many events; ErrNoServer.
func (c *Client) SendEvent(ctx context.Context, r thread.EventRequest) (thread.EventReply, error) {
	return c.threads.EventRun(ctx, nil, r)
}

// Pause keeps a thread's open run from starting anything: the tasks under way end and are kept, answers and updates of
// the state are taken, and nothing goes on before Unpause, also across restarts of everything. Without a worker the
// request is stored. A run that is over is left as it is. Errors: ErrNotFound, ErrBadInput, ErrNoServer.
func (c *Client) Pause(ctx context.Context, r thread.PauseRequest) (thread.PauseReply, error) {
	return c.threads.PauseRun(ctx, nil, r, false)
}

// Unpause lets a paused run go on. Errors: those of Pause.
func (c *Client) Unpause(ctx context.Context, r thread.PauseRequest) (thread.PauseReply, error) {
	return c.threads.PauseRun(ctx, nil, r, true)
}

// Drain asks a thread's run to stop before its next superstep, and returns when that is accepted: Wait tells when it stands
// still. A run that does not run stays as it is. The reason has at most 1,000 bytes. Errors: ErrNotFound; ErrBadInput; ErrNoWorker; ErrNoServer.
func (c *Client) Drain(ctx context.Context, r thread.DrainRequest) (thread.View, error) {
	return c.threads.DrainRun(ctx, nil, r)
}

// Cancel asks a thread's run to end in the way that the request's mode says, and returns when it has ended, or waits
// for people: the tasks under way are told first, and have ended then. While no worker is there to end it, the request
// stays stored, and the view says running. A run that has finished is returned as it is; with CancelDrop and
// CancelCompensate one that failed, was cancelled or was terminated is cleaned up behind.
//
// Errors: ErrNotFound, ErrBadInput, ErrRunning when the run is being cancelled in another way already, ErrNoServer.
func (c *Client) Cancel(ctx context.Context, r thread.CancelRequest) (thread.View, error) {
	return c.threads.CancelRun(ctx, nil, r)
}

// Retry continues a thread whose last run failed, was cancelled or was terminated: from its last checkpoint, without
// running again what had finished, and with the settings that the run had. A run that is held open ([WithHold]) goes on itself.
// Errors: ErrNotFound, ErrNotFailed, ErrNoWorker, ErrNoServer; ErrRunning for one that is paused.
func (c *Client) Retry(ctx context.Context, r thread.RetryRequest) (thread.View, error) {
	return c.threads.RetryRun(ctx, nil, r)
}

// Update writes to a thread's state from outside, all of the updates or none, and returns the state as it is then; see
// [Thread.Update].
//
// Errors, each of which leaves the thread as it was: ErrRunning while a run is under way; ErrNotFound; ErrBadInput for an
// update that cannot be applied; ErrNoWorker; ErrNoServer.
func (c *Client) Update(ctx context.Context, r thread.UpdateRequest) (thread.StateView, error) {
	return c.threads.UpdateState(ctx, nil, r)
}

// Fork begins a run from an earlier checkpoint of a thread, and returns when it is accepted; see [Thread.Fork]. With Copy nothing
// runs: see [Thread.Copy].
//
// Errors: ErrNotFound; without As ErrRunning while a run is under way; ErrBadInput when the new thread exists already;
// ErrNoWorker; ErrNoServer.
func (c *Client) Fork(ctx context.Context, r thread.ForkRequest) (thread.View, error) {
	return c.threads.ForkRun(ctx, nil, r)
}

// Wait is Follow of a thread without the reports.
func (c *Client) Wait(ctx context.Context, thread string) (thread.View, error) {
	return c.threads.Wait(ctx, thread)
}

// Follow reports what a thread does from the moment of a view on, task by task, and returns when its run waits for
// answers, stands at a breakpoint, or has ended. The moment of the view that Start or Fork returned is the one before;
// a view with nothing but the thread's id stands for the beginning of its newest run, as does one of an earlier run.
// Branches that an update evaluates are no tasks. The end of ctx ends only the following. Errors: ErrNotFound, ErrNoServer.
func (c *Client) Follow(ctx context.Context, since thread.View, on func(thread.Progress)) (thread.View, error) {
	return c.threads.Follow(ctx, since, on)
}

// Stream returns what a thread's runs stream, in LangGraph's modes and order: of each superstep the checkpoint, the
// start of its tasks, for each task that ends what it emitted, its update and its end, then the values. Namespace has
// one element "superstep/task" for each graph around the part.
//
// The stream begins with the thread's newest run, or behind From, follows what comes, and goes over to the next run of
// the thread. A run that was continued as a new one is one run with it. It ends when the thread waits for answers, stands still or has ended; the last part's Offset goes on from
// there, in any process, as long as the server keeps the run. Every part comes once and in the same order for every
// reader; a part is there when its event is durable, and never taken back.
//
// Graph modes are rebuilt from the run's history: nothing is stored for them, and any number of readers costs the
// server one long poll for each run and process (for more than 500 runs at a time a look a second). Custom and messages
// come with the node's result, before its update. What an attempt emitted that was then repeated comes too, followed by
// a part of mode StreamReset with the task's id: it voids what that task emitted before. With a [live.Transport] they come
// while the node runs, and not again with its result; such a part has the Offset of the part before it. An attempt that a worker was
// lost with is followed by one that begins anew: what that emits again does not come again, and when it emits something else a StreamReset
// comes first.
//
// Supersteps that run in one activity (async mode, [WithFused]) are streamed within a second after its heartbeat has
// stored them, before the history has them; these parts, too, have the Offset of the last part that it had. With the modes
// StreamTasks, StreamCheckpoints and StreamDebug, and in exit mode, they come when the activity has ended. The past of a
// run that is terminated meanwhile, not cancelled, does not have what was streamed so.
//
// A run whose graph has reducers of its own can be streamed in a program that has the graph: by [Thread.Stream], or
// with ClientConfig.Graphs.
//
// Errors, the last that a stream gives: ErrBadInput for an unknown mode, an offset that is none, or a run that cannot
// be read here; ErrNotFound; ErrNoServer; the cause of ctx. The offset of the last part stays good.
func (c *Client) Stream(ctx context.Context, r thread.StreamRequest) iter.Seq2[thread.Part, error] {
	return c.threads.StreamRun(ctx, nil, r)
}

// Offset is the place in the stream of a thread behind all that there was at the moment of a view. For the view that Start
// returned it is where the invocation begins: see [thread.StreamRequest].Invocation.
func (c *Client) Offset(v thread.View) string { return remote.Offset(v) }

// Show returns what is known of a thread: where it stands, its open questions, what it did outside, and why it makes
// no progress if it does not. For an open run it asks a worker; when none answers it replays the run's history, for which
// all the graph's reducers must be Superstep's own.
//
// Errors: ErrNotFound, ErrNoServer.
func (c *Client) Show(ctx context.Context, thread string) (thread.View, error) {
	return c.threads.Show(ctx, thread)
}

// Question returns a question of a thread as its run has it now. id is the question's, or an unambiguous start of it, or
// "" while exactly one is open. One that was answered lately is known too, without what it asked.
//
// Errors: ErrNotFound, ErrBadInput when several questions can be meant, ErrAnswerRefused when the thread asks nothing,
// ErrNoWorker, ErrNoServer.
func (c *Client) Question(ctx context.Context, thread, id string) (thread.QuestionView, error) {
	return c.threads.Question(ctx, thread, id)
}

// List returns threads, each with its newest run: first the open ones, those started last first, then the closed ones, those
// closed last first. The server's index is a moment behind; what this Client has changed in the last five seconds is shown as it is, the
// latest 100 of it, which takes a call each.
// Errors: ErrNoServer, ErrBadInput.
func (c *Client) List(ctx context.Context, q thread.ListQuery) ([]thread.View, error) {
	return c.threads.List(ctx, q)
}

// Inbox returns the open questions of all threads, a page of them with one call to the server's index: no worker is asked.
// The index is a moment behind, and shows the first 20 questions of a thread. What this Client has just changed is shown as with List; the
// first page then has what the index does not list yet beside its Limit.
//
// Errors: ErrNoServer; ErrBadInput, also for a namespace that does not have the search attributes of questions.
func (c *Client) Inbox(ctx context.Context, q thread.InboxQuery) (thread.InboxPage, error) {
	return c.threads.Inbox(ctx, q)
}

// OpenQuestions counts the questions of all threads and jobs that wait for people, for each graph, or leader, and what they are about:
// those of the named ones, none for all. It reads the server's index, a call for each 1,000 threads that ask and of at most 100,000, and
// asks no worker; the index is a moment behind.
//
// Errors: ErrNoServer; ErrBadInput for a namespace that does not have the search attributes of questions.
func (c *Client) OpenQuestions(ctx context.Context, graphs ...string) ([]thread.OpenQuestions, error) {
	return remote.OpenQuestions(ctx, c.threads, graphs...)
}

// State returns a thread's state, now or at a checkpoint of its history, of the whole graph or of a subgraph under way.
// It needs no worker when this process can read the graph: all its reducers are Superstep's own.
//
// Errors: ErrNotFound for a thread, checkpoint or subgraph that there is not; ErrNoWorker; ErrNoServer.
func (c *Client) State(ctx context.Context, r thread.StateRequest) (thread.StateView, error) {
	return c.threads.StateOf(ctx, nil, r)
}

// History returns a thread's checkpoints, newest first: those of all its runs that the server still has, of every
// branch. It needs no worker when this process can read the graph: all its reducers are Superstep's own.
//
// Errors: ErrNotFound for a thread, subgraph or checkpoint that there is not; ErrNoWorker; ErrNoServer.
func (c *Client) History(ctx context.Context, r thread.HistoryRequest) ([]thread.CheckpointView, error) {
	return c.threads.HistoryOf(ctx, nil, r)
}

// Effects returns what a thread did outside: the effects of all its runs that the server still has, and of tasks under
// way, as far as those have stored it: in exit mode nothing before their end. It needs no worker when this process can read the graph: all its reducers are Superstep's own.
//
// Errors: ErrNotFound; ErrBadInput when the past cannot be read here; ErrNoServer.
func (c *Client) Effects(ctx context.Context, r thread.EffectsRequest) (thread.EffectsView, error) {
	return c.threads.EffectsOf(ctx, nil, r.Thread)
}

// Checkpoint returns the record of one checkpoint: all that the thread goes on with from there, without values, parameters or
// receipts, which it names by their digests. It needs no worker when this process can read the graph: all its reducers are
// Superstep's own.
//
// Errors: ErrNotFound for a thread or checkpoint that there is not; ErrBadInput when the past cannot be read here; ErrNoServer.
func (c *Client) Checkpoint(ctx context.Context, r thread.CheckpointRequest) (thread.CheckpointRecord, error) {
	return runtime.Checkpoint(ctx, c.threads, nil, r)
}

// Audit returns a thread's record, oldest first, from all its runs that the server still has, and the chain that it ends in:
// see [Thread.Audit]. It is read from the runs' histories
// and held against the chain that they handed on, so what was changed since is an [*approval.BrokenError]. The first entry has
// a Seq above 1 when earlier runs are gone. It needs no worker when this process can read the graph: all its reducers are
// Superstep's own.
//
// Errors: ErrNotFound; ErrBadInput when the past cannot be read here; ErrNoServer.
func (c *Client) Audit(ctx context.Context, thread string) ([]approval.Entry, approval.Chain, error) {
	return c.threads.AuditOf(ctx, nil, thread)
}

// AuditExport returns the same with the end of the chain as a worker signs it: see [Thread.AuditExport]. The entries are
// those up to that end. Without a worker, or one that has a key to sign with, Signed is "". Errors: those of Audit;
// ErrBadInput when the worker that was asked cannot sign with its key.
func (c *Client) AuditExport(ctx context.Context, thread string) (approval.Export, error) {
	return c.threads.ExportOf(ctx, nil, thread)
}

// Viewed notes in a thread's audit that somebody has looked at a question which asks for an approval. It is noted once for
// each name, of which nobody checks whose it is, and for other questions not at all. Errors: ErrNotFound, ErrNoServer.
func (c *Client) Viewed(ctx context.Context, thread, question, by string) error {
	return c.threads.Viewed(ctx, thread, question, by)
}

// Graphs returns the names of the graphs that a worker of the task queue serves. Errors: ErrNoWorker, ErrNoServer.
func (c *Client) Graphs(ctx context.Context) ([]string, error) { return c.threads.Graphs(ctx) }

// Erase removes all that the server and the storage have of a thread: the histories of its runs, the values that they refer to, and its
// lines in the server's index; of a job also all of its attempts. It returns the proof: what was removed, and that nothing is found any
// more. A thread that is not there is erased already: only values that lie in the storage under its name are removed then. It may be
// interrupted at any point, and called again. The client must have the storage of the workers.
//
// It reaches neither what others keep, as backups, exports and a transport of streams, nor the memory of workers, which has a run until
// another one takes its place there, and stored values for an hour at most. A workflow of another program that ran the thread as its
// child has its result.
//
// Errors: ErrRunning for a thread that is open, unless it is to be cancelled, and when it was started again meanwhile; ErrBadInput for an
// attempt of a job; ErrErasing when somebody else erases it meanwhile; ErrStorage; ErrNoServer. What was removed by then is in the proof.
func (c *Client) Erase(ctx context.Context, r thread.EraseRequest) (thread.Erasure, error) {
	return c.threads.Erase(ctx, r)
}

// Prune archives the threads, and the jobs with all their attempts, that have ended before a moment, and erases each as [Client.Erase] does
// once its archive is whole and on the disk: all runs that the server has, and all stored values that they refer to, encrypted as they are
// there. Package superstep.dev/thread/archive reads archives. A thread that runs or waits is left alone. What an interruption has left is
// gone on with by the next call with the same directory, which also proves what one that was killed has erased. Nothing is removed that is
// not in an archive. The client must have the storage of the workers.
//
// Errors: ErrBadInput, also for a directory that cannot be written; ErrNoServer; the cause of ctx. When some threads were not pruned, the
// others are, and the error is that of the first, with what is said of the others in the report.
func (c *Client) Prune(ctx context.Context, r thread.PruneRequest) (thread.Pruning, error) {
	return remote.Prune(ctx, c.threads, r)
}

// GraphSpec returns a graph as a worker of the task queue serves it. Errors: ErrNoWorker, ErrNoServer.
func (c *Client) GraphSpec(ctx context.Context, name string) (*pregel.Spec, error) {
	return c.threads.GraphSpec(ctx, name)
}

// GraphSchemas returns JSON schemas of what a graph of the workers takes and gives, of its state, and of its subgraphs'. They are nil
// where the worker is of a version that tells of none. Errors: ErrNoWorker, ErrNoServer.
func (c *Client) GraphSchemas(ctx context.Context, name string) (graphadapter.Schemas, error) {
	return c.threads.GraphSchemas(ctx, name)
}
