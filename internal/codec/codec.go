// Package codec keeps what a codec of payloads hides out of failures, which Temporal's SDK encodes by a converter of
// their own: by default it writes their texts and details as plain text.
package codec

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"superstep.dev/internal/sdklog"
	"superstep.dev/thread"
	"superstep.dev/thread/secret"
	"superstep.dev/thread/storage"
)

// Failures returns the converter of failures that goes with a converter of payloads: messages, stack traces and details
// are encoded by it. Failures that were written as plain text are read too.
func Failures(payloads converter.DataConverter) converter.FailureConverter {
	return temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: payloads, EncodeCommonAttributes: true,
	})
}

// Message returns the message of a failure as the server keeps it, "" for none. Without the right codec it is the SDK's
// "Encoded failure".
func Message(payloads converter.DataConverter, f *failurepb.Failure) string {
	if f.GetEncodedAttributes() == nil {
		return f.GetMessage()
	}
	f = proto.CloneOf(f)
	converter.DecodeCommonFailureAttributes(payloads, f)
	return f.GetMessage()
}

// UnreadableError says that a stored payload cannot be read: it was written with another codec, or with another key.
type UnreadableError struct{ Err error }

func (e *UnreadableError) Error() string {
	return "a stored payload cannot be read (is its codec configured?): " + e.Err.Error()
}

// Unwrap returns what the converter of payloads said.
func (e *UnreadableError) Unwrap() error { return e.Err }

// probe is a text that no codec leaves readable, unless it leaves everything so.
const probe = "superstep: is this text readable where failures are stored? superstep: is this text readable where failures are stored?"

// Shows reports whether a converter of failures leaves readable what a converter of payloads hides.
func Shows(failures converter.FailureConverter, payloads converter.DataConverter) bool {
	hidden, err := payloads.ToPayload(probe)
	if err != nil || bytes.Contains(hidden.GetData(), []byte(probe)) {
		return false // it hides nothing
	}
	stored, err := proto.Marshal(failures.ErrorToFailure(temporal.NewApplicationError(probe, "probe", probe)))
	return err != nil || bytes.Contains(stored, []byte(probe))
}

// encodedWithin bounds what it takes to make a Temporal client over the connection of another one: nothing, but for one
// that has not connected yet.
const encodedWithin = 10 * time.Second

// Over returns the Temporal client of a Client or a Worker. With a data converter or a storage, and no word on how errors are
// converted, that is one of its own over c's connection, with options: how c converts errors, and what it stores where, cannot be asked.
func Over(c client.Client, failures converter.FailureConverter, o client.Options) (client.Client, error) {
	switch {
	case o.DataConverter == nil && len(o.ExternalStorage.Drivers) == 0:
		return c, nil
	case failures == nil:
	case o.DataConverter != nil && Shows(failures, o.DataConverter):
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
		return nil, &thread.Error{Kind: thread.ErrNoServer, Message: "there is no Temporal client for the data converter and the storage", Cause: err,
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

// Open is the data converter of who has no keys: it says so of what is encrypted.
func Open() converter.DataConverter { return (*secret.Keys)(nil).Converter(nil) }

// Options completes the options of a Temporal client so that errors are encoded as payloads are. Those of one without a data converter
// get that of who has no keys, and the SDK's FailureConverter, which says that they were completed.
func Options(o client.Options) client.Options {
	hides := secret.Hides(o.DataConverter)
	if o.DataConverter == nil {
		o.DataConverter = Open()
	}
	if len(o.ExternalStorage.Drivers) > 0 {
		o.DataConverter = storage.Sparing(o.DataConverter)
	}
	if !hides {
		if o.FailureConverter == nil {
			o.FailureConverter = temporal.GetDefaultFailureConverter()
		}
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
