package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// admitTries is how many workers are asked before a graph counts as unknown: during a rollout some may not have it yet.
const admitTries = 3

// GraphSpec returns a graph as a worker of the task queue serves it.
func (c *server) GraphSpec(ctx context.Context, name string) (*pregel.Spec, error) {
	reply, err := c.admit(ctx, protocol.AdmitRequest{Graph: name, WithSpec: true})
	if err != nil {
		return nil, err
	}
	return reply.Spec, nil
}

// GraphSchemas returns what a graph's values look like, as a worker of the task queue knows it. They are empty where none knows.
func (c *server) GraphSchemas(ctx context.Context, name string) (graphadapter.Schemas, error) {
	reply, err := c.admit(ctx, protocol.AdmitRequest{Graph: name, WithSchemas: true})
	if err != nil || reply.Schemas == nil {
		return graphadapter.Schemas{}, err
	}
	return *reply.Schemas, nil
}

// Graphs returns the names of the graphs that a worker of the task queue serves.
func (c *server) Graphs(ctx context.Context) ([]string, error) {
	var reply protocol.AdmitReply
	err := c.askDesk(ctx, protocol.AdmitRequest{}, &reply)
	return reply.Serves, err
}

// admissionKept is how long what a worker said of a graph counts: as long as a worker that was seen counts as there.
const admissionKept = pollWindow

// admissions are what workers said of graphs, and when. Workers under rules are asked every time.
type admissions struct {
	mu    sync.Mutex
	known map[string]admission
}

type admission struct {
	reply protocol.AdmitReply
	at    time.Time
}

// admission is admit, without a call where nothing but the graph is asked about and a worker has told of that just now.
func (c *server) admission(ctx context.Context, req protocol.AdmitRequest) (protocol.AdmitReply, error) {
	c.admissions.mu.Lock()
	told, known := c.admissions.known[req.Graph]
	c.admissions.mu.Unlock()
	if known && req.Input == nil && !req.WithSpec && time.Since(told.at) < admissionKept {
		return told.reply, nil
	}
	reply, err := c.admit(ctx, req)
	c.admissions.mu.Lock()
	defer c.admissions.mu.Unlock()
	if err != nil || reply.Governs || len(c.admissions.known) >= mostNames {
		c.admissions.known = nil
	}
	if err == nil && !reply.Governs {
		if c.admissions.known == nil {
			c.admissions.known = map[string]admission{}
		}
		kept := reply
		kept.Spec = nil
		c.admissions.known[req.Graph] = admission{kept, time.Now()}
	}
	return reply, err
}

// admit asks a worker whether it serves a graph and takes an input or updates.
func (c *server) admit(ctx context.Context, req protocol.AdmitRequest) (protocol.AdmitReply, error) {
	var reply protocol.AdmitReply
	for range admitTries {
		if err := c.askDesk(ctx, req, &reply); err != nil {
			return reply, err
		}
		if reply.Known {
			break
		}
	}
	switch {
	case !reply.Known:
		return reply, &thread.Error{Kind: thread.ErrNoWorker, Graph: req.Graph,
			Message: fmt.Sprintf("no worker on task queue %q serves the graph %q; it serves %s", c.cfg.TaskQueue, req.Graph,
				orNone(reply.Serves)), Do: "Check the name, or start a worker with that graph"}
	case reply.Ruling != nil && !reply.Ruling.Allowed:
		return reply, runtime.RefusedByLife(req.Graph, req.Control.Thread, life.Denied(req.Control.Control.Op, *reply.Ruling))
	case reply.Problem != "":
		return reply, &thread.Error{Kind: thread.ErrBadInput, Graph: req.Graph, Message: reply.Problem}
	}
	return reply, nil
}

// controlCheck asks whether something may be done to a thread that has no run which could say so.
func controlCheck(last *lastRun, c approval.Control, a runtime.Asker) *approval.ControlCheck {
	return &approval.ControlCheck{Thread: last.thread, Graph: last.graph, Control: c, By: a.By, Token: a.Token}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// askDesk queries the task queue's desk, opening it first if there is none.
func (c *server) askDesk(ctx context.Context, req protocol.AdmitRequest, reply *protocol.AdmitReply) error {
	if err := c.somebodyPolls(ctx, req.Graph, c.cfg.TaskQueue); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	id, about := runtime.DeskPrefix+c.cfg.TaskQueue, &lastRun{graph: req.Graph, queue: c.cfg.TaskQueue}
	value, err := c.ask(ctx, id, about, protocol.QueryAdmit, req)
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		if err = c.openDesk(ctx, id); err == nil {
			value, err = c.ask(ctx, id, about, protocol.QueryAdmit, req)
		}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil && !unanswered(err):
		return ctx.Err()
	default:
		return c.explainQuery(err, req.Graph, "")
	}
	*reply = protocol.AdmitReply{}
	if err := value.Get(reply); err != nil {
		return unreadablePayload("", err)
	}
	return nil
}

// comingWithin is how long a worker may take to ask for its first task, and comingPause the time between two looks for one. A server that has just
// started has seen no worker yet, though its workers live: they connect anew within seconds.
const comingWithin, comingPause = 5 * time.Second, 100 * time.Millisecond

// somebodyPolls refuses when no worker was seen on the task queue of late (the server remembers five minutes, this client
// one), and none comes within moments: otherwise the wait for a reply would be in vain.
func (c *server) somebodyPolls(ctx context.Context, graph, queue string) error {
	if c.polled.within(queue, pollWindow) {
		return nil
	}
	for began := time.Now(); ; {
		described, err := patiently(ctx, c, "", func() (*workflowservice.DescribeTaskQueueResponse, error) {
			return c.temporal.DescribeTaskQueue(ctx, queue, enumspb.TASK_QUEUE_TYPE_WORKFLOW)
		})
		switch {
		case err != nil:
			return c.explain(err, graph, "")
		case len(described.GetPollers()) > 0:
			c.polled.note(queue, true)
			return nil
		case time.Since(began) >= comingWithin:
			return noWorker(graph, "", queue)
		}
		select {
		case <-ctx.Done():
			return noWorker(graph, "", queue)
		case <-time.After(comingPause):
		}
	}
}

func (c *server) openDesk(ctx context.Context, id string) error {
	_, err := patiently(ctx, c, "", func() (client.WorkflowRun, error) {
		return c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: id, TaskQueue: c.cfg.TaskQueue, WorkflowTaskTimeout: protocol.WorkflowTaskTimeout,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		}, protocol.DeskWorkflow)
	})
	return err
}
