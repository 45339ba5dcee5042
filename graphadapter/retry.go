package graphadapter

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"time"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// The defaults of a [RetryPolicy], which are LangGraph's.
const (
	defaultInitialInterval = 500 * time.Millisecond
	defaultBackoffFactor   = 2.0
	defaultMaxInterval     = 128 * time.Second
	defaultMaxAttempts     = 3
	defaultMaxRetryAfter   = time.Hour
	maxJitter              = time.Second
)

// RetryAfter says whether a task is to be attempted again after attempt (from 1) failed with err, and after which
// wait: min(MaxInterval, InitialInterval × BackoffFactor^(attempt−1)) plus up to 1 s of jitter. The first policy whose
// RetryOn matches decides. Without one that matches the failure is final. Where the error asks for a wait ([WaitOf]), as a provider's
// Retry-After does, that is the wait, at most the policy's MaxRetryAfter, again plus jitter.
//
// A [Permanent] error, a wait for an answer, a lost fence and an unserved node are never repeated. A nil RetryOn also
// leaves out what is a mistake in the program, which a repetition does not mend: a panic, a call outside a node, an
// effect used with other parameters or not registered, a route or an update that the graph does not have, an emit
// limit, a recursion limit. It matches everything else, timeouts included.
//
// A subgraph's failure is a *pregel.NodeError, of which the same holds by its type and its Final. A RetryOn that panics
// says no to everything: it is logged, and the failure is final.
func RetryAfter(policies []RetryPolicy, attempt int, err error) (wait time.Duration, again bool) {
	return retryAfter(policies, attempt, err, func() time.Duration { return rand.N(maxJitter) })
}

func retryAfter(policies []RetryPolicy, attempt int, err error, jitter func() time.Duration) (time.Duration, bool) {
	if err == nil || neverRepeated(err) {
		return 0, false
	}
	for _, p := range policies {
		matches, ok := p.matches(err)
		if !ok {
			return 0, false
		}
		if !matches {
			continue
		}
		if attempt >= cmp.Or(p.MaxAttempts, defaultMaxAttempts) {
			return 0, false
		}
		wait := p.wait(attempt, err)
		if !p.NoJitter {
			wait += jitter()
		}
		return wait, true
	}
	return 0, false
}

// matches asks the policy; ok is false when it has no answer because its RetryOn panicked.
func (p *RetryPolicy) matches(err error) (matches, ok bool) {
	if p.RetryOn == nil {
		return !programMistake(err), true
	}
	var broken error
	func() {
		defer Catch(&broken)
		matches = p.RetryOn(err)
	}()
	if broken != nil {
		slog.Error("superstep: the RetryOn of a retry policy panicked, so the failure that it was asked about is final",
			"panic", broken, "failure", fmt.Sprint(err))
	}
	return matches, broken == nil
}

// wait is how long to wait after a failed attempt, without jitter.
func (p *RetryPolicy) wait(attempt int, err error) time.Duration {
	most := cmp.Or(p.MaxRetryAfter, defaultMaxRetryAfter)
	if asked := WaitOf(err); asked > 0 && most > 0 {
		return min(asked, most)
	}
	return p.backoff(attempt)
}

// WaitOf is how long err, or an error that it wraps, asks to wait before the next attempt: by a method RetryAfter() time.Duration, or
// NextRetryDelay() time.Duration, as Temporal calls it. It is 0 when none asks.
func WaitOf(err error) time.Duration {
	var after interface {
		error
		RetryAfter() time.Duration
	}
	if errors.As(err, &after) {
		return max(after.RetryAfter(), 0)
	}
	var stored *pregel.NodeError
	if errors.As(err, &stored) {
		return time.Duration(max(stored.Wait, 0)) * time.Millisecond
	}
	var delay interface {
		error
		NextRetryDelay() time.Duration
	}
	if errors.As(err, &delay) {
		return max(delay.NextRetryDelay(), 0)
	}
	return 0
}

// WithRetryAfter is err that asks for a wait before the next attempt. It returns nil for nil.
func WithRetryAfter(err error, wait time.Duration) error {
	if err == nil {
		return nil
	}
	return waitingError{err, wait}
}

type waitingError struct {
	error
	wait time.Duration
}

func (e waitingError) Unwrap() error { return e.error }

// RetryAfter says how long to wait.
func (e waitingError) RetryAfter() time.Duration { return e.wait }

func (p *RetryPolicy) backoff(attempt int) time.Duration {
	initial := cmp.Or(p.InitialInterval, defaultInitialInterval)
	if initial < 0 {
		return 0
	}
	factor := cmp.Or(p.BackoffFactor, defaultBackoffFactor)
	longest := cmp.Or(p.MaxInterval, defaultMaxInterval)
	wait := float64(initial) * math.Pow(factor, float64(max(attempt, 1)-1))
	if !(wait < float64(longest)) { // also when it overflowed
		return max(longest, 0)
	}
	return time.Duration(max(wait, 0))
}

// permanentError marks an error as one that no repetition mends.
type permanentError struct{ error }

func (e permanentError) Unwrap() error { return e.error }

// Permanent marks err as final: no retry policy repeats the attempt. It returns nil for nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return permanentError{err}
}

// Permanent says so of itself.
func (permanentError) Permanent() bool { return true }

// IsPermanent reports whether err, or an error that it wraps, is final: marked by [Permanent], or of a type that has a
// method Permanent() bool and says so itself.
func IsPermanent(err error) bool {
	var p interface {
		error
		Permanent() bool
	}
	return errors.As(err, &p) && p.Permanent()
}

func neverRepeated(err error) bool {
	var unserved *UnservedError
	return IsPermanent(err) || errors.Is(err, ErrInterrupted) || errors.Is(err, ErrFenced) || errors.Is(err, ErrYielded) ||
		errors.As(err, &unserved) || stoppedFromOutside(err)
}

// stoppedFromOutside reports whether err is the end of a subgraph that was cancelled, or given up by a person.
func stoppedFromOutside(err error) bool {
	var stored *pregel.NodeError
	return errors.As(err, &stored) && (stored.Type == pregel.CancelledType || stored.Type == LostWorkersType)
}

// LostWorkersType is the type of the pregel.NodeError of a task that a person gave up because it kept losing its workers.
const LostWorkersType = "LostWorkers"

// programMistake reports whether err is one of this package's own that tell of a wrong program or graph, itself or as
// the failure of a subgraph's node.
func programMistake(err error) bool {
	var stored *pregel.NodeError
	if errors.As(err, &stored) && mistakeTypes[stored.Type] {
		return true
	}
	return errors.Is(err, ErrOutsideNode) || errors.Is(err, ErrNotRegistered) ||
		is[*PanicError](err) || is[*RouteError](err) || is[*AnswerError](err) || is[*EmitLimitError](err) ||
		is[*ledger.ConflictError](err) || is[*ledger.TransitionError](err) || is[*pregel.InvalidUpdateError](err)
}

// mistakeTypes are the types of those errors once they are data, and those that only exist as data.
var mistakeTypes = map[string]bool{
	"Panic": true, "RouteError": true, "AnswerError": true, "EmitLimitError": true, "ConflictError": true,
	"TransitionError": true, "InvalidUpdateError": true, "OutsideNode": true, "NotRegistered": true,
	"EmptyInputError": true, "GraphRecursionError": true, "ParentCommand": true, "PayloadTooLarge": true,
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}
