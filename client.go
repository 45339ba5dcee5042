package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
	"superstep.dev/internal/attributes"
	"superstep.dev/internal/codec"
	"superstep.dev/internal/history"
	"superstep.dev/workflows/protocol"
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
	// Identity names this client in histories; "" leaves it to the Temporal client, which then starts new threads by itself:
	// with its interceptors, and by a worker of the same process at once where both share it.
	Identity string
	// Graphs are those that this program knows. The past of a run whose graph has reducers of its own can be read only
	// with that graph; others need none.
	Graphs []Runnable
	// Transport brings streams what nodes emit while they run; nil for with their results. See [Transport].
	Transport Transport
}

// Client starts, reads and answers threads on a Temporal server. It is safe for concurrent use. Its methods return an
// [*Error] that says what to do; none of them changes anything when it fails before it is accepted.
type Client struct {
	temporal client.Client
	cfg      ClientConfig
	tail     history.Tail
	feeds    feeds

	attributesOnce sync.Mutex
	attributes     *protocol.Found
}

// NewClient returns a client on a Temporal connection, which stays the caller's to close.
//
// Errors: ErrBadInput; with a DataConverter and no FailureConverter also ErrNoServer, when there is no connection yet.
func NewClient(c client.Client, cfg ClientConfig) (*Client, error) {
	if c == nil {
		return nil, &Error{Kind: ErrBadInput, Message: "a Client needs a Temporal client: dial one first"}
	}
	if cfg.TaskQueue == "" {
		cfg.TaskQueue = DefaultTaskQueue
	}
	if cfg.Namespace == "" {
		cfg.Namespace = defaultNamespace
	}
	c, err := encoded(c, cfg.FailureConverter, client.Options{DataConverter: cfg.DataConverter, Namespace: cfg.Namespace, Identity: cfg.Identity})
	if err != nil {
		return nil, err
	}
	if cfg.DataConverter == nil {
		cfg.DataConverter = converter.GetDefaultDataConverter()
	}
	return &Client{temporal: c, cfg: cfg, tail: history.Tail{
		Service: c.WorkflowService(), Namespace: cfg.Namespace, Converter: cfg.DataConverter,
	}}, nil
}

// known returns a graph of this program by its name, nil for one that it does not have.
func (c *Client) known(graph string) *graphadapter.Graph {
	for _, g := range c.cfg.Graphs {
		if g.Name() == graph {
			return g.Adapter()
		}
	}
	return nil
}

// graphOr returns g, or this program's graph of that run.
func (c *Client) graphOr(g *graphadapter.Graph, last *lastRun) *graphadapter.Graph {
	if g == nil {
		g = c.known(last.graph)
	}
	return g
}

// hasAttributes asks once: a run that sets an attribute that is missing would not start.
func (c *Client) hasAttributes(ctx context.Context) (protocol.Found, error) {
	c.attributesOnce.Lock()
	defer c.attributesOnce.Unlock()
	if c.attributes != nil {
		return *c.attributes, nil
	}
	has, err := attributes.Read(ctx, c.temporal.OperatorService(), c.cfg.Namespace)
	if err != nil {
		return has, c.explain(err, "", "")
	}
	c.attributes = &has
	return has, nil
}

// startServer says how a server is started on one's own machine, in whatever program the reader is.
const startServer = "Superstep's devserver, or temporal server start-dev"

// The bounds of calls that a worker answers. After a worker was lost some take 8 to 14 seconds until another one has
// them, so nothing gives up earlier.
const (
	answerTimeout = 20 * time.Second
	probeTimeout  = 4 * time.Second
)

// explain turns a Temporal error into one that says what to do.
func (c *Client) explain(err error, graph, thread string) error {
	var (
		already     *Error
		notFound    *serviceerror.NotFound
		unavailable *serviceerror.Unavailable
		tooLarge    *serviceerror.InvalidArgument
		deadline    *serviceerror.DeadlineExceeded
		unreadable  *codec.UnreadableError
	)
	e := &Error{Graph: graph, Thread: thread, Cause: err}
	switch {
	case errors.As(err, &already):
		return err
	case errors.As(err, &unreadable):
		return unreadablePayload(thread, unreadable.Err)
	case errors.As(err, &notFound):
		e.Kind, e.Cause = ErrNotFound, nil
		e.Message, e.Do, e.Command = "there is no thread "+quote(thread), "List the threads there are", []string{"list"}
	case errors.As(err, &unavailable):
		e.Kind, e.Message, e.Do = ErrNoServer, "the Temporal server does not answer", "Check its address, or start one: "+startServer
		if c.serverIsThere() {
			e.Message, e.Do = serverInTrouble, lookAtTheServer
		}
	case errors.As(err, &tooLarge):
		e.Kind, e.Message = ErrBadInput, "the server refused the request"
	case errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &deadline), errors.Is(err, context.DeadlineExceeded):
		if trouble := c.serverTrouble(graph, thread); trouble != nil {
			return trouble
		}
		fallthrough
	default:
		e.Kind, e.Message = ErrNoServer, "the call failed"
	}
	return e
}

// explainQuery does the same for a call that a worker has to answer.
func (c *Client) explainQuery(err error, graph, thread, queue string) error {
	var (
		failed   *serviceerror.QueryFailed
		noPoller *serviceerror.FailedPrecondition
		deadline *serviceerror.DeadlineExceeded
		refused  *serviceerror.Canceled
		notReady *serviceerror.WorkflowNotReady
	)
	switch {
	case errors.As(err, &failed) && strings.HasPrefix(failed.Message, protocol.StateTooLarge):
		return &Error{Kind: ErrNoWorker, Graph: graph, Thread: thread, Cause: errTooLarge,
			Message: "no worker can show all of thread " + quote(thread) + " in one reply"}
	case errors.As(err, &failed) && strings.Contains(failed.Message, undecodedQuery):
		return unreadablePayload(thread, err)
	case errors.As(err, &failed):
		return &Error{Kind: ErrNoWorker, Graph: graph, Thread: thread, Cause: err,
			Message: "the worker cannot show this run", Do: "Start a worker that serves its graph"}
	case errors.As(err, &notReady):
		return &Error{Kind: ErrNoWorker, Graph: graph, Thread: thread,
			Message: fmt.Sprintf("no worker can go on with thread %q", thread), Do: "See why", Command: []string{"show", thread}}
	case errors.As(err, &noPoller):
		return noWorker(graph, thread, queue)
	case errors.As(err, &deadline), errors.As(err, &refused), errors.Is(err, context.DeadlineExceeded):
		return cmp.Or(c.serverTrouble(graph, thread), noWorker(graph, thread, queue))
	}
	return c.explain(err, graph, thread)
}

// undecodedQuery is what the SDK of a worker says of a query that its data converter cannot read.
const undecodedQuery = "unable to decode the input for queryType"

// errTooLarge says that a run has more than one reply takes; its history has it.
var errTooLarge = errors.New(protocol.StateTooLarge)

// noWorker says that nobody answers on a task queue: the run's own, where there is a run.
func noWorker(graph, thread, queue string) error {
	do := "Start one"
	if graph != "" {
		do = "Start one that serves the graph " + quote(graph)
	}
	return &Error{Kind: ErrNoWorker, Graph: graph, Thread: thread,
		Message: "no worker answers on task queue " + quote(queue), Do: do, Command: []string{"worker"}}
}
