package e2e_test

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// otlp is a collector of traces. It is safe for concurrent use.
type otlp struct {
	t  *testing.T
	at string

	mu    sync.Mutex
	spans []*tracepb.Span
	bytes []byte // all that came
}

// otlp starts a collector, and has the rig's workers send to it without delay.
func (r *rig) otlp() *otlp {
	o := &otlp{t: r.t}
	server := httptest.NewServer(o)
	r.t.Cleanup(server.Close)
	o.at = server.URL
	r.env = append(r.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_METRICS_EXPORTER=none")
	return o
}

func (o *otlp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var req collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(text, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusBadRequest)
		o.t.Errorf("%s: %v", r.URL.Path, err)
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes = append(o.bytes, text...)
	for _, resource := range req.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			o.spans = append(o.spans, scope.Spans...)
		}
	}
}

// of are the spans of a thread, in the order in which they began.
func (o *otlp) of(thread string) (found []*tracepb.Span) {
	o.mu.Lock()
	defer o.mu.Unlock()
	traces := map[string]bool{}
	for _, s := range o.spans {
		if attributeOf(s, "superstep.thread") == thread {
			traces[string(s.TraceId)] = true
		}
	}
	for _, s := range o.spans {
		if traces[string(s.TraceId)] {
			found = append(found, s)
		}
	}
	slices.SortStableFunc(found, func(a, b *tracepb.Span) int { return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano) })
	return found
}

// whole waits until a thread's run is told of, and returns its spans: each was told once, and has a parent that was told too.
func (o *otlp) whole(r *rig, thread string) []*tracepb.Span {
	o.t.Helper()
	r.until("the run is told of", func() bool {
		return slices.ContainsFunc(o.of(thread), func(s *tracepb.Span) bool { return s.Name == "run" && attributeOf(s, "superstep.thread") == thread })
	})
	// What an activity told just before may come a moment later.
	var missing string
	r.until("all parents are told of", func() bool {
		missing = ""
		ids := map[string]bool{}
		for _, s := range o.of(thread) {
			ids[string(s.SpanId)] = true
		}
		for _, s := range o.of(thread) {
			if len(s.ParentSpanId) > 0 && !ids[string(s.ParentSpanId)] && !bytes.Equal(s.ParentSpanId, outsider) {
				missing = s.Name
			}
		}
		return missing == ""
	})
	spans := o.of(thread)
	told := map[string]*tracepb.Span{}
	for _, s := range spans {
		if before := told[string(s.SpanId)]; before != nil {
			o.t.Errorf("told twice: %s\n%s\n%s", s.Name, before, s)
		}
		told[string(s.SpanId)] = s
		require.LessOrEqual(o.t, s.StartTimeUnixNano, s.EndTimeUnixNano, s)
	}
	return spans
}

// until is whole, once all is there: what an activity told last may come behind the run's end. It is for the caller to say what is missing when
// that has not come after a minute.
func (o *otlp) until(r *rig, thread string, all func([]*tracepb.Span) bool) []*tracepb.Span {
	o.t.Helper()
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for late := time.Now().Add(time.Minute); ; <-tick.C {
		if spans := o.whole(r, thread); all(spans) || time.Now().After(late) {
			return spans
		}
	}
}

// draws wants the spans of a thread to be that tree, and returns them.
func (o *otlp) draws(r *rig, thread, tree string) []*tracepb.Span {
	o.t.Helper()
	spans := o.until(r, thread, func(spans []*tracepb.Span) bool { return drawn(spans) == tree })
	require.Equal(o.t, tree, drawn(spans))
	return spans
}

// all are all spans.
func (o *otlp) all() []*tracepb.Span {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.spans)
}

// outsider is the span that tests start runs with.
var outsider = []byte{0, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7}

const outsideTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

func attributeOf(s *tracepb.Span, name string) string {
	for _, a := range s.Attributes {
		if a.Key == name {
			return textOf(a.Value)
		}
	}
	return ""
}

func textOf(v *common.AnyValue) string {
	switch v := v.Value.(type) {
	case *common.AnyValue_StringValue:
		return v.StringValue
	case *common.AnyValue_IntValue:
		return fmt.Sprint(v.IntValue)
	case *common.AnyValue_BoolValue:
		return fmt.Sprint(v.BoolValue)
	}
	return fmt.Sprint(v)
}

// drawn is a tree of spans, with what tells them apart.
func drawn(spans []*tracepb.Span) string {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b *tracepb.Span) int { return strings.Compare(labelOf(a), labelOf(b)) }) // clocks are not that fine
	var b strings.Builder
	var under func(parent []byte, depth int)
	under = func(parent []byte, depth int) {
		for _, s := range spans {
			if bytes.Equal(s.ParentSpanId, parent) {
				fmt.Fprintln(&b, strings.Repeat("  ", depth)+labelOf(s))
				under(s.SpanId, depth+1)
			}
		}
	}
	under(nil, 0)
	under(outsider, 0)
	return b.String()
}

func labelOf(s *tracepb.Span) string {
	parts := []string{s.Name}
	shown := []string{"superstep.graph", "superstep.outcome"}
	switch s.Name {
	case "superstep":
		shown = []string{"superstep.step"}
	case "task":
		shown = []string{"superstep.task"}
	case "attempt":
		shown = []string{"superstep.attempt", "superstep.outcome"}
	case "effect", "lookup":
		shown = []string{"superstep.effect"}
	case "question":
		shown = []string{"superstep.about", "superstep.outcome"}
	}
	for _, name := range append(shown, "error.type") {
		if text := attributeOf(s, name); text != "" {
			parts = append(parts, text)
		}
	}
	if len(s.Links) > 0 {
		parts = append(parts, fmt.Sprintf("(%d links)", len(s.Links)))
	}
	return strings.Join(parts, " ")
}

// named are the spans of a name.
func named(spans []*tracepb.Span, name string) (found []*tracepb.Span) {
	for _, s := range spans {
		if s.Name == name {
			found = append(found, s)
		}
	}
	return found
}

func idOf(s *tracepb.Span) string { return hex.EncodeToString(s.SpanId) }
