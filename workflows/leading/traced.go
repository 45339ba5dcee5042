package leading

import (
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/internal/tracing"
	"superstep.dev/job"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// traced tells of a job and of the attempts at its subjobs, whose runs are told of under them. A nil traced tells nothing, and no
// decision follows from anything here.
type traced struct {
	spans workflows.Spans
	place tracing.Trace
	in    *protocol.LeaderInput
	id    string // the job's
}

// newTraced says where the spans of a job belong; nil when nobody traces it.
func newTraced(ctx workflow.Context, spans workflows.Spans, in *protocol.LeaderInput) *traced {
	if spans == nil {
		return nil
	}
	info := workflow.GetInfo(ctx)
	run := tracing.RunID{Namespace: info.Namespace, Thread: info.WorkflowExecution.ID, First: info.FirstRunID}
	t := &traced{spans: spans, place: spans.Of(run, in.Trace), in: in, id: in.Job.ID}
	if !t.place.On() {
		return nil
	}
	if in.Began.IsZero() {
		in.Began = info.WorkflowStartTime
	}
	return t
}

// String is the job's place as activities are told of it.
func (t *traced) String() string {
	if t == nil {
		return ""
	}
	return t.place.String()
}

func (t *traced) subjob(a job.Attempt) trace.SpanID { return t.place.SubJob(a.SubJob, a.Attempt) }

// under is the span that the run of an attempt belongs to.
func (t *traced) under(a job.Attempt) string {
	if t == nil {
		return ""
	}
	return t.place.Under(t.subjob(a))
}

// did tells of an attempt that has ended.
func (t *traced) did(ctx workflow.Context, c *child) {
	if t == nil {
		return
	}
	failed := ""
	if c.message.Status != job.Success {
		failed = string(c.message.Status)
	}
	t.tell(ctx, tracing.Span{ID: t.subjob(c.attempt), Parent: t.place.Run, Name: tracing.SubJobName, Began: c.began, Failed: failed},
		tracing.SubJobKey.String(c.attempt.SubJob), tracing.AttemptKey.Int(c.attempt.Attempt), tracing.ThreadKey.String(c.thread))
}

// ended tells of a job whose run has returned that error.
func (t *traced) ended(ctx workflow.Context, board *job.Board, err error) {
	if t == nil || workflow.IsContinueAsNewError(err) || board == nil {
		return
	}
	failed := ""
	switch {
	case temporal.IsCanceledError(err):
		failed = "Cancelled"
	case err != nil:
		failed = protocol.ErrTypeJobFailed
	}
	t.tell(ctx, tracing.Span{ID: t.place.Run, Carried: t.in.Trace, Name: tracing.JobName, Began: t.in.Began, Failed: failed},
		tracing.ThreadKey.String(job.WorkflowID(t.id)), tracing.OutcomeKey.String(string(board.Status)))
}

// tell tells of a span that ends now. What is replayed was told of.
func (t *traced) tell(ctx workflow.Context, s tracing.Span, more ...attribute.KeyValue) {
	if workflow.IsReplaying(ctx) {
		return
	}
	s.In, s.Ended = t.place, workflow.Now(ctx)
	s.Attributes = append(more, tracing.LeaderKey.String(t.in.Leader), tracing.JobKey.String(t.id))
	t.spans.Tell(s)
}
