package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Option shapes a [Context], a [Matrix] or [Interrupts].
type Option interface{ apply(*settings) error }

type option func(*settings) error

func (o option) apply(s *settings) error { return o(s) }

// register adds an effect. A stand-in wins over the effect itself, whichever option comes first.
func (s *settings) register(e superstep.AnyEffect, standIn bool) error {
	effects, err := untyped(e)
	if err != nil {
		return err
	}
	for name, effect := range effects {
		if standIn || !s.stubbed[name] {
			s.effects[name] = effect
		}
		s.stubbed[name] = s.stubbed[name] || standIn
	}
	return nil
}

// Answer answers the node's questions: the first option answers the question that is asked first, and so on. The
// answer is any value that encodes as JSON, and is held to the question's schema as any answer is. A question without
// an answer leaves the node waiting, as it does in a run: [superstep.Interrupt] returns [superstep.ErrInterrupted].
//
// What asks for an approval is answered by an approval.Verdict, Reply or Decision: it is that of as many people as the action
// needs, and what they approve may be acted upon.
func Answer(v any) Option {
	return option(func(s *settings) error {
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("the answer, a %T, does not encode as JSON: %w", v, err)
		}
		s.answers = append(s.answers, raw)
		return nil
	})
}

// Info says for which task the node runs. Fields that are zero keep their defaults.
func Info(i superstep.TaskInfo) Option {
	return option(func(s *settings) error {
		s.info = i
		return nil
	})
}

// RunContext gives the node the run's context, as [superstep.WithContext] does: any value that encodes as JSON.
func RunContext(v any) Option {
	return option(func(s *settings) error {
		raw, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("the run's context, a %T, does not encode as JSON: %w", v, err)
		}
		s.context = raw
		return nil
	})
}

// Effects registers effects as they are, as AddEffect does on a graph: their own Do and Lookup are called. An effect
// that is named by no option cannot be called.
func Effects(effects ...superstep.AnyEffect) Option {
	return option(func(s *settings) error {
		for _, e := range effects {
			if err := s.register(e, false); err != nil {
				return err
			}
		}
		return nil
	})
}

// Stub registers an effect with do instead of its own Do. What do returned a receipt for is what Lookup finds from
// then on, as with a target that keeps every write; use [StubLookup] for one that tells something else. An effect
// without a Lookup stays without. Check stays the effect's own.
func Stub[P, R any](e *superstep.Effect[P, R], do func(ctx context.Context, key string, p P) (R, error)) Option {
	outside := &target[P, R]{do: do, written: map[string]R{}}
	if e == nil || do == nil || e.Lookup == nil {
		return StubLookup(e, do, nil)
	}
	return StubLookup(e, outside.call, outside.lookup)
}

// StubLookup is [Stub] with a Lookup of the test's own.
func StubLookup[P, R any](e *superstep.Effect[P, R], do func(ctx context.Context, key string, p P) (R, error),
	lookup func(ctx context.Context, key string, p P) (superstep.Finding[R], error)) Option {
	return option(func(s *settings) error {
		if e == nil || do == nil {
			return errors.New("a stub needs an effect, and a function to stand in for its Do")
		}
		double := *e
		double.Do, double.Lookup = do, lookup
		return s.register(&double, true)
	})
}

// CrashAfterSend cuts the attempt off as a crash does, right after the first Do of the effect: the target has the
// write, and nobody was told. [superstep.Effect.Call] returns [ErrCrashed], the context ends, and whatever the node
// still does with it has no effect any more. [Again] is the attempt that takes over. The effect's own functions are
// used unless it is stubbed too.
func CrashAfterSend[P, R any](e *superstep.Effect[P, R]) Option {
	return option(func(s *settings) error {
		if e == nil {
			return errors.New("a crash needs an effect after which it comes")
		}
		s.crashes[e.Name] = true
		return s.register(e, false)
	})
}

// target stands in for the outside of one effect: it keeps every write under its key.
type target[P, R any] struct {
	do func(context.Context, string, P) (R, error)

	mu      sync.Mutex
	written map[string]R
}

func (t *target[P, R]) call(ctx context.Context, key string, p P) (R, error) {
	receipt, err := t.do(ctx, key, p)
	if err == nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.written[key] = receipt
	}
	return receipt, err
}

func (t *target[P, R]) lookup(_ context.Context, key string, _ P) (superstep.Finding[R], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	receipt, ok := t.written[key]
	if !ok {
		return superstep.Finding[R]{Status: superstep.FindingNotFound}, nil
	}
	return superstep.Finding[R]{Status: superstep.FindingCommitted, Receipt: receipt}, nil
}

func matrixOption(name string, set func(*matrixSettings)) Option {
	return option(func(s *settings) error {
		s.options = append(s.options, name)
		set(&s.matrixSettings)
		return nil
	})
}

// Modes runs a [Matrix], or [Interrupts], in these modes only.
func Modes(modes ...Mode) Option {
	return matrixOption("Modes", func(s *matrixSettings) { s.modes = modes })
}

// Pairs lets a [Matrix] crash a second time as well: for each point, at every point that comes after the first crash. That
// is about the square of the number of points.
func Pairs() Option { return matrixOption("Pairs", func(s *matrixSettings) { s.pairs = true }) }

// Parallel runs the points of a [Matrix], or the places of [Interrupts], in parallel. The graph's nodes must be safe for
// that.
func Parallel() Option {
	return matrixOption("Parallel", func(s *matrixSettings) { s.parallel = true })
}

// Except leaves fields of the state out of what a [Matrix] and [Interrupts] compare: those that have another value each
// time.
func Except(fields ...string) Option {
	return matrixOption("Except", func(s *matrixSettings) {
		if s.ignored == nil {
			s.ignored = map[string]bool{}
		}
		for _, f := range fields {
			s.ignored[f] = true
		}
	})
}

// EachRun makes the graph anew for each run of a [Matrix], with an outside of the test's own: the effects' own functions
// are called. check, unless it is nil, says after a run what is wrong with the outside: a write that is there twice.
func EachRun(setup func(t testing.TB) (g superstep.Runnable, check func() error)) Option {
	return matrixOption("EachRun", func(s *matrixSettings) { s.each = setup })
}

// Store gives nodes a store ([superstep.StoreFrom]), an empty one that open makes: for a [Context] one, and another one for each run of a
// [Matrix] and of [Interrupts]. What is put there is an effect as any other; its value is in the store.
func Store(open func(t testing.TB) *superstep.Store) Option {
	return option(func(s *settings) error {
		if open == nil {
			return errors.New("Store needs a function that makes one")
		}
		s.store = open
		return nil
	})
}

// newStore makes a store, nil if the options ask for none.
func (s *settings) newStore(t testing.TB) *superstep.Store {
	if s.store == nil {
		return nil
	}
	return s.store(t)
}

// settings are what the options say.
type settings struct {
	store   func(testing.TB) *superstep.Store // nil for none
	info    superstep.TaskInfo
	context json.RawMessage
	answers []json.RawMessage
	effects map[string]graphadapter.Effect
	// stubbed and crashes are names of effects: those with a stand-in, and those after whose first call the attempt is
	// cut off.
	stubbed, crashes map[string]bool
	matrixSettings
}

func settingsOf(opts []Option) (settings, error) {
	s := settings{effects: map[string]graphadapter.Effect{}, stubbed: map[string]bool{}, crashes: map[string]bool{}}
	for _, o := range opts {
		if err := o.apply(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// matrixSettings are what the options for a [Matrix] and for [Interrupts] say.
type matrixSettings struct {
	modes    []Mode
	each     func(testing.TB) (superstep.Runnable, func() error)
	ignored  map[string]bool
	budget   *pregel.Amounts // nil for none
	pairs    bool
	parallel bool
	// options are the names of those given.
	options []string
}

func (s *settings) modesOr(otherwise ...Mode) []Mode {
	if len(s.modes) > 0 {
		return s.modes
	}
	return otherwise
}

// forContext refuses what is for whole graphs.
func (s *settings) forContext() error {
	if len(s.options) > 0 {
		return errors.New(s.options[0] + " is for graphtest.Matrix")
	}
	return nil
}

// forMatrix refuses what is for a [Context].
func (s *settings) forMatrix() error {
	switch {
	case len(s.crashes) > 0:
		return errors.New("CrashAfterSend is for graphtest.Context: a Matrix crashes everywhere")
	case s.info != superstep.TaskInfo{}:
		return errors.New("Info is for graphtest.Context: a Matrix runs the whole graph")
	}
	return nil
}

// Budget gives each run of a [Matrix] a budget, as [superstep.WithBudget] does, and holds what is counted against it to what
// happened: it is never less than without the crash, and no fewer writes than the target has. Its questions for more are
// answered as any. Time is not compared.
func Budget(b superstep.Budget) Option {
	return option(func(s *settings) error {
		amounts := b.Amounts()
		if problem := amounts.Problem(); problem != "" {
			return errors.New(problem)
		}
		s.budget = &amounts
		s.options = append(s.options, "Budget")
		return nil
	})
}

// forInterrupts refuses what is for a [Context], and what needs crashes.
func (s *settings) forInterrupts() error {
	for _, name := range s.options {
		if name == "Pairs" || name == "EachRun" || name == "Budget" {
			return errors.New(name + " is for graphtest.Matrix")
		}
	}
	return s.forMatrix()
}

// Mode is how a run of a [Matrix] is executed, and so what a crash can lose.
type Mode string

// The modes of a run.
const (
	// Sync: each task is an activity of its own; what a Task or Effect records is stored before the node goes on.
	Sync Mode = "sync"
	// Fused: consecutive supersteps are one activity; each superstep, Task and Effect is stored before the run goes on.
	Fused Mode = "fused"
	// Async: the same, but stored in the background: a crash loses the newest records, or none.
	Async Mode = "async"
	// Exit: nothing is stored before the run ends or asks; a crash loses all that it did since.
	Exit Mode = "exit"
)

func (m Mode) durability() graphadapter.Durability {
	switch m {
	case Async:
		return graphadapter.DurabilityAsync
	case Exit:
		return graphadapter.DurabilityExit
	}
	return graphadapter.DurabilitySync
}
