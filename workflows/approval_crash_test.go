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
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows"
)

// cutLine is a worker's connection to the server. Once cut, nothing that the worker has done gets through, as if its process
// had been killed.
type cutLine struct {
	cut atomic.Bool
	// before, if it is set, decides by what is about to be said whether the line is cut.
	before func(req any) bool
}

func (l *cutLine) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if l.before(req) {
		l.cut.Store(true)
	}
	if l.cut.Load() && strings.Contains(method, "Task") {
		<-ctx.Done()
		return ctx.Err()
	}
	return call(ctx, method, req, reply, conn, opts...)
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
	k.line.cut.Store(true)
	return k.plainKeys.Verify(token)
}

// TestApprovalOutlivesItsWorker: a worker that is lost while an answer is verified, or after it was, neither takes the
// answer along nor the question: the next worker goes on, and it counts once.
func TestApprovalOutlivesItsWorker(t *testing.T) {
	t.Parallel()
	whole, verified := &cutLine{before: func(any) bool { return false }}, &atomic.Bool{}
	heard := &cutLine{before: func(req any) bool { // the gate's word is stored, and nobody has acted upon it
		_, acts := req.(*workflowservice.RespondWorkflowTaskCompletedRequest)
		return acts && verified.Load()
	}}
	for name, c := range map[string]struct {
		line *cutLine
		keys approval.Keys
	}{
		"while it verifies":    {whole, cutKeys{line: whole}},
		"when it has verified": {heard, notedKeys{noted: verified}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			first := r.over(c.line)
			first.gate = &approval.Gate{Keys: c.keys}
			first.work(paymentGraph(payment()))
			thread := r.queue
			r.start(thread, workflows.GraphInput{Graph: "payment", Input: input(`{}`)})
			q := r.asks(thread, 1).Questions[0]
			answered := make(chan error, 1)
			go func() {
				_, err := r.update(thread, replied(t, thread, q, "ann", approves))
				answered <- err
			}()
			await(t, "the loss of the worker", c.line.cut.Load, func() any { return nil })
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
			if s, err := r.state(thread); err == nil && len(s.Questions) > 0 { // nobody verified it in time
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

// notedKeys note that they were asked.
type notedKeys struct {
	plainKeys
	noted *atomic.Bool
}

func (k notedKeys) Verify(token string) (approval.Claims, error) {
	k.noted.Store(true)
	return k.plainKeys.Verify(token)
}
