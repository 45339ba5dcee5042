package activities

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/activity"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/tracing"
)

// traced tells of the attempts of one task's execution. It implements taskrun.Tracer.
type traced struct {
	tracer *tracing.Tracer
	in     tracing.Trace
	task   *pregel.Task
	graph  string
	thread string
	of     executions
	// under says that the task was under way in the execution before this one, if there was one.
	under bool
}

// executions name those of an activity that begins its attempts anew, and the one of them that this is.
type executions struct {
	name   string
	number int32
}

// ofTask names this execution of a task's own activity: the task may have several, one after the other. Of an execution that was
// lost its successor knows the name.
func ofTask(info activity.Info) executions {
	return executions{fmt.Sprintf("%s/%s/%d", info.WorkflowExecution.RunID, info.ActivityID, info.ScheduledTime.UnixNano()), info.Attempt}
}

// ofSegment names an execution of the activity of a segment, which is the only one of its id in the run. What its opening began on
// this worker, the first goes on with.
func ofSegment(info activity.Info, activityID string, number int32) executions {
	return executions{info.WorkflowExecution.RunID + "/" + activityID, number}
}

func (e executions) String() string { return fmt.Sprintf("%s/%d", e.name, e.number) }

// tracerOf is what tells of a task; nil when nobody traces it. Its executions are to be set.
func (n *Nodes) tracerOf(place string, task *pregel.Task, graph, thread string) *traced {
	if n.tracer == nil || place == "" {
		return nil
	}
	return &traced{tracer: n.tracer, in: tracing.Read(place), task: task, graph: graph, thread: thread}
}

// env is t as the environment of a task has it.
func (t *traced) env() taskrun.Tracer {
	if t == nil {
		return nil
	}
	return t
}

type attemptKey struct{}

// Attempt implements taskrun.Tracer.
func (t *traced) Attempt(ctx context.Context, attempt int) (context.Context, func(outcome, failed string)) {
	s := t.span(t.of, attempt)
	for _, a := range t.task.Answers {
		if !a.Early() {
			s.Links = append(s.Links, t.in.Span(t.in.Question(a.QuestionID)))
		}
	}
	ctx, end := t.tracer.Begin(ctx, s)
	return context.WithValue(ctx, attemptKey{}, s.ID), func(outcome, failed string) {
		end(failed, tracing.OutcomeKey.String(outcome))
	}
}

// span is that of an attempt.
func (t *traced) span(of executions, attempt int) tracing.Span {
	key, number := t.task.Key(), attempt
	if t.under {
		number = max(attempt, int(of.number)) // the node's own count leaves out those that were lost
	}
	return tracing.Span{In: t.in, ID: t.in.Attempt(key, of.String(), attempt), Parent: t.in.Task(key), Name: tracing.AttemptName,
		Attributes: []attribute.KeyValue{tracing.GraphKey.String(t.graph), tracing.ThreadKey.String(t.thread), tracing.NodeKey.String(t.task.Node),
			tracing.TaskKey.String(key), tracing.AttemptKey.Int(number)}}
}

// Call implements taskrun.Tracer.
func (t *traced) Call(ctx context.Context, c taskrun.TracedCall) (context.Context, func(failed string)) {
	attempt, _ := ctx.Value(attemptKey{}).(trace.SpanID)
	name := tracing.EffectName
	if c.Kind == taskrun.CallLookUp {
		name = tracing.LookupName
	}
	ctx, end := t.tracer.Begin(ctx, tracing.Span{In: t.in, ID: t.in.Call(attempt, c.Kind, c.Key, c.Number), Name: name,
		Attributes: []attribute.KeyValue{tracing.EffectKey.String(c.Effect), tracing.EffectIDKey.String(c.Key)}})
	return ctx, func(failed string) { end(failed) }
}

// tellLost tells of the execution before this one, which was lost with its worker when it gave its last sign of life.
func (t *traced) tellLost(l *lease, attempt int) {
	before := t.of
	before.number--
	s := t.span(before, attempt)
	s.Attributes = append(s.Attributes, tracing.LostKey.Bool(true))
	s.Ended, s.Failed = l.silentSince(), "WorkerLost"
	if s.Began = s.Ended; before.number == 1 { // of others it is not known
		s.Began = l.info.ScheduledTime
	}
	t.tracer.Tell(s)
}
