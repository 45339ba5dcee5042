package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter"
	"superstep.dev/internal/attributes"
	"superstep.dev/internal/history"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// Config says where threads are.
type Config struct {
	TaskQueue, Namespace string
	DataConverter        converter.DataConverter
	Identity             string                // "" leaves it to the Temporal client
	Graphs               []*graphadapter.Graph // known in this process
	Transport            live.Transport        // nil for none
	Storage              *storage.Storage      // nil for none
}

// server asks one Temporal server about the runs of one namespace.
type server struct {
	temporal client.Client
	service  service
	cfg      Config
	tail     history.Tail

	attributesOnce sync.Mutex
	attributes     *protocol.Found

	retentionOnce sync.Mutex
	keeps         time.Duration // 0 while nobody has asked

	admissions admissions
	polled     lately // task queues of which a worker was seen
	ended      lately // threads of which a run was seen to end
	outputs    outputs
	endings    endings
	open       lately // threads of which a run was seen to rest
	changed    lately // threads and jobs that this client has changed, or has seen to rest or end
	lingers    lately // graphs, each in a mode, of which a run did not end in its first workflow task
}

// reader reads what is known of threads. It changes nothing.
type reader struct{ *server }

// Threads are the threads on a Temporal server. It is safe for concurrent use.
type Threads struct {
	*reader
	feeds feeds
}

// Jobs are the jobs on a Temporal server. It is safe for concurrent use.
type Jobs struct{ *reader }

// New returns the threads and the jobs that a Temporal client reaches.
func New(c client.Client, cfg Config) (*Threads, *Jobs) {
	reader := &reader{&server{temporal: c, cfg: cfg}}
	reader.service = service{c.WorkflowService(), reader.server}
	reader.tail = history.Tail{Service: reader.service, Namespace: cfg.Namespace, Converter: cfg.DataConverter}
	return &Threads{reader: reader}, &Jobs{reader}
}

// known returns a graph of this program by its name, nil for one that it does not have.
func (c *server) known(graph string) *graphadapter.Graph {
	for _, g := range c.cfg.Graphs {
		if g.Spec.Name == graph {
			return g
		}
	}
	return nil
}

// graphOr returns g, or this program's graph of that run.
func (c *server) graphOr(g *graphadapter.Graph, last *lastRun) *graphadapter.Graph {
	if g == nil {
		g = c.known(last.graph)
	}
	return g
}

// hasAttributes asks once: a run that sets an attribute that is missing would not start.
func (c *server) hasAttributes(ctx context.Context) (protocol.Found, error) {
	c.attributesOnce.Lock()
	defer c.attributesOnce.Unlock()
	if c.attributes != nil {
		return *c.attributes, nil
	}
	has, err := patiently(ctx, c, "", func() (protocol.Found, error) {
		return attributes.Read(ctx, c.temporal.WorkflowService(), c.temporal.OperatorService(), c.cfg.Namespace)
	})
	if err != nil {
		return has, c.explain(err, "", "")
	}
	c.attributes = &has
	return has, nil
}

// query asks a worker about a run, open or closed.
func (c *server) query(ctx context.Context, last *lastRun, name string, into any, args ...any) error {
	value, err := c.ask(ctx, last.thread, last, name, args...)
	if err != nil {
		return c.explainQuery(err, last.graph, last.thread)
	}
	if err := value.Get(into); err != nil {
		return unreadablePayload(last.thread, err)
	}
	return nil
}

// ask sends a query to the workflow of that id, about last, and sends it again as long as there are workers of which none
// answers. An error that the server did not give is one of [server.silence].
func (c *server) ask(ctx context.Context, id string, last *lastRun, name string, args ...any) (converter.EncodedValue, error) {
	for {
		bounded, cancel := context.WithTimeout(ctx, answerTimeout)
		value, err := c.temporal.QueryWorkflow(bounded, id, last.runID, name, args...)
		cancel()
		var noPoller *serviceerror.FailedPrecondition
		if err == nil || !isSilence(err) && !errors.As(err, &noPoller) {
			if err == nil {
				c.polled.note(last.queue, true)
			}
			return value, err
		}
		if why := c.silence(ctx, last); ctx.Err() != nil || !errors.Is(why, thread.ErrBusy) {
			return nil, why
		}
		select {
		case <-ctx.Done():
		case <-time.After(askPause):
		}
	}
}

// The bounds of one call that a worker answers. After a worker was lost some take 8 to 14 seconds until another one has
// them, so nothing takes a worker for lost earlier.
const (
	answerTimeout = 20 * time.Second
	probeTimeout  = 4 * time.Second
)

// askPause keeps repeated questions from spinning, should the server refuse one at once.
const askPause = 200 * time.Millisecond

func (c *server) decode(payloads *commonpb.Payloads, into any) error {
	if payloads == nil {
		return nil
	}
	if err := c.cfg.DataConverter.FromPayloads(payloads, into); err != nil {
		return unreadablePayload("", err)
	}
	return nil
}

// stuck is the error of a run whose workflow task fails, again and again. Why it does is shown of a thread; of a job nothing can be shown
// without a worker, so that the reason is said here.
func stuck(c *server, threadID string, cause error) error {
	e := &thread.Error{Kind: thread.ErrNoWorker, Thread: threadID, Cause: cause,
		Message: fmt.Sprintf("no worker can go on with thread %q", threadID), Do: "See why", Command: []string{"show", threadID}}
	id := job.Of(threadID)
	if id == "" || threadID != job.WorkflowID(id) {
		return e
	}
	ctx, cancel := context.WithTimeout(context.Background(), troubleWithin)
	defer cancel()
	e.Message, e.Do, e.Command = fmt.Sprintf("no worker can go on with job %q", id), "Start a worker that can", []string{"worker"}
	if last, err := c.lastOf(ctx, threadID, protocol.LeaderWorkflow); err == nil && last != nil {
		if why, err := c.lastTaskFailure(ctx, last); err == nil && why != "" {
			e.Cause, e.Message = nil, e.Message+": "+why
		}
	}
	return e
}
