package activities

import (
	"errors"
	"fmt"

	"go.temporal.io/api/serviceerror"

	"superstep.dev/internal/history"
	"superstep.dev/job"
)

// OutputError says that the output of an attempt is lost: the server has its run no more, or not as it was. To do the
// subjob again makes another one.
type OutputError struct {
	Reference job.Reference
	Problem   string
	Err       error
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("the output of %d bytes that thread %s returned in run %s is lost: %s; do that subjob again", e.Reference.Bytes,
		e.Reference.Thread, e.Reference.RunID, e.Problem)
}

// Unwrap returns what the server said; it may be nil.
func (e *OutputError) Unwrap() error { return e.Err }

// TooMuchError says that the outputs that an attempt or a planner would be given, up to that subjob's, are more than 64 MiB.
type TooMuchError struct {
	SubJob string
	Bytes  int
}

func (e *TooMuchError) Error() string {
	return fmt.Sprintf("with the output of subjob %q its inputs have %d bytes, the most is %d: have it return an artifact instead",
		e.SubJob, e.Bytes, maxFilled)
}

// outputError tells an output that is lost from one that cannot be read now.
func outputError(ref job.Reference, err error) error {
	var gone *serviceerror.NotFound
	var missing *history.MissingError
	switch {
	case errors.As(err, &gone):
		return &OutputError{Reference: ref, Problem: "the server has that run no more", Err: err}
	case errors.As(err, &missing):
		return &OutputError{Reference: ref, Problem: err.Error(), Err: err}
	}
	return fmt.Errorf("what thread %s returned in run %s cannot be read now: %w", ref.Thread, ref.RunID, err)
}
