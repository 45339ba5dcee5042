package workflows_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/workflows/protocol"
)

// TestApprovalBySignal: signals are held to the checks of updates, and what they are refused for can be seen.
func TestApprovalBySignal(t *testing.T) {
	t.Parallel()
	r, thread, q := pays(t, payment(), protocol.GraphInput{})
	bad := replied(t, thread, q, "ann", approves)
	bad.Token = "junk"
	for range 3 {
		r.signal(thread, bad)
	}
	now := r.until(thread, "the refusal", func(s protocol.State) bool { return len(s.Refused) > 0 })
	if refused := now.Refused[0]; refused.Code != approval.CodeMalformed || refused.Question != q.ID || refused.By != "ann" {
		t.Errorf("refused was %+v", refused)
	}
	good := replied(t, thread, q, "bob", approves)
	r.signal(thread, good)
	r.signal(thread, good)
	if log := r.ended(thread); log != `["approve bob","{\"amount\":1000}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
}

// TestApprovalBySignalWithoutAWorker: an answer is stored while nobody is there to verify it, and it counts then.
func TestApprovalBySignalWithoutAWorker(t *testing.T) {
	t.Parallel()
	action := payment()
	action.Quorum = 2
	r := newRig(t)
	r.gate = &approval.Gate{Keys: plainKeys{}}
	stop := r.work(paymentGraph(action))
	thread := r.queue
	r.start(thread, protocol.GraphInput{Graph: "payment", Input: input(`{}`)})
	q := r.asks(thread, 1).Questions[0]
	stop()
	for _, by := range []string{"ann", "ann", "bob", "eve"} {
		r.signal(thread, replied(t, thread, q, by, approves))
	}
	r.work(paymentGraph(action))
	if log := r.ended(thread); log != `["approve ann,bob","{\"amount\":1000}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
	verified := 0
	for _, e := range r.history(thread).Events {
		if kind, _ := history.Local(converter.GetDefaultDataConverter(), e); kind == graphadapter.VerifyActivity {
			verified++
		}
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == graphadapter.VerifyActivity {
			t.Errorf("event %d verifies outside of the workflow task", e.GetEventId())
		}
	}
	if verified != 1 {
		t.Errorf("what had come at once was verified %d times, want once", verified)
	}
}

// floodOf is what somebody sends who wants to keep others from answering.
func floodOf(t *testing.T, thread string, q pregel.OpenQuestion, i int) protocol.ResumeRequest {
	req := protocol.ResumeRequest{ID: fmt.Sprint("flood ", i), Question: q.ID, Value: pregel.Value(approves), By: "mallory"}
	switch i % 4 {
	case 0:
		req.Question = fmt.Sprint("q-", i)
	case 1:
		req.Token = "junk"
	case 2:
		req.Token = fmt.Sprint("junk ", i)
	case 3:
		req.Value = pregel.Value(`"yes"`)
	}
	return req
}

// TestApprovalInAFlood: ten thousand answers that do not count neither stop the run nor fill its history, and they are
// all counted; then the right one counts.
func TestApprovalInAFlood(t *testing.T) {
	const senders = 40
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	r, thread, q := pays(t, payment(), protocol.GraphInput{})
	ctx, cancel := context.WithTimeout(context.Background(), 10*patience)
	defer cancel()
	r.ctx = ctx
	var wg sync.WaitGroup
	var again atomic.Int64 // sent without an answer from the server, which may have stored them all the same
	for sender := range senders {
		wg.Go(func() {
			for i := sender; i < flood; i += senders {
				for r.client.SignalWorkflow(ctx, thread, "", protocol.SignalResume, floodOf(t, thread, q, i)) != nil && ctx.Err() == nil {
					again.Add(1)
					<-time.After(10 * time.Millisecond) // the server takes no more for the moment
				}
			}
		})
	}
	wg.Wait()
	began := time.Now()
	r.taken(thread, replied(t, thread, q, "ann", approves))
	t.Logf("the right answer took %v", time.Since(began))
	if log := r.ended(thread); log != `["approve ann","{\"amount\":1000}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
	runs, failed := r.runs(thread), map[string]int{}
	if flood == 10_000 && len(runs) < 2 {
		t.Errorf("the thread has %d run", len(runs))
	}
	for _, id := range runs {
		n := 0
		for events := r.client.GetWorkflowHistory(ctx, thread, id, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); n++ {
			e, err := events.Next()
			if err != nil {
				t.Fatal(err)
			}
			if f := e.GetWorkflowTaskFailedEventAttributes(); f != nil {
				failed[f.GetCause().String()+" "+f.GetFailure().GetMessage()]++
			}
		}
		t.Logf("run %s has %d events", id, n)
		if n > 16_000 {
			t.Errorf("run %s has %d events", id, n)
		}
	}
	t.Logf("workflow tasks failed: %v", failed)
	audit := r.audit(thread, paymentGraph(payment()))
	refused := 0
	for line := range strings.Lines(audit) {
		var count int
		if _, err := fmt.Sscanf(line[strings.LastIndexByte(line, ' ')+1:], "x%d", &count); err != nil {
			count = 1
		}
		if strings.HasPrefix(line, "refused") {
			refused += count
		}
	}
	if lines := strings.Count(audit, "\n"); refused < flood || refused > flood+int(again.Load()) || lines > 200 {
		t.Errorf("%d of %d answers are in the audit as refused, in %d entries", refused, flood, lines)
	}
}
