package taskrun

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// kindGraph is the ledger entry of a graph called from a node's code: its thread as far as it got.
const kindGraph ledger.Kind = "graph"

// InvokeNested runs a graph inside the task that ctx belongs to, and returns its output. The graph is part of the task:
// its questions are the task's, its effects and memoised calls are in the task's journal, and when the task runs again
// the graph goes on where it stood; once finished it is not run again. It is known by its name and its input, and by its order
// among the task's calls of that graph with an equal input. It has the run's context value, what its nodes emit is emitted by the
// task, and a drain that they ask for is the task's: the graph itself runs on.
//
// Errors: [ErrOutsideNode]; [ErrInterrupted] while it waits for an answer; otherwise what failed it.
func InvokeNested(ctx context.Context, g *graphadapter.Graph, input pregel.Value) (map[string]pregel.Value, error) {
	t, ok := TaskFrom(ctx)
	if !ok {
		return nil, graphadapter.ErrOutsideNode
	}
	about, err := graphadapter.ParamsHash(jsontext.OrNull(input))
	if err != nil {
		return nil, err
	}
	key := t.callKey(kindGraph, g.Spec.Name, "", about)
	call := ledger.Entry{Key: key, Name: "graph " + g.Spec.Name, Kind: ledger.KindTask, Attempts: 1}
	stored, err := t.memo(ctx, call, func(ctx context.Context) (pregel.Value, error) {
		inner, _ := TaskFrom(ctx)
		output, err := inner.runNested(ctx, g, key, input)
		if err != nil {
			return nil, err
		}
		return json.Marshal(output)
	})
	if err != nil {
		return nil, err
	}
	var output map[string]pregel.Value
	return output, json.Unmarshal(stored, &output)
}

// runNested drives the graph's thread until it ends or waits, and keeps it in the journal when it has not finished.
func (t *TaskRun) runNested(ctx context.Context, g *graphadapter.Graph, key string, input pregel.Value) (map[string]pregel.Value, error) {
	program, err := g.Program()
	if err != nil {
		return nil, err
	}
	thread, in, err := t.nestedThread(program, key, input)
	if err != nil {
		return nil, err
	}
	loop, err := program.Start(thread, in, pregel.Options{
		RecursionLimit: cmp.Or(t.task.Limit, graphadapter.DefaultRecursionLimit), Namespace: t.task.Space() + "+" + key[:8],
	}, false, nil)
	if err != nil {
		return nil, err
	}
	err = drive(ctx, program, loop, graphadapter.RunOptions{}, nested{t, g})
	if err == nil && loop.Status() == pregel.StatusDone {
		return loop.Output(), nil
	}
	if err := t.keepNested(ctx, program, thread, key, g.Spec.Name); err != nil {
		return nil, err
	}
	switch {
	case err != nil:
		return nil, err
	case loop.Status() == pregel.StatusBreakpoint:
		return nil, graphadapter.Permanent(fmt.Errorf("graph %q was called from a node's code and stopped at a breakpoint: breakpoints "+
			"work in subgraph nodes", g.Spec.Name))
	}
	t.adopt(program.OpenQuestions(thread))
	return nil, graphadapter.ErrInterrupted
}

// nested runs the tasks of a graph that a node's code has called.
type nested struct {
	outer *TaskRun
	graph *graphadapter.Graph
}

func (n nested) Root() *graphadapter.Graph { return n.graph }

func (n nested) Begin(task *pregel.Task, env *Env) *pregel.Outcome {
	t := n.outer
	if t.isYielding() {
		return &pregel.Outcome{Error: stopped(n.graph, task, graphadapter.ErrYielded)}
	}
	*env = Env{Thread: t.info.Thread, Context: t.env.Context, Journal: t.Journal(), Suspect: t.info.Suspect, Lost: t.info.Lost, Behind: t.env.Behind,
		Lease: t.env.Lease, Begin: t.env.Begin, Beat: t.Beat, Warn: t.env.Warn, Duplicate: t.env.Duplicate, Outside: t.env.Outside, Requester: t.env.Requester, Use: t.env.Use, outer: t}
	if t.env.Tracer != nil {
		env.Tracer = nestedTracer{t.env.Tracer}
	}
	return nil
}

// nestedThread is the graph's thread as the last execution of the task left it, and what to go on with.
func (t *TaskRun) nestedThread(program *pregel.Program, key string, input pregel.Value) (*pregel.Thread, pregel.Input, error) {
	kept, ok := t.journal.Entry(nestedKey(key))
	if !ok || kept.State == ledger.StateNotKept { // what it did outside is in the journal all the same
		return pregel.NewThread().Begin(t.task.Origin + "/" + t.task.Key()), pregel.Input{Value: input}, nil
	}
	thread, err := program.DecodeThread(kept.Result)
	return thread, pregel.Input{Resume: &pregel.Resume{Answers: t.task.Answers, AskAgain: len(t.task.Answers) == 0}}, err
}

func nestedKey(key string) string { return key + "/thread" }

func (t *TaskRun) keepNested(ctx context.Context, program *pregel.Program, thread *pregel.Thread, key, name string) error {
	state, err := program.EncodeThread(thread)
	if err != nil {
		return err
	}
	return t.recordDone(ctx, ledger.Entry{
		Key: nestedKey(key), Name: name, Kind: kindGraph, State: ledger.StateIntent, Result: state, Attempts: 1,
	})
}

// adopt makes a nested graph's open questions the task's own.
func (t *TaskRun) adopt(open []pregel.OpenQuestion) {
	for scope := t; scope != nil; scope = scope.parent {
		scope.asked.Store(true)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, q := range open {
		if _, before := t.ordinals[q.ID]; !before {
			q.Ordinal = len(t.ordinals)
			if t.ordinals == nil {
				t.ordinals = map[string]int{}
			}
			t.ordinals[q.ID] = q.Ordinal
			t.questions = append(t.questions, q.Question)
		}
	}
}

// nestedTracer is the tracer of a graph that a node's code has called: its tasks are part of the node's attempt.
type nestedTracer struct{ Tracer }

// Attempt implements Tracer.
func (nestedTracer) Attempt(ctx context.Context, _ int) (context.Context, func(outcome, failed string)) {
	return ctx, func(string, string) {}
}
