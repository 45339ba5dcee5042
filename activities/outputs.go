package activities

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"golang.org/x/sync/singleflight"

	"superstep.dev/internal/history"
	"superstep.dev/job"
)

// outputBytes is what a worker keeps in memory of long outputs that subjobs read: several often read the same.
const outputBytes = 16 << 20

// maxFilled bounds the texts that one attempt or plan is given, in bytes.
const maxFilled = 64 << 20

// Outputs read what attempts of subjobs returned and their leaders only refer to. They are safe for concurrent use: who asks
// for the same at the same time shares one call.
type Outputs struct {
	tail   history.Tail
	cache  *cache
	flight singleflight.Group
}

type outputsKey struct{}

// OutputsFrom returns what reads outputs in the node or the planner that ctx belongs to; nil outside of both.
func OutputsFrom(ctx context.Context) *Outputs {
	o, _ := ctx.Value(outputsKey{}).(*Outputs)
	return o
}

// Fill puts texts into the inputs that only refer to theirs, in place. Errors are as those of Read, or a *[TooMuchError].
func (o *Outputs) Fill(ctx context.Context, inputs []job.Input) error {
	all := 0
	for i, in := range inputs {
		if all += len(in.Text); in.Stored != nil && in.Text == "" {
			all += in.Stored.Bytes
		}
		if all > maxFilled {
			return &TooMuchError{SubJob: in.SubJob, Bytes: all}
		}
		if in.Text != "" || in.Stored == nil {
			continue
		}
		text, err := o.Read(ctx, *in.Stored)
		if err != nil {
			return fmt.Errorf("the output of subjob %q: %w", in.SubJob, err)
		}
		inputs[i].Text = text
	}
	return nil
}

// Read returns the output that ref is of: exactly that, its hash is checked. An error is a *[OutputError] when it is lost,
// any other may pass.
func (o *Outputs) Read(ctx context.Context, ref job.Reference) (string, error) {
	if text, ok := o.cache.get(ref.SHA256); ok {
		return string(text), nil
	}
	// The call is not this caller's alone, so it outlives its context.
	read := o.flight.DoChan(ref.SHA256+" "+ref.RunID, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rebuildTimeout)
		defer cancel()
		return o.read(ctx, ref)
	})
	select {
	case result := <-read:
		text, _ := result.Val.(string)
		return text, result.Err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (o *Outputs) read(ctx context.Context, ref job.Reference) (string, error) {
	var record struct { // a workflows.ExpertRecord, of which the message is enough
		Message *job.WorkflowMessage `json:"message"`
	}
	err := o.tail.Stored(ctx, ref.Thread, ref.RunID, func(p *commonpb.Payloads) (bool, error) {
		record.Message = nil
		err := o.tail.Converter.FromPayloads(p, &record)
		return record.Message != nil, err
	})
	if err != nil {
		return "", outputError(ref, err)
	}
	text := record.Message.Output
	if !ref.Fits(text) {
		return "", &OutputError{Reference: ref, Problem: "what is stored there is another text"}
	}
	o.cache.put(ref.SHA256, []byte(text))
	return text, nil
}

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
