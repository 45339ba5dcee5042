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
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/store"
	"superstep.dev/thread"
)

// ErrCrashed is what everything returns in an attempt that [CrashAfterSend] cut off.
var ErrCrashed = errors.New("graphtest: the attempt was cut off here, as by a crash: call graphtest.Again")

// kit is one task under test: what its attempts share.
type kit struct {
	t        testing.TB
	settings settings
	graph    *graphadapter.Graph
	ctx      context.Context // the test's, with a store if it is to have one
	journal  *graphadapter.MemoryJournal

	mu      sync.Mutex
	answers map[string]json.RawMessage // by question id
	crashed map[string]bool            // effects whose crash is over
}

func newKit(t testing.TB, s settings) (*kit, error) {
	s.info = defaults(t, s.info)
	g, err := oneNode(s.info.Graph, s.info.Node)
	if err != nil {
		return nil, fmt.Errorf("the task's names cannot be used: %w", err)
	}
	journal, err := graphadapter.NewMemoryJournal(nil)
	if err != nil {
		return nil, err
	}
	k := &kit{t: t, settings: s, journal: journal, answers: map[string]json.RawMessage{}, crashed: map[string]bool{}}
	k.graph = &graphadapter.Graph{Spec: g.Spec, Nodes: g.Nodes, Effects: g.Effects} // that with which nodes write to a store
	k.ctx = store.NewContext(t.Context(), s.newStore(t))
	for name, e := range s.effects {
		k.graph.Effects[name] = k.watched(e)
	}
	return k, nil
}

// attempt is one execution of the task.
type attempt struct {
	kit    *kit
	info   superstep.TaskInfo
	opened chan context.Context // gets the node's context
	ending chan struct{}        // closed to end the node
	ended  chan struct{}        // closed when it has
	err    error                // why it ended; set before ended is closed
	cancel context.CancelCauseFunc
	once   sync.Once

	mu      sync.Mutex
	dead    bool // whatever still happens has no effect
	asked   []thread.Question
	emitted []json.RawMessage
	calls   []made
}

// made is one call of an effect.
type made struct {
	op          Op
	effect, key string
	params      json.RawMessage
}

// attempt starts an execution and returns the context that its node got.
func (k *kit) attempt(number int, suspect bool) (context.Context, error) {
	a := &attempt{kit: k, info: k.settings.info, opened: make(chan context.Context, 1), ending: make(chan struct{}),
		ended: make(chan struct{})}
	a.info.Attempt = number
	ctx, cancel := context.WithCancelCause(context.WithValue(k.ctx, attemptKey{}, a))
	a.cancel = cancel
	k.t.Cleanup(func() { a.end() })
	go func() {
		defer close(a.ended)
		_, a.err = taskrun.RunAttempt(ctx, k.graph, a.task(), taskrun.Env{
			Thread: a.info.Thread, Attempt: number, Suspect: suspect, Journal: journal{k.journal, a},
			Emit: a.emit, Asked: a.ask, Context: k.settings.context, Alone: true,
			Requester: a.info.Requester, Use: allowed, Elsewhere: true,
		})
	}()
	select {
	case opened := <-a.opened:
		return opened, nil
	case <-a.ended:
		return nil, fmt.Errorf("the node's context could not be made: %w", a.err)
	}
}

func (a *attempt) task() *pregel.Task {
	return &pregel.Task{Namespace: a.info.Namespace, Step: a.info.Step, Path: a.info.Path, Node: a.info.Node, StepsLeft: a.info.StepsLeft}
}

// end ends the execution as the node's return does, and reports whether it had crashed before.
func (a *attempt) end() (crashed bool) {
	a.once.Do(func() {
		close(a.ending)
		<-a.ended
		a.cancel(nil)
	})
	return !a.alive()
}

// die ends the execution as a crash does.
func (a *attempt) die() {
	a.mu.Lock()
	a.dead = true
	a.mu.Unlock()
	a.cancel(ErrCrashed)
}

func (a *attempt) alive() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.dead
}

// emit keeps an emitted value. A reset is none: what an attempt emitted is kept with it.
func (a *attempt) emit(e pregel.Emission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.dead && e.Kind != pregel.EmissionReset {
		a.emitted = append(a.emitted, e.Value)
	}
}

// ask answers a question with the answer that it had before, or else with the next one.
func (a *attempt) ask(q pregel.Question) (pregel.Value, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead {
		return nil, false
	}
	asked := thread.Question{ID: q.ID, Node: a.info.Node, Step: a.info.Step, Value: q.Value, Schema: q.Schema}
	if action, err := actionOf(q); err == nil {
		asked.Approval = &thread.ApprovalView{Action: action, Digest: action.Digest(), Asked: action.Approvers, Need: action.Needs(0)}
	}
	a.asked = append(a.asked, asked)
	answer, ok := a.kit.answer(q.ID)
	if !ok || q.Approval == nil {
		return answer, ok
	}
	decision, err := decided(q, answer)
	if err != nil {
		return answer, true // the node fails with it, and says why
	}
	return decision, true
}

func (k *kit) answer(question string) (pregel.Value, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	answer, ok := k.answers[question]
	if !ok && len(k.settings.answers) > 0 {
		answer, ok = k.settings.answers[0], true
		k.settings.answers = k.settings.answers[1:]
		k.answers[question] = answer
	}
	return answer, ok
}

// watched is an effect whose calls are kept, and which crashes where it was told to.
func (k *kit) watched(e graphadapter.Effect) graphadapter.Effect {
	do, lookup := e.Do, e.Lookup
	e.Do = func(ctx context.Context, key string, params pregel.Value) (pregel.Value, error) {
		a := attemptOf(ctx)
		if err := a.calling(OpDo, e.Name, key, params); err != nil {
			return nil, err
		}
		receipt, err := do(ctx, key, params)
		if k.crashesNow(e.Name) {
			a.die()
			return nil, ErrCrashed
		}
		return receipt, err
	}
	if lookup == nil {
		return e
	}
	e.Lookup = func(ctx context.Context, key string, params pregel.Value) (graphadapter.Finding, error) {
		if err := attemptOf(ctx).calling(OpLookup, e.Name, key, params); err != nil {
			return graphadapter.Finding{}, err
		}
		return lookup(ctx, key, params)
	}
	return e
}

// crashesNow reports, once for each effect, that its crash comes.
func (k *kit) crashesNow(effect string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.settings.crashes[effect] || k.crashed[effect] {
		return false
	}
	k.crashed[effect] = true
	return true
}

// calling keeps a call that is about to be made; a crashed attempt makes none.
func (a *attempt) calling(op Op, effect, key string, params pregel.Value) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead {
		return ErrCrashed
	}
	a.calls = append(a.calls, made{op: op, effect: effect, key: key, params: params})
	return nil
}

// journal is the task's journal as one attempt reaches it: after a crash it is out of reach.
type journal struct {
	*graphadapter.MemoryJournal
	a *attempt
}

// Record implements taskrun.Journal.
func (j journal) Record(ctx context.Context, e ledger.Entry) error {
	if !j.a.alive() {
		return fmt.Errorf("%w (%w)", ErrCrashed, graphadapter.ErrFenced)
	}
	return j.MemoryJournal.Record(ctx, e)
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		panic("graphtest: the context does not come from graphtest.Context")
	}
	return a
}

// nothing is the state of a graph that only holds one node.
type nothing struct {
	Nothing superstep.Value[bool] `json:"nothing"`
}

// oneNode is a graph of one node and these effects, whose node hands its context out and waits for its end.
func oneNode(graph, node string, effects ...superstep.AnyEffect) (*graphadapter.Graph, error) {
	g := superstep.NewStateGraph[nothing](graph)
	g.AddEffect(effects...)
	g.AddNode(node, func(ctx context.Context, s nothing) (nothing, error) {
		a := attemptOf(ctx)
		a.opened <- ctx
		select {
		case <-a.ending:
		case <-ctx.Done():
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, node)
	compiled, err := g.Compile()
	if err != nil {
		return nil, err
	}
	return compiled.Adapter(), nil
}

// untyped returns an effect without its types, by its name.
func untyped(e superstep.AnyEffect) (map[string]graphadapter.Effect, error) {
	g, err := oneNode("graphtest", "node", e)
	if err != nil {
		return nil, fmt.Errorf("the effect cannot be used: %w", err)
	}
	return g.Effects, nil
}

// stepsLeft is how many supersteps are left to a run of the default limit at its first node.
const stepsLeft = 10_007

// defaults fills in what the test did not say of its task.
func defaults(t testing.TB, i superstep.TaskInfo) superstep.TaskInfo {
	first := func(given, otherwise string) string {
		if given == "" {
			return otherwise
		}
		return given
	}
	i.Graph, i.Node = first(i.Graph, "graphtest"), first(i.Node, "node")
	i.Thread, i.Path = first(i.Thread, t.Name()), first(i.Path, i.Node)
	i.Step, i.Attempt = max(i.Step, 1), max(i.Attempt, 1)
	switch {
	case i.LastStep:
		i.StepsLeft = 1
	case i.StepsLeft == 0:
		i.StepsLeft = stepsLeft
	}
	return i
}

// Op says what was called of an effect.
type Op string

// What is called of an effect.
const (
	OpDo     Op = "do"
	OpLookup Op = "lookup"
)
