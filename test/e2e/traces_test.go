package e2e_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/processes"
	"superstep.dev/thread"
)

// TestTraceOfARefund is the example of docs/observability.md: a person approves, the worker is killed with the money moved, another
// one looks that up. Nothing of what the run reads and writes is in its trace.
func TestTraceOfARefund(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	r.payments()
	require.NoError(t, r.money.SetFaults(t.Context(), payments.Faults{HangAfterCommit: 1}))
	first := r.refundWorker("worker-1")
	threadID := testserver.Queue(t)
	r.exits(3, r.superstep("run", "refund", "--thread", threadID, "--input", `{"order_id":"o-1042"}`, "--follow"))
	ended := func(outcome string, links int) func() bool {
		return func() bool {
			return slices.ContainsFunc(named(o.of(threadID), "attempt"), func(s *tracepb.Span) bool {
				return attributeOf(s, "superstep.outcome") == outcome && len(s.Links) == links
			})
		}
	}
	r.until("the attempt that asks is told of", ended("asked", 0))
	_, err := r.answer(threadID, r.asked(threadID).ID, true)
	require.NoError(t, err)
	r.until("the money moved", func() bool { return r.traffic().Refunds.Committed == 1 })
	r.until("the attempt with the answer is told of", ended("done", 1))
	for name, n := range map[string]int{"superstep": 3, "task": 3, "attempt": 4, "question": 1} { // a worker that is killed takes along what it has not sent
		r.until("what has ended is told of: "+name, func() bool { return len(named(o.of(threadID), name)) == n })
	}
	r.kill(first)
	r.refundWorker("worker-2")
	r.wait(threadID, thread.StatusFinished)
	documented, err := os.ReadFile("../../docs/observability.md")
	require.NoError(t, err)
	asDocumented := func(spans []*tracepb.Span) bool {
		return strings.Contains(string(documented), "```text\n"+drawn(spans)+"```")
	}
	spans := o.until(r, threadID, asDocumented)
	require.True(t, asDocumented(spans), "the document has another trace than\n%s", drawn(spans))
	for _, secret := range []string{"o-1042", "25000", "250.00", "rf-1", "order_id"} {
		require.NotContains(t, string(o.bytes), secret)
	}
}

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
			o.draws(r, threadID, `run reconciles finished
  superstep 1
    task 1/act
      attempt 1 WorkerLost
      attempt 2 done
        lookup lookup_only
`)
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
	spans := o.draws(r, threadID, `run nests finished
  superstep 1
    task 1/team
      superstep 1
        task 1/team|1/reads
          attempt 1 done
      superstep 2
        task 1/team|2/expert
          attempt 1 asked
          attempt 1 done (1 links)
          question question answered (1 links)
  superstep 2
    task 2/tells
      attempt 1 done
`)
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

// TestTraceGoesOutside: the call of an effect carries its span to whom it calls.
func TestTraceGoesOutside(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	r.putText("effect", "keyed")
	r.graphsWorker("worker")
	threadID := testserver.Queue(t)
	r.again("reconciles", threadID, r.steered())
	r.wait(threadID, thread.StatusFinished)
	effects := named(o.until(r, threadID, func(spans []*tracepb.Span) bool { return len(named(spans, "effect")) > 0 }), "effect")
	require.Len(t, effects, 1)
	effect := effects[0]
	carried, err := os.ReadFile(filepath.Join(r.dir, "traceparent"))
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("00-%x-%x-01", effect.TraceId, effect.SpanId), string(carried))
	require.NotEmpty(t, attributeOf(effect, "superstep.effect.key"))
}

// TestTraceOfWhoRunsACommand: a command line is told by its environment whose span it runs in.
func TestTraceOfWhoRunsACommand(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	r.graphsWorker("worker")
	threadID := testserver.Queue(t)
	args := append([]string{"run", "adds", "--thread", threadID, "--input", `{"note":"x"}`, "--follow"}, r.connection()...)
	r.exits(0, r.begunBy(r.binary(superstepCommand), args, fmt.Sprintf("TRACEPARENT=00-%s-%x-01", outsideTrace, outsider)).end())
	o.draws(r, threadID, "run adds finished\n  superstep 1\n    task 1/adds\n      attempt 1 done\n")
}

// TestTraceOfARunThatIsTakenOver: a run that waits is replayed by another worker, which tells only what is new.
func TestTraceOfARunThatIsTakenOver(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	first := r.graphsWorker("worker-1")
	threadID := testserver.Queue(t)
	r.again("asks", threadID, r.steered())
	r.until("both ask", func() bool { return len(r.settled(threadID).Questions) == 2 })
	questions := r.settled(threadID).Questions
	r.until("the attempts are told of", func() bool { return len(named(o.of(threadID), "attempt")) == 2 })
	r.kill(first)
	r.graphsWorker("worker-2")
	for _, q := range questions {
		var value any = "red"
		if q.Node == "number" {
			value = 3
		}
		_, err := r.answer(threadID, q.ID, value)
		require.NoError(t, err)
	}
	r.wait(threadID, thread.StatusFinished)
	spans := o.until(r, threadID, func(spans []*tracepb.Span) bool { return len(named(spans, "attempt")) >= 4 })
	require.Len(t, named(spans, "superstep"), 1)
	require.Len(t, named(spans, "task"), 2)
	require.Len(t, named(spans, "question"), 2)
	require.Len(t, named(spans, "attempt"), 4)
}

// TestTraceOfSegments: supersteps that one activity runs are told of as all others.
func TestTraceOfSegments(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	r.graphsWorker("worker")
	r.put("go")
	threadID := testserver.Queue(t)
	r.again("fuses", threadID, r.steered(), superstep.DurabilityAsync)
	q := r.asked(threadID)
	_, err := r.answer(threadID, q.ID, true)
	require.NoError(t, err)
	r.wait(threadID, thread.StatusFinished)
	o.draws(r, threadID, `run fuses finished
  superstep 1
    task 1/plan
      attempt 1 done
  superstep 2
    task 2/part:0
      attempt 1 done
    task 2/part:1
      attempt 1 done
    task 2/part:2
      attempt 1 done
  superstep 3
    task 3/flaky
      attempt 1 failed NodeFailure
      attempt 2 done
  superstep 4
    task 4/gate
      attempt 1 done
  superstep 5
    task 5/act
      attempt 1 done
        effect file
  superstep 6
    task 6/sub
      superstep 1
        task 6/sub|1/inner
          attempt 1 done
      superstep 2
        task 6/sub|2/ask
          attempt 1 asked
          attempt 1 done (1 links)
          question question answered
  superstep 7
    task 7/after
      attempt 1 done
`)
}

// TestTraceOfARunThatFails: what failed says so, of what type it was and no more. A run that was held and goes on tells once.
func TestTraceOfARunThatFails(t *testing.T) {
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprint("held ", held), func(t *testing.T) {
			r := newRig(t)
			o := r.otlp()
			r.graphsWorker("worker")
			r.put("go")
			r.put("broken")
			threadID := testserver.Queue(t)
			_, err := r.client.Start(t.Context(), thread.StartRequest{Graph: "pair", Thread: threadID, Input: encode(t, r.steered()), Hold: held})
			require.NoError(t, err)
			if !held {
				r.wait(threadID, thread.StatusFailed)
				spans := o.whole(r, threadID)
				require.Equal(t, "superstep.NodeFailed", attributeOf(named(spans, "run")[0], "error.type"))
				require.Equal(t, "superstep.NodeFailed", attributeOf(named(spans, "superstep")[0], "error.type"))
				require.NotContains(t, string(o.bytes), "it is broken")
				failed := named(spans, "run")[0]
				r.remove("broken")
				_, err = r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
				require.NoError(t, err)
				r.wait(threadID, thread.StatusFinished)
				r.until("the retry is told of", func() bool { return len(named(o.of(threadID), "run")) == 2 })
				retried := named(o.of(threadID), "run")[1]
				require.NotEqual(t, failed.TraceId, retried.TraceId)
				require.Equal(t, failed.SpanId, retried.Links[0].SpanId)
				return
			}
			r.until("it failed", func() bool { return r.settled(threadID).Status == thread.StatusFailed })
			r.remove("broken")
			_, err = r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
			require.NoError(t, err)
			r.wait(threadID, thread.StatusFinished)
			spans := o.whole(r, threadID)
			require.Len(t, named(spans, "task"), 3)
			require.Empty(t, attributeOf(named(spans, "run")[0], "error.type"))
		})
	}
}

// TestTraceOfAJob: a job is one trace, with the runs of its experts, also when a worker dies.
func TestTraceOfAJob(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	first := r.graphsWorker("worker-1")
	id := r.submitted("two")
	r.showsJob(id, "1/2 done")
	r.until("what has ended is told of", func() bool { return len(named(o.all(), "subjob")) == 1 })
	r.kill(first)
	r.graphsWorker("worker-2")
	r.put("go")
	r.exits(0, r.superstep("job", "show", id, "--follow"))
	root := "job/" + id
	r.until("the job is told of", func() bool {
		return len(named(o.of(root), "job")) == 1 && len(named(o.of(root), "subjob")) >= 2 && len(named(o.of(root), "run")) > 0
	})
	spans := o.of(root)
	runs := named(spans, "run")
	require.NotEmpty(t, runs)
	subjobs := map[string]bool{}
	for _, s := range named(spans, "subjob") {
		require.Equal(t, named(spans, "job")[0].SpanId, s.ParentSpanId)
		subjobs[idOf(s)] = true
	}
	require.Len(t, subjobs, 2)
	for _, run := range runs {
		require.True(t, subjobs[hex.EncodeToString(run.ParentSpanId)], run)
	}
}

// TestTraceOfACancellation: what was under way ends with its run, and what is undone is told of.
func TestTraceOfACancellation(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	r.payments()
	r.refundWorker("worker")
	threadID := r.refunding("o-11")
	cancelled := r.cancelBehind(threadID)
	r.undone(threadID, "o-11")
	require.NoError(t, <-cancelled)
	spans := o.until(r, threadID, func(spans []*tracepb.Span) bool { return len(named(spans, "undo")) > 0 })
	run := named(spans, "run")[0]
	require.Equal(t, "cancelled", attributeOf(run, "superstep.outcome"))
	undone := map[string]string{}
	for _, s := range named(spans, "undo") {
		require.Equal(t, run.SpanId, s.ParentSpanId)
		undone[attributeOf(s, "superstep.effect")] = attributeOf(s, "superstep.outcome")
	}
	require.Equal(t, "compensated", undone["payments.refund"], drawn(spans))
	for _, s := range named(spans, "superstep") {
		require.Equal(t, attributeOf(s, "superstep.step") == "4", attributeOf(s, "error.type") == "Cancelled", drawn(spans))
	}
}

// TestTracesAreNoPartOfARun: a run goes on with a worker that traces nothing, and with one that does again.
func TestTracesAreNoPartOfARun(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	first := r.graphsWorker("worker-1")
	threadID := testserver.Queue(t)
	r.again("asks", threadID, r.steered())
	r.until("both ask", func() bool { return len(r.settled(threadID).Questions) == 2 })
	traced := r.env
	for i, q := range r.settled(threadID).Questions {
		r.kill(first)
		r.env = [][]string{nil, traced}[i]
		first = r.graphsWorker(fmt.Sprint("worker-", i+2))
		var value any = "red"
		if q.Node == "number" {
			value = 3
		}
		_, err := r.answer(threadID, q.ID, value)
		require.NoError(t, err)
	}
	r.wait(threadID, thread.StatusFinished)
	r.until("the run is told of", func() bool { return len(named(o.of(threadID), "run")) == 1 })
}

// TestACollectorThatIsGoneSlowsNothing: nor does one that takes requests and never answers. Runs on workers whose collector is so take no
// longer than on one that has none, and these workers drain at once.
func TestACollectorThatIsGoneSlowsNothing(t *testing.T) {
	r := newRig(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = silent.Close() })
	collectors := []string{"", "http://" + testserver.FreeAddress(), "http://" + silent.Addr().String()}
	queue, workers := r.queue, []*processes.Process(nil)
	took := make([][]time.Duration, len(collectors))
	for i, at := range collectors {
		r.queue, r.env = fmt.Sprint(queue, "-", i), nil
		if at != "" {
			r.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + at, "OTEL_BSP_SCHEDULE_DELAY=20", "OTEL_METRIC_EXPORT_INTERVAL=100"}
		}
		workers = append(workers, r.graphsWorker(fmt.Sprint("worker-", i)))
	}
	median := func(all []time.Duration) time.Duration {
		all = slices.Sorted(slices.Values(all))
		return all[len(all)/2]
	}
	slower := func(i int) bool { return median(took[i]) >= 2*median(took[0])+5*time.Millisecond }
	// Side by side, so that what else the machine does is the same for all; and more of them where it was not.
	for n := 0; n < 25 || n < 250 && (slower(1) || slower(2)); n++ {
		for i := range collectors {
			c, err := superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: fmt.Sprint(queue, "-", i)})
			require.NoError(t, err)
			began := time.Now()
			v, err := c.Start(t.Context(), thread.StartRequest{Graph: "adds", Thread: testserver.Queue(t), Input: encode(t, map[string]string{"note": "a note"})})
			require.NoError(t, err)
			v, err = c.Wait(t.Context(), v.Thread)
			require.NoError(t, err)
			require.Equal(t, thread.StatusFinished, v.Status)
			took[i] = append(took[i], time.Since(began))
		}
	}
	t.Log("medians without a collector, with one that is gone, with one that is silent:", median(took[0]), median(took[1]), median(took[2]))
	ended := make([]time.Duration, len(collectors))
	for i, worker := range workers {
		require.False(t, slower(i) && i > 0, "with collector %d", i)
		began := time.Now()
		require.NoError(t, worker.Stop())
		ended[i] = time.Since(began)
		require.Less(t, ended[i], ended[0]+20*time.Second, "it waits for its collector")
	}
}

// TestTraceOfARequest: who asks the agent server for a run has it in their own trace.
func TestTraceOfARequest(t *testing.T) {
	r := newRig(t)
	o := r.otlp()
	r.graphsWorker("worker")
	server, err := r.set.Start(t.Context(), processes.Command{Name: "serve", Path: r.binary(superstepCommand), Env: environment(),
		Args: append([]string{"serve", "--listen", "127.0.0.1:0"}, r.connection()...), ReadyLine: regexp.MustCompile(`serving  (http://\S+)`)})
	require.NoError(t, err)
	post := func(path, body string, into any) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.Said()[1]+path, strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("traceparent", fmt.Sprintf("00-%s-%x-01", outsideTrace, outsider))
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.NoError(t, json.NewDecoder(resp.Body).Decode(into))
	}
	var made struct {
		ID string `json:"thread_id"`
	}
	post("/threads", "{}", &made)
	var run any
	post("/threads/"+made.ID+"/runs", `{"assistant_id":"adds","input":{"note":"x"}}`, &run)
	spans := o.whole(r, made.ID)
	require.Equal(t, outsider, named(spans, "run")[0].ParentSpanId)
}
