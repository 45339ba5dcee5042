package codec

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"

	"superstep.dev/internal/sdklog"
	"superstep.dev/thread"
)

// encodedWithin bounds what it takes to make a Temporal client over the connection of another one: nothing, but for one
// that has not connected yet.
const encodedWithin = 10 * time.Second

// Over returns the Temporal client of a Client or a Worker. With a data converter, and no word on how errors are
// converted, that is one of its own over c's connection, with options: how c converts errors cannot be asked.
func Over(c client.Client, failures converter.FailureConverter, o client.Options) (client.Client, error) {
	switch {
	case o.DataConverter == nil:
		return c, nil
	case failures == nil:
	case Shows(failures, o.DataConverter):
		return nil, &thread.Error{Kind: thread.ErrBadInput, Message: "errors would be stored as plain text: the FailureConverter leaves readable what " +
			"the DataConverter hides", Do: "Dial the Temporal client with superstep.Encoded(options), and give the FailureConverter of those"}
	default:
		return c, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), encodedWithin)
	defer cancel()
	var own client.Client
	err := error(nil)
	if o.Namespace == "" {
		o.Namespace, err = namespaceOf(ctx, c)
	}
	if err == nil {
		own, err = client.NewClientFromExistingWithContext(ctx, c, Options(o))
	}
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrNoServer, Message: "there is no Temporal client that encodes errors", Cause: err,
			Do: "Check the server; or dial with superstep.Encoded(options), and give the FailureConverter of those"}
	}
	own.Close() // gives up its share of the connection, which stays c's to close
	return own, nil
}

// namespaceOf is the namespace of a Temporal client, which writes it into the requests that it sends.
func namespaceOf(ctx context.Context, c client.Client) (string, error) {
	req := &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1}
	if _, err := c.ListWorkflow(ctx, req); req.GetNamespace() == "" {
		return "", fmt.Errorf("the namespace of the Temporal client is not known: %w", err)
	}
	return req.GetNamespace(), nil
}

// Options completes the options of a Temporal client so that errors are encoded as payloads are.
func Options(o client.Options) client.Options {
	if o.DataConverter == nil {
		return o
	}
	if o.FailureConverter == nil {
		o.FailureConverter = Failures(o.DataConverter)
	}
	if o.Logger == nil {
		o.Logger = log.NewStructuredLogger(slog.Default()) // as the SDK has it
	}
	o.Logger = sdklog.Discreet(o.Logger)
	return o
}
