package tracing

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Trace is a run's place in a trace: its trace, and its own span. The zero Trace is that of a run that nobody traces.
type Trace struct {
	ID    trace.TraceID
	Run   trace.SpanID
	Flags trace.TraceFlags
	State trace.TraceState
	text  string // as String has it
}

// traceParent and traceState are W3C's names of what a message carries.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// maxCarried bounds what anybody can send as the place of a span, in bytes. W3C wants 512 bytes of state to be passed on.
const maxCarried = 640

// Carried is the span of a context in the form that messages have: a W3C traceparent, and behind a space a tracestate, if there is
// one. It is "" for a context without a span.
func Carried(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	text := carrier[traceParent]
	if state := carrier[traceState]; state != "" && len(text)+1+len(state) <= maxCarried {
		text += " " + state
	}
	return text
}

// Within returns ctx with the span that a message carries. What is no such text is as good as none: that is what W3C asks for,
// and nobody's run fails for want of a trace.
func Within(ctx context.Context, carried string) context.Context {
	if carried == "" || len(carried) > maxCarried {
		return ctx
	}
	parent, state, _ := strings.Cut(carried, " ")
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParent: parent, traceState: state})
}

// SpanOf is the span that a message carries; it is not valid when there is none.
func SpanOf(carried string) trace.SpanContext {
	return trace.SpanContextFromContext(Within(context.Background(), carried))
}

// Read returns the place that [Trace.String] wrote, the zero Trace for anything else.
func Read(text string) Trace { return placeOf(SpanOf(text)) }

func placeOf(run trace.SpanContext) Trace {
	return Trace{ID: run.TraceID(), Run: run.SpanID(), Flags: run.TraceFlags(), State: run.TraceState(),
		text: Carried(trace.ContextWithSpanContext(context.Background(), run))}
}

// String is the place as messages between workflow and activities have it, "" for none.
func (t Trace) String() string { return t.text }

// On reports whether the run has a place in a trace.
func (t Trace) On() bool { return t.Run.IsValid() }

// Sampled reports whether anybody wants spans of it.
func (t Trace) Sampled() bool { return t.On() && t.Flags.IsSampled() }

// Span is one of the run's spans, as others refer to it.
func (t Trace) Span(id trace.SpanID) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: t.ID, SpanID: id, TraceFlags: t.Flags, TraceState: t.State, Remote: true})
}

// Task is the span of a task, by its pregel.Task.Key.
func (t Trace) Task(key string) trace.SpanID { return t.span("task", key) }

// Superstep is the span of a superstep of the graph with that namespace.
func (t Trace) Superstep(namespace, branch string, step int) trace.SpanID {
	return t.span("superstep", namespace, branch, string(binary.AppendVarint(nil, int64(step))))
}

// Question is the span of a question, from when it was asked until it was answered.
func (t Trace) Question(id string) trace.SpanID { return t.span("question", id) }

// SubJob is the span of an attempt at a subjob.
func (t Trace) SubJob(id string, attempt int) trace.SpanID {
	return t.span("subjob", id, string(binary.AppendVarint(nil, int64(attempt))))
}

// Apart is the span of one execution of what belongs to the run and to no task: a call of a planner, the undoing of an effect.
func (t Trace) Apart(name, execution string, attempt int) trace.SpanID {
	return t.span("apart", name, execution, string(binary.AppendVarint(nil, int64(attempt))))
}

// Under is what a message carries that asks for something within one of the run's spans.
func (t Trace) Under(id trace.SpanID) string {
	return Carried(trace.ContextWithSpanContext(context.Background(), t.Span(id)))
}

// Attempt is the span of one execution of a task: execution names that of the activity, attempt is the node's own count.
func (t Trace) Attempt(task, execution string, attempt int) trace.SpanID {
	return t.span("attempt", task, execution, string(binary.AppendVarint(nil, int64(attempt))))
}

// Call is the span of a call that an attempt makes, the numberth of its key and kind.
func (t Trace) Call(attempt trace.SpanID, kind, key string, number int) trace.SpanID {
	return t.span("call", string(attempt[:]), kind, key, string(binary.AppendVarint(nil, int64(number))))
}

func (t Trace) span(kind string, of ...string) trace.SpanID {
	return spanID(kind, append([]string{string(t.Run[:])}, of...)...)
}

// spanID makes the id of a span of what it is of.
func spanID(kind string, of ...string) trace.SpanID {
	sum := digest(kind, of...)
	return trace.SpanID(sum[:8])
}

// digest has the length of each part before it, so that no two lists of parts have one digest.
func digest(kind string, of ...string) [sha256.Size]byte {
	text := make([]byte, 0, 256)
	for _, part := range append([]string{kind}, of...) {
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	sum := sha256.Sum256(text)
	sum[0] |= 1 // an id of zeros is none
	return sum
}

// RunID names a run: the first of those that continue each other as new ones.
type RunID struct{ Namespace, Thread, First string }

// root is where a run belongs that nobody's span has started.
func (r RunID) root() Trace {
	sum := digest("trace", r.Namespace, r.Thread, r.First)
	return Trace{ID: trace.TraceID(sum[:16]), Run: r.span()}
}

func (r RunID) span() trace.SpanID { return spanID("run", r.Namespace, r.Thread, r.First) }
