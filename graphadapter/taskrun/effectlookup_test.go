package taskrun

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// TestALookupThatHangs is left behind after the call timeout, whether it heeds its context or not. Nothing is called, and
// the node's policy may try again.
func TestALookupThatHangs(t *testing.T) {
	for name, heeds := range map[string]bool{"heeds its context": true, "does not": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &bank{}
				e := b.effect(ledger.TargetKeyed)
				forever := make(chan struct{})
				defer close(forever)
				e.Lookup = func(ctx context.Context, _ string, _ pregel.Value) (graphadapter.Finding, error) {
					if heeds {
						<-ctx.Done()
						return graphadapter.Finding{}, ctx.Err()
					}
					<-forever
					return graphadapter.Finding{Status: ledger.FindingNotFound}, nil
				}
				g := oneNode(calling(func(ctx context.Context, t *TaskRun) error {
					_, err := t.Effect(ctx, "payments.refund", nil, graphadapter.CallOptions{Timeout: 3 * time.Second})
					return err
				}), e)
				began := time.Now()
				_, err := attemptOf(t, g, Env{Suspect: true})
				if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
					t.Errorf("it took %v", took)
				}
				var where *graphadapter.EffectError
				if !errors.As(err, &where) || where.Op != "look up" || !strings.Contains(err.Error(), "no answer within 3s") {
					t.Errorf("got %v", err)
				}
				if _, again := graphadapter.RetryAfter([]graphadapter.RetryPolicy{{}}, 1, err); !again || b.calls != 0 {
					t.Errorf("%d calls, retried %v", b.calls, again)
				}
			})
		})
	}
}

// TestALookupThatPanics is a failure that names the effect.
func TestALookupThatPanics(t *testing.T) {
	b := &bank{}
	e := b.effect(ledger.TargetKeyed)
	e.Lookup = func(context.Context, string, pregel.Value) (graphadapter.Finding, error) { panic("no books") }
	var receipt string
	_, err := attemptOf(t, oneNode(payOnce(&receipt), e), Env{Suspect: true})
	var panicked *graphadapter.PanicError
	if !errors.As(err, &panicked) || !strings.Contains(err.Error(), "payments.refund") || b.calls != 0 {
		t.Errorf("%d calls, %v", b.calls, err)
	}
}
