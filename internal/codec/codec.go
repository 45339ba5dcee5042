// Package codec keeps what a codec of payloads hides out of failures, which Temporal's SDK encodes by a converter of
// their own: by default it writes their texts and details as plain text.
package codec

import (
	"bytes"

	failurepb "go.temporal.io/api/failure/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
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
