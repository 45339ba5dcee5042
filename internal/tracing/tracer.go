package tracing

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jellydator/ttlcache/v3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// IDs makes the ids of spans: for the span of a thing of a run that thing's own, for all others random ones. It is an
// IDGenerator of OpenTelemetry's SDK, and safe for concurrent use.
type IDs struct{}

type idsKey struct{}

// wanted are the ids of one span that is about to be started.
type wanted struct {
	trace trace.TraceID
	span  trace.SpanID
}

// NewIDs implements IDGenerator.
func (IDs) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if w, ok := ctx.Value(idsKey{}).(*wanted); ok {
		return w.trace, w.span
	}
	var t trace.TraceID
	_, _ = rand.Read(t[:]) // it never fails
	return t, randomSpan()
}

// NewSpanID implements IDGenerator.
func (IDs) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if w, ok := ctx.Value(idsKey{}).(*wanted); ok {
		return w.span
	}
	return randomSpan()
}

func randomSpan() (s trace.SpanID) {
	_, _ = rand.Read(s[:])
	return s
}

// ErrIDs says that a provider makes the ids of spans in a way of its own.
var ErrIDs = errors.New("the tracer provider makes ids of its own, so that a span told by two workers would be two: " +
	"make it with sdktrace.WithIDGenerator(superstep.SpanIDs{})")

// Tracer tells of spans. A nil Tracer tells nothing. It is safe for concurrent use.
type Tracer struct {
	tracer trace.Tracer
	// told are spans that were told of late: a workflow task that has to be repeated decides the same once more.
	told *ttlcache.Cache[told, struct{}]
}

type told struct {
	trace trace.TraceID
	span  trace.SpanID
}

const mostTold = 8192

// NewTracer returns what tells a provider of spans; nil for a provider that wants none. The error is [ErrIDs].
func NewTracer(p trace.TracerProvider) (*Tracer, error) {
	if p == nil {
		return nil, nil
	}
	t := &Tracer{tracer: p.Tracer("superstep.dev"), told: ttlcache.New(ttlcache.WithCapacity[told, struct{}](mostTold))}
	root := RunID{Thread: "probe"}.root()
	switch probe := t.start(context.Background(), root.ID, root.Run, RunName); {
	case !probe.SpanContext().IsValid():
		return nil, nil
	case probe.SpanContext().SpanID() != root.Run:
		return nil, ErrIDs
	}
	return t, nil
}

// start starts a span of that id: in the trace of ctx's, if there is one, else in that trace.
func (t *Tracer) start(ctx context.Context, id trace.TraceID, span trace.SpanID, name string, options ...trace.SpanStartOption) trace.Span {
	_, s := t.tracer.Start(context.WithValue(ctx, idsKey{}, &wanted{id, span}), name, options...)
	return s
}

// Of is a run's place: in the trace of who asked for it, as a message carries that, or at the root of its own. Whether spans of
// it are wanted, the provider's sampler says.
func (t *Tracer) Of(r RunID, carried string) Trace {
	if t == nil {
		return Trace{}
	}
	place := r.root()
	return placeOf(t.start(Within(context.Background(), carried), place.ID, place.Run, RunName).SpanContext()) // told at the run's end
}

// Span is one that has ended.
type Span struct {
	In         Trace
	ID, Parent trace.SpanID
	// Carried is the parent in the form of messages, where that is a span of somebody else; "" for Parent.
	Carried    string
	Name       string
	Began      time.Time
	Ended      time.Time
	Attributes []attribute.KeyValue
	Links      []trace.SpanContext
	// From are more of them, in the form of messages.
	From []string
	// Failed is the type of the error that the span ended with, "" for none.
	Failed string
}

// Tell tells of a span that has ended; of one that was told of before, not again.
func (t *Tracer) Tell(s Span) {
	if t == nil || !s.In.Sampled() {
		return
	}
	if _, again := t.told.GetOrSet(told{s.In.ID, s.ID}, struct{}{}); again {
		return
	}
	ctx := Within(context.Background(), s.Carried)
	if s.Parent.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.In.Span(s.Parent))
	}
	for _, carried := range s.From {
		s.Links = append(s.Links, SpanOf(carried))
	}
	span := t.start(ctx, s.In.ID, s.ID, s.Name, trace.WithTimestamp(s.Began), trace.WithAttributes(s.Attributes...), linked(s.Links))
	end(span, s.Failed, trace.WithTimestamp(laterOf(s.Began, s.Ended)))
}

func laterOf(a, b time.Time) time.Time {
	if b.Before(a) {
		return a
	}
	return b
}

func linked(to []trace.SpanContext) trace.SpanStartOption {
	links := make([]trace.Link, 0, len(to))
	for _, c := range to {
		if c.IsValid() {
			links = append(links, trace.Link{SpanContext: c})
		}
	}
	return trace.WithLinks(links...)
}

// end ends a span. Of an error its type is told: its text may have what a node read.
func end(span trace.Span, failed string, options ...trace.SpanEndOption) {
	if failed != "" {
		span.SetAttributes(ErrorKey.String(failed))
		span.SetStatus(codes.Error, "")
	}
	span.End(options...)
}

// Begin begins a span that this process is about to end, and returns ctx with it: what ctx had of spans is its parent, unless s
// has one. The end is told the type of the error, "" for none, and what became known since.
func (t *Tracer) Begin(ctx context.Context, s Span) (context.Context, func(failed string, more ...attribute.KeyValue)) {
	parent := ctx
	if s.Parent.IsValid() {
		parent = trace.ContextWithRemoteSpanContext(ctx, s.In.Span(s.Parent))
	}
	span := t.start(parent, s.In.ID, s.ID, s.Name, trace.WithAttributes(s.Attributes...), linked(s.Links))
	return trace.ContextWithSpan(ctx, span), func(failed string, more ...attribute.KeyValue) {
		span.SetAttributes(more...)
		end(span, failed)
	}
}
