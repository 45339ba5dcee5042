package superstep

import (
	"context"
	"errors"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

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
func (c *Client) serverTrouble(graph, thread string) error {
	ctx, cancel := context.WithTimeout(context.Background(), troubleWithin)
	defer cancel()
	id := thread
	if id == "" {
		id = deskPrefix + c.cfg.TaskQueue
	}
	_, err := c.temporal.WorkflowService().DescribeWorkflowExecution(ctx, &workflowservice.DescribeWorkflowExecutionRequest{
		Namespace: c.cfg.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: id}})
	var notFound *serviceerror.NotFound
	if err == nil || errors.As(err, &notFound) {
		return nil
	}
	e := &Error{Kind: ErrNoServer, Graph: graph, Thread: thread, Message: "the Temporal server does not answer", Cause: err,
		Do: "Check its address, or start one: " + startServer}
	if c.serverIsThere() {
		e.Message, e.Do = serverInTrouble, lookAtTheServer
	}
	return e
}

// serverIsThere reports whether something at the server's address says that it serves.
func (c *Client) serverIsThere() bool {
	ctx, cancel := context.WithTimeout(context.Background(), troubleWithin)
	defer cancel()
	_, err := c.temporal.CheckHealth(ctx, &client.CheckHealthRequest{})
	return err == nil
}
