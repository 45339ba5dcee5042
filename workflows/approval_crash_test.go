package workflows_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// cutLine is a worker's connection to the server. Once it is gone, nothing that the worker has done gets through, and it
// asks for nothing more, as if its process had been killed.
type cutLine struct {
	gone context.Context
	cut  context.CancelFunc
	// before, if it is set, decides by what is about to be said whether the line is cut.
	before func(req any) bool
}

func newCutLine() *cutLine {
	l := &cutLine{}
	l.gone, l.cut = context.WithCancel(context.Background())
	return l
}

func (l *cutLine) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if l.before != nil && l.before(req) {
		l.cut()
	}
	if !strings.Contains(method, "Task") {
		return call(ctx, method, req, reply, conn, opts...)
	}
	called, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.gone, cancel)() // the server learns that nobody polls any more
	err := l.gone.Err()
	if err == nil {
		err = call(called, method, req, reply, conn, opts...)
	}
	if l.gone.Err() != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

// over is a rig whose workers talk to the server by the line.
func (r *rig) over(l *cutLine) *rig {
	r.t.Helper()
	c, err := client.Dial(client.Options{HostPort: testserver.Address(r.t), Identity: "cut", Logger: silent{},
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(l.intercept)}}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	other := *r
	other.client = c
	return &other
}

// cutKeys cut the line as soon as they are asked: the question is claimed, and nobody verifies.
type cutKeys struct {
	plainKeys
	line *cutLine
}

func (k cutKeys) Verify(token string) (approval.Claims, error) {
	k.line.cut()
	return k.plainKeys.Verify(token)
}

// TestApprovalOutlivesItsWorker: a worker that is lost while an answer is verified, or after it was, neither takes the
// answer along nor the question: the next worker goes on, and it counts once.
func TestApprovalOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		apart bool // the gate is slow at first, so that an activity of its own asks again
		cut   func() (*cutLine, approval.Keys)
	}{
		"while it verifies":           {false, cutVerifying},
		"while it verifies apart":     {true, cutVerifying},
		"when it has verified":        {false, cutVerified}, // and the gate's word is lost with the workflow task
		"when it has verified, apart": {true, cutVerified},  // the gate's word is stored, and nobody has acted upon it
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line, keys := c.cut()
			r := newRig(t)
			first := r.over(line)
			first.gate = &approval.Gate{Keys: keys}
			if c.apart {
				slow := newStuckKeys(keys)
				first.gate.Keys = slow
				t.Cleanup(func() { close(slow.released) })
			}
			first.work(paymentGraph(payment()))
			thread := r.queue
			r.start(thread, protocol.GraphInput{Graph: "payment", Input: input(`{}`)})
			q := r.asks(thread, 1).Questions[0]
			answered := make(chan error, 1)
			go func() {
				answered <- r.answered(thread, replied(t, thread, q, "ann", approves))
			}()
			<-line.gone.Done()
			r.gate = &approval.Gate{Keys: plainKeys{}}
			r.work(paymentGraph(payment()))
			select {
			case err := <-answered:
				if err != nil && codeOf(t, err) != approval.CodeUnavailable {
					t.Fatal(err)
				}
			case <-time.After(patience):
				t.Fatal("the answer got no reply")
			}
			s := r.until(thread, "what became of it", func(protocol.State) bool { return true })
			if len(s.Questions) > 0 { // nobody verified it in time
				r.taken(thread, replied(t, thread, s.Questions[0], "bob", approves))
			}
			if log := r.ended(thread); !strings.HasPrefix(log, `["approve `) || strings.Contains(log, ",bob") {
				t.Errorf("the run ended with %s", log)
			}
			if audit := r.audit(thread, paymentGraph(payment())); strings.Count(audit, "answered") != 1 {
				t.Errorf("the audit is\n%s", audit)
			}
		})
	}
}

// cutVerifying loses the worker while it is asked.
func cutVerifying() (*cutLine, approval.Keys) {
	line := newCutLine()
	return line, cutKeys{line: line}
}

// cutVerified loses the worker when it is about to tell what it has verified.
func cutVerified() (*cutLine, approval.Keys) {
	verified := &atomic.Bool{}
	line := newCutLine()
	line.before = func(req any) bool {
		_, acts := req.(*workflowservice.RespondWorkflowTaskCompletedRequest)
		return acts && verified.Load()
	}
	return line, notedKeys{noted: verified}
}

// notedKeys note that they were asked.
type notedKeys struct {
	plainKeys
	noted *atomic.Bool
}

func (k notedKeys) Verify(token string) (approval.Claims, error) {
	k.noted.Store(true)
	return k.plainKeys.Verify(token)
}

// stuckKeys answer the first question only when they are released, and the others as those keys do.
type stuckKeys struct {
	approval.Keys
	asked    *atomic.Int32
	released chan struct{}
}

func newStuckKeys(keys approval.Keys) stuckKeys {
	return stuckKeys{Keys: keys, asked: &atomic.Int32{}, released: make(chan struct{})}
}

func (k stuckKeys) Verify(token string) (approval.Claims, error) {
	if k.asked.Add(1) == 1 {
		<-k.released
		return plainKeys{}.Verify(token)
	}
	return k.Keys.Verify(token)
}

// TestApprovalByASlowGate: a gate that does not answer at once is asked again apart, and holds up neither the answer nor
// anything else that comes to the run for longer than that.
func TestApprovalByASlowGate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	keys := newStuckKeys(plainKeys{})
	r.gate = &approval.Gate{Keys: keys}
	r.work(paymentGraph(payment()))
	t.Cleanup(func() { close(keys.released) }) // before the worker ends
	thread := r.queue
	r.start(thread, protocol.GraphInput{Graph: "payment", Input: input(`{}`)})
	q := r.asks(thread, 1).Questions[0]
	began := time.Now()
	r.taken(thread, replied(t, thread, q, "ann", approves))
	if took := time.Since(began); took > graphadapter.VerifyWithin {
		t.Errorf("the answer took %v", took)
	}
	if log := r.ended(thread); log != `["approve ann","{\"amount\":1000}","end"]` {
		t.Errorf("the run ended with %s", log)
	}
	apart := 0
	for _, e := range r.history(thread).Events {
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == graphadapter.VerifyActivity {
			apart++
		}
	}
	if apart != 1 || keys.asked.Load() != 2 {
		t.Errorf("the gate was asked %d times, %d of them apart: want 2 and 1", keys.asked.Load(), apart)
	}
}
