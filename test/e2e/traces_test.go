package e2e_test

import (
	"encoding/hex"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// TestTraceOfAKilledWorker: the worker dies in the middle of a write. The attempt that goes on is the second of the same task,
// and whoever told of anything, it was told once.
func TestTraceOfAKilledWorker(t *testing.T) {
	for _, mode := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t)
			o := r.otlp()
			r.putText("effect", "lookup_only")
			r.putText("says", "committed")
			r.put("hang")
			first := r.graphsWorker("worker-1")
			threadID := testserver.Queue(t)
			r.again("reconciles", threadID, r.steered(), mode)
			r.until("the call is under way", func() bool { return r.ran("did") == 1 })
			r.kill(first)
			r.remove("hang")
			r.graphsWorker("worker-2")
			r.wait(threadID, thread.StatusFinished)
			spans := o.whole(r, threadID)
			require.Equal(t, `run reconciles finished
  superstep 1
    task 1/act
      attempt 1 WorkerLost
      attempt 2 done
        lookup lookup_only
`, drawn(spans))
		})
	}
}

// TestTraceOfWhoAsks: the run is in the trace of who started it, and goes on linked to who answered.
func TestTraceOfWhoAsks(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	r.graphsWorker("worker")
	id, err := trace.TraceIDFromHex(outsideTrace)
	require.NoError(t, err)
	outside := trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: trace.SpanID(outsider), TraceFlags: trace.FlagsSampled})
	threadID := testserver.Queue(t)
	_, err = r.client.Start(trace.ContextWithSpanContext(t.Context(), outside), thread.StartRequest{Graph: "nests", Thread: threadID, Input: encode(t, map[string]string{}),
		Context: encode(t, map[string]string{"tenant": "acme"})})
	require.NoError(t, err)
	q := r.asked(threadID)
	answerer := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{7}, SpanID: trace.SpanID{7}, TraceFlags: trace.FlagsSampled})
	_, err = r.client.Resume(trace.ContextWithSpanContext(t.Context(), answerer), thread.ResumeRequest{Thread: threadID, Question: q.ID, Value: encode(t, "wine")})
	require.NoError(t, err)
	r.wait(threadID, thread.StatusStopped)
	_, err = r.client.Resume(t.Context(), thread.ResumeRequest{Thread: threadID})
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFinished)
	spans := o.whole(r, threadID)
	require.Equal(t, `run nests finished
  superstep 1
    task 1/team
      superstep 1
        task 1/team|1/reads
          attempt 1 done
      superstep 2
        task 1/team|2/expert
          attempt 1 asked
          question question answered (1 links)
          attempt 1 done (1 links)
  superstep 2
    task 2/tells
      attempt 1 done
`, drawn(spans))
	for _, s := range spans {
		require.Equal(t, outsideTrace, hex.EncodeToString(s.TraceId))
	}
	question := named(spans, "question")[0]
	require.Equal(t, answerer.SpanID().String(), hex.EncodeToString(question.Links[0].SpanId))
	for _, s := range named(spans, "attempt") {
		if len(s.Links) > 0 {
			require.Equal(t, idOf(question), hex.EncodeToString(s.Links[0].SpanId))
		}
	}
}
