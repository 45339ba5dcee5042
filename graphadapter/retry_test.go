package graphadapter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

type declinedError struct{ code int }

func (e *declinedError) Error() string { return fmt.Sprintf("declined: %d", e.code) }

type finalError struct{}

func (finalError) Error() string   { return "final" }
func (finalError) Permanent() bool { return true }

type namedError struct{ error }

func (namedError) ErrorType() string { return "RateLimit" }

func TestRetryAfter(t *testing.T) {
	boom := errors.New("boom")
	onlyEOF := func(err error) bool { return errors.Is(err, io.EOF) }
	always := func(error) bool { return true }
	const no = time.Duration(-1)
	for _, c := range []struct {
		name     string
		policies []RetryPolicy
		attempt  int
		err      error
		wait     time.Duration // without the jitter of 7 ms
	}{
		{"no policy", nil, 1, boom, no},
		{"no error", []RetryPolicy{{}}, 1, nil, no},
		{"defaults: first", []RetryPolicy{{}}, 1, boom, 500 * time.Millisecond},
		{"defaults: second", []RetryPolicy{{}}, 2, boom, time.Second},
		{"defaults: third is the last", []RetryPolicy{{}}, 3, boom, no},
		{"bounded by the default", []RetryPolicy{{MaxAttempts: 99}}, 20, boom, 128 * time.Second},
		{"bounded by its own", []RetryPolicy{{MaxAttempts: 99, MaxInterval: time.Second}}, 20, boom, time.Second},
		{"overflow", []RetryPolicy{{MaxAttempts: math.MaxInt, BackoffFactor: 1e9}}, 1 << 30, boom, 128 * time.Second},
		{"constant", []RetryPolicy{{MaxAttempts: 9, BackoffFactor: 1}}, 8, boom, 500 * time.Millisecond},
		{"no wait", []RetryPolicy{{InitialInterval: -1, BackoffFactor: math.Inf(1), MaxAttempts: 9}}, 8, boom, 0},
		{"once", []RetryPolicy{{MaxAttempts: 1}}, 1, boom, no},
		{"first that matches", []RetryPolicy{{RetryOn: onlyEOF, MaxAttempts: 1}, {}}, 1, boom, 500 * time.Millisecond},
		{"first that matches decides alone", []RetryPolicy{{RetryOn: onlyEOF, MaxAttempts: 1}, {}}, 1, io.EOF, no},
		{"wrapped", []RetryPolicy{{RetryOn: onlyEOF}}, 1, fmt.Errorf("read: %w", io.EOF), 500 * time.Millisecond},
		{"none matches", []RetryPolicy{{RetryOn: onlyEOF}}, 1, boom, no},
		{"asked for", []RetryPolicy{{}}, 1, fmt.Errorf("model: %w", WithRetryAfter(boom, 30*time.Second)), 30 * time.Second},
		{"asked for by its type", []RetryPolicy{{}}, 1, busyError{}, 40 * time.Second},
		{"asked for in a subgraph", []RetryPolicy{{}}, 1, FailureOf("g", "n", busyError{}), 40 * time.Second},
		{"asked for less than the policy's", []RetryPolicy{{InitialInterval: time.Minute}}, 1, WithRetryAfter(boom, time.Second), time.Second},
		{"asked for too much", []RetryPolicy{{}}, 1, WithRetryAfter(boom, 48*time.Hour), time.Hour},
		{"asked for more than its own bound", []RetryPolicy{{MaxRetryAfter: time.Minute}}, 1, WithRetryAfter(boom, time.Hour), time.Minute},
		{"asked for in vain", []RetryPolicy{{MaxRetryAfter: -1}}, 1, busyError{}, 500 * time.Millisecond},
		{"asked for nothing", []RetryPolicy{{}}, 1, WithRetryAfter(boom, -1), 500 * time.Millisecond},
		{"asked for, and permanent", []RetryPolicy{{}}, 1, WithRetryAfter(Permanent(boom), time.Second), no},
		{"asked for after the last", []RetryPolicy{{}}, 3, busyError{}, no},
		{"permanent", []RetryPolicy{{RetryOn: always}}, 1, fmt.Errorf("pay: %w", Permanent(boom)), no},
		{"permanent by its type", []RetryPolicy{{RetryOn: always}}, 1, finalError{}, no},
		{"interrupt", []RetryPolicy{{RetryOn: always}}, 1, fmt.Errorf("ask: %w", ErrInterrupted), no},
		{"fence", []RetryPolicy{{RetryOn: always}}, 1, ErrFenced, no},
		{"unserved", []RetryPolicy{{RetryOn: always}}, 1, &UnservedError{}, no},
		{"timeout", []RetryPolicy{{}}, 1, &TimeoutError{}, 500 * time.Millisecond},
		{"deadline", []RetryPolicy{{}}, 1, context.DeadlineExceeded, 500 * time.Millisecond},
		{"panic", []RetryPolicy{{}}, 1, &PanicError{Message: "boom"}, no},
		{"panic, if asked for", []RetryPolicy{{RetryOn: always}}, 1, &PanicError{}, 500 * time.Millisecond},
		{"outside a node", []RetryPolicy{{}}, 1, ErrOutsideNode, no},
		{"conflict", []RetryPolicy{{}}, 1, &EffectError{Err: &ledger.ConflictError{}}, no},
		{"not registered", []RetryPolicy{{}}, 1, &EffectError{Err: ErrNotRegistered}, no},
		{"route", []RetryPolicy{{}}, 1, &RouteError{}, no},
		{"update", []RetryPolicy{{}}, 1, &pregel.InvalidUpdateError{}, no},
		{"cancelled by itself", []RetryPolicy{{}}, 1, context.Canceled, 500 * time.Millisecond},
		{"a panicking predicate", []RetryPolicy{{RetryOn: func(error) bool { panic("boom") }}, {}}, 1, boom, no},
		{"subgraph", []RetryPolicy{{}}, 1, &pregel.NodeError{Type: "declinedError"}, 500 * time.Millisecond},
		{"subgraph, by type", []RetryPolicy{{RetryOn: isNodeError("Timeout")}}, 1, &pregel.NodeError{Type: "Timeout"}, 500 * time.Millisecond},
		{"subgraph, by another type", []RetryPolicy{{RetryOn: isNodeError("Timeout")}}, 1, &pregel.NodeError{Type: "Panic"}, no},
		{"subgraph, final", []RetryPolicy{{RetryOn: always}}, 1, FailureOf("g", "n", Permanent(boom)), no},
		{"subgraph, panic", []RetryPolicy{{}}, 1, FailureOf("g", "n", &PanicError{}), no},
		{"subgraph, not registered", []RetryPolicy{{}}, 1, FailureOf("g", "n", &EffectError{Err: ErrNotRegistered}), no},
		{"subgraph, outside a node", []RetryPolicy{{}}, 1, FailureOf("g", "n", ErrOutsideNode), no},
		{"subgraph, recursion", []RetryPolicy{{}}, 1, pregel.AsNodeError("g", "n", &pregel.RecursionError{}), no},
		{"subgraph, recursion, if asked for", []RetryPolicy{{RetryOn: always}}, 1, pregel.AsNodeError("g", "n", &pregel.RecursionError{}), 500 * time.Millisecond},
		{"subgraph, cancelled", []RetryPolicy{{RetryOn: always}}, 1, &pregel.NodeError{Type: pregel.CancelledType}, no},
		{"subgraph, given up", []RetryPolicy{{RetryOn: always}}, 1, &pregel.NodeError{Type: LostWorkersType}, no},
	} {
		for _, jitter := range []time.Duration{0, 7 * time.Millisecond} {
			for i := range c.policies {
				c.policies[i].NoJitter = jitter == 0
			}
			wait, again := retryAfter(c.policies, c.attempt, c.err, func() time.Duration { return 7 * time.Millisecond })
			if again != (c.wait != no) || again && wait != c.wait+jitter {
				t.Errorf("%s: wait %v, again %v; want %v", c.name, wait, again, c.wait)
			}
		}
	}
}

func isNodeError(kind string) func(error) bool {
	return func(err error) bool {
		var failure *pregel.NodeError
		return errors.As(err, &failure) && failure.Type == kind
	}
}

func TestJitterIsAtMostASecond(t *testing.T) {
	for range 1000 {
		wait, again := RetryAfter([]RetryPolicy{{InitialInterval: time.Minute}}, 1, io.EOF)
		if !again || wait < time.Minute || wait >= time.Minute+time.Second {
			t.Fatalf("waited %v", wait)
		}
	}
}

func TestPermanent(t *testing.T) {
	if Permanent(nil) != nil {
		t.Error("nil became an error")
	}
	err := Permanent(io.EOF)
	if !errors.Is(err, io.EOF) || err.Error() != "EOF" || !IsPermanent(fmt.Errorf("x: %w", err)) || IsPermanent(io.EOF) {
		t.Errorf("got %v", err)
	}
}

func TestFailureOf(t *testing.T) {
	var none *declinedError
	for _, c := range []struct {
		err  error
		kind string
	}{
		{errors.New("boom"), "NodeFailure"},
		{&declinedError{5}, "declinedError"},
		{fmt.Errorf("pay: %w", &declinedError{5}), "declinedError"},
		{&EffectError{Err: Permanent(&declinedError{5})}, "declinedError"},
		{finalError{}, "finalError"},
		{fmt.Errorf("pay: %w", namedError{io.EOF}), "RateLimit"},
		{&PanicError{Message: "boom"}, "Panic"},
		{fmt.Errorf("call: %w", context.Canceled), "NodeCancelled"},
		{context.DeadlineExceeded, "DeadlineExceeded"},
		{&EffectError{Err: ErrNotRegistered}, "NotRegistered"},
		{&TimeoutError{Kind: TimeoutIdle}, "Timeout"},
		{&RouteError{}, "RouteError"},
		{fmt.Errorf("inner: %w", &pregel.NodeError{Type: "Timeout"}), "Timeout"},
		{errors.Join(io.EOF, io.EOF), "NodeFailure"},
		{none, "declinedError"}, // its Error method panics
		{nil, "NodeFailure"},
	} {
		got := FailureOf("refund", "pay", c.err)
		if got.Final != IsPermanent(c.err) {
			t.Errorf("%v is final: %v", fmt.Sprint(c.err), got.Final)
		}
		if got.Type != c.kind || got.Graph != "refund" || got.Node != "pay" || got.Message == "" {
			t.Errorf("%v: %+v, want type %s", fmt.Sprint(c.err), got, c.kind)
		}
	}
}

func TestFailureMessageIsBounded(t *testing.T) {
	for _, text := range []string{strings.Repeat("ä", maxMessage), strings.Repeat("x", maxMessage+1), "\xff\xfe", strings.Repeat("x", maxMessage)} {
		got := FailureOf("g", "n", errors.New(text)).Message
		if len(got) > maxMessage || !utf8.ValidString(got) {
			t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
		if len(text) > maxMessage != strings.HasSuffix(got, "…") {
			t.Errorf("ends in %q", got[max(0, len(got)-20):])
		}
		if _, err := json.Marshal(got); err != nil {
			t.Error(err)
		}
	}
}

// busyError is the error of a provider that says when to come back.
type busyError struct{}

func (busyError) Error() string             { return "too many callers" }
func (busyError) RetryAfter() time.Duration { return 40 * time.Second }

// TestAnErrorThatAsksForAWaitKeepsItsKind, also where it is stored.
func TestAnErrorThatAsksForAWaitKeepsItsKind(t *testing.T) {
	stored := FailureOf("g", "n", WithRetryAfter(finalError{}, time.Second))
	if plain := FailureOf("g", "n", finalError{}); stored.Type != plain.Type || !stored.Final || stored.Message != plain.Message || stored.Wait != 1000 {
		t.Errorf("%+v, without a wait %+v", stored, plain)
	}
	if WithRetryAfter(nil, time.Second) != nil {
		t.Error("no error became one")
	}
}
