package workflows_test

import (
	"errors"
	"testing"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/workflows/protocol"
)

// closingOf reads what a failed or cancelled run left in its last event.
func closingOf(t *testing.T, err error) protocol.Closing {
	t.Helper()
	var failed *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	var result protocol.GraphResult
	var decoding error
	switch {
	case errors.As(err, &cancelled):
		decoding = cancelled.Details(&result)
	case errors.As(err, &failed):
		decoding = failed.Details(&result)
	default:
		t.Fatalf("the run ended with %v, not with a state", err)
	}
	if decoding != nil {
		t.Fatal(decoding)
	}
	if result.State == nil {
		t.Fatalf("the run left no state: %s", result.Error)
	}
	return result.Closing
}
