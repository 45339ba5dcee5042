package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// oneNode is a graph whose only node runs fn.
func oneNode(fn graphadapter.NodeFunc, effects ...graphadapter.Effect) *graphadapter.Graph {
	g := &graphadapter.Graph{
		Spec: &pregel.Spec{
			Version: pregel.SpecVersion, Name: "refund",
			Channels: []pregel.ChannelSpec{
				{Name: "amount", Kind: pregel.KindLast},
				{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"},
			},
			Nodes: []pregel.NodeSpec{{Name: "pay"}, {Name: "other"}},
			Edges: []pregel.Edge{{From: pregel.Start, To: "pay"}},
		},
		Nodes:   map[string]graphadapter.Node{"pay": {Run: fn}, "other": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) { return pregel.Command{}, nil }}},
		Effects: map[string]graphadapter.Effect{},
	}
	for _, e := range effects {
		g.Effects[e.Name] = e
	}
	return g
}

func payTask() *pregel.Task {
	return &pregel.Task{
		Step: 3, Path: "pay", Node: "pay", StepsLeft: 7,
		State: map[string]pregel.Held{"amount": pregel.Hold(pregel.Value("250"))},
	}
}

// calling makes a node of a function of its task.
func calling(fn func(ctx context.Context, t *TaskRun) error) graphadapter.NodeFunc {
	return func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		t, ok := TaskFrom(ctx)
		if !ok {
			return pregel.Command{}, errors.New("the node has no task")
		}
		return pregel.Command{}, fn(ctx, t)
	}
}

func attemptOf(t *testing.T, g *graphadapter.Graph, env Env) (pregel.Outcome, error) {
	t.Helper()
	if env.Thread == "" {
		env.Thread = "r-7"
	}
	return RunAttempt(t.Context(), g, payTask(), env)
}

func mustJournal(t *testing.T, stored pregel.Value) *graphadapter.MemoryJournal {
	t.Helper()
	j, err := graphadapter.NewMemoryJournal(stored)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// onlyEntry returns the journal's one entry.
func onlyEntry(t *testing.T, j Journal) ledger.Entry {
	t.Helper()
	entries := j.Entries()
	if len(entries) != 1 {
		t.Fatalf("the journal has %d entries, want 1: %+v", len(entries), entries)
	}
	return entries[0]
}

// bank is the outside: it keeps writes under their keys, and counts what it was asked to do.
type bank struct {
	mu      sync.Mutex
	keyed   bool // a second call with a key is a no-op
	writes  []string
	calls   int
	lookups int
}

func (b *bank) do(_ context.Context, key string, params pregel.Value) (pregel.Value, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls++
	if !b.keyed || !b.has(key) {
		b.writes = append(b.writes, key)
	}
	return b.receipt(key), nil
}

func (b *bank) lookup(_ context.Context, key string, _ pregel.Value) (graphadapter.Finding, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lookups++
	if !b.has(key) {
		return graphadapter.Finding{Status: ledger.FindingNotFound}, nil
	}
	return graphadapter.Finding{Status: ledger.FindingCommitted, Receipt: b.receipt(key)}, nil
}

func (b *bank) has(key string) bool {
	for _, w := range b.writes {
		if w == key {
			return true
		}
	}
	return false
}

func (b *bank) receipt(key string) pregel.Value {
	v, _ := json.Marshal("rf-" + key[:6])
	return v
}

func (b *bank) effect(target ledger.Target) graphadapter.Effect {
	b.keyed = target == ledger.TargetKeyed
	e := graphadapter.Effect{Name: "payments.refund", Target: target, Do: b.do, Lookup: b.lookup}
	if target == ledger.TargetNone {
		e.Lookup = nil
	}
	return e
}

// payOnce is a node that makes one call of the effect and keeps its receipt.
func payOnce(receipt *string) graphadapter.NodeFunc {
	return calling(func(ctx context.Context, t *TaskRun) error {
		raw, err := t.Effect(ctx, "payments.refund", pregel.Value(`{"order":"o-7","amount":250}`), graphadapter.CallOptions{})
		if err != nil {
			return err
		}
		return json.Unmarshal(raw, receipt)
	})
}

func is[E error](err error) bool {
	var e E
	return errors.As(err, &e)
}

type declinedError struct{ code int }

func (e *declinedError) Error() string { return fmt.Sprintf("declined: %d", e.code) }

func isNodeError(kind string) func(error) bool {
	return func(err error) bool {
		var failure *pregel.NodeError
		return errors.As(err, &failure) && failure.Type == kind
	}
}
