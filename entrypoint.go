package superstep

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/thread"
)

// NewEntrypoint makes a graph of one function, for work that reads best as plain code (LangGraph's functional API). The
// function is called with the run's input, any In that encodes as JSON, and what it returns is the run's Output:
//
//	var essay = superstep.NewEntrypoint("essay", func(ctx context.Context, topic string) (string, error) {
//		draft, err := superstep.Task(ctx, "write", func(ctx context.Context) (string, error) { return write(ctx, topic) })
//		if err != nil {
//			return "", err
//		}
//		good, err := superstep.Interrupt[bool](ctx, draft)
//		...
//
// The function runs again from its start after a crash, a retry or an answer. So what is slow or different each time
// belongs in a [Task] or [Go], whose results are remembered, and a write to the outside in an [Effect], which
// [WithEffects] registers; loops, conditions and errors are Go's own. Everything that works in a node works in it.
//
// What it returned is also kept for the thread's next run, which reads it with [Previous]; [Save] keeps something else.
// A run that failed or waits has returned nothing, and keeps nothing.
//
// The graph runs as any other: on a [Thread], on a worker, with state, history, forks and streams; the function is its
// only node and has its name. The values of [Thread.Update] are what the function is to have returned and kept. An
// entrypoint cannot be a subgraph; a node calls its Invoke. It panics when Compile would return an error.
func NewEntrypoint[In, Out any](name string, fn func(context.Context, In) (Out, error), opts ...EntrypointOption) *Graph[Out] {
	var o entrypointOptions
	for _, opt := range opts {
		opt.applyEntrypoint(&o)
	}
	node := nodeDecl{name: name, call: calledAt(), options: o.node, input: reflect.TypeFor[In]()}
	if fn != nil {
		node.run = func(*router) graphadapter.NodeFunc { return entrypointFunc(name, fn) }
	}
	adapter, err := compileEntrypoint(node, reflect.TypeFor[Out](), o)
	if err != nil {
		panic(err)
	}
	adapter.CheckInput = entrypointInput[In](name)
	adapter.CheckUpdate = entrypointUpdate[Out](name)
	return &Graph[Out]{adapter: adapter}
}

type entrypointOption func(*entrypointOptions)

func (o entrypointOption) applyEntrypoint(e *entrypointOptions) { o(e) }

// WithEffects registers the effects that an entrypoint calls, as [StateGraph.AddEffect] does for a graph.
func WithEffects(effects ...AnyEffect) EntrypointOption {
	call := calledAt()
	return entrypointOption(func(o *entrypointOptions) {
		for _, e := range effects {
			o.effects = append(o.effects, effectDecl{e, call})
		}
	})
}

// entrypointFunc is the node of an entrypoint.
func entrypointFunc[In, Out any](name string, fn func(context.Context, In) (Out, error)) graphadapter.NodeFunc {
	return func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
		var none pregel.Command
		var input In
		if err := jsonfit.Decode(in.State[pregel.FunctionInput].Value(), &input); err != nil {
			return none, graphadapter.Permanent(inputError[In](newScope(name, name), err))
		}
		t, _ := taskrun.TaskFrom(ctx)
		e := &entry{task: t.Info(), previous: in.State[pregel.FunctionPrevious].Value()}
		returned, err := fn(context.WithValue(ctx, entryKey{}, e), input)
		if err != nil {
			return none, err
		}
		output, err := jsonfit.Encode(returned)
		if err != nil {
			return none, graphadapter.Permanent(&StateError{Graph: name, Node: name, Field: pregel.FunctionOutput,
				Type: jsonfit.TypeName(reflect.TypeFor[Out]()), Write: true, Cause: err})
		}
		return pregel.Command{Update: pregel.FunctionWrites(output, e.kept(output))}, nil
	}
}

// entrypointInput checks input: any JSON that fits In, with no field that In does not have.
func entrypointInput[In any](name string) func(pregel.Value) error {
	return func(raw pregel.Value) error {
		if err := jsonfit.CheckSingle[In](raw); err != nil {
			return &thread.Error{Kind: thread.ErrBadInput, Graph: name, Message: fmt.Sprintf("bad input for entrypoint %q", name), Cause: err}
		}
		return nil
	}
}

// entrypointUpdate checks what an entrypoint is said to have returned. What it keeps may be of any type.
func entrypointUpdate[Out any](name string) func([]pregel.Write) error {
	return func(writes []pregel.Write) error {
		for _, w := range writes {
			if w.Channel != pregel.FunctionOutput {
				continue
			}
			if err := jsonfit.CheckSingle[Out](w.Value); err != nil {
				return &thread.Error{Kind: thread.ErrBadInput, Graph: name, Message: fmt.Sprintf("bad update for entrypoint %q", name), Cause: err}
			}
		}
		return nil
	}
}

// compileEntrypoint compiles the graph of one function. All that it lacks are the checks of values.
func compileEntrypoint(n nodeDecl, returns reflect.Type, o entrypointOptions) (*graphadapter.Graph, error) {
	c := &compiler{builder: &builder{graph: n.name, call: n.call, nodes: []nodeDecl{n}, effects: o.effects}, options: o.compile,
		at: n.call, nodeSet: map[string]bool{}, subgraphs: map[string]bool{}, byName: map[string]int{}}
	c.checkNodes()
	c.checkCache()
	c.checkInterrupts()
	c.checkDurability()
	c.checkEffects()
	c.checkEntrypoint(n, returns)
	if len(c.errs) > 0 {
		return nil, errors.Join(c.errs...)
	}
	g := c.entrypoint(n, returns)
	if _, err := g.Program(); err != nil {
		c.fail("", c.at, "%v", err)
		return nil, errors.Join(c.errs...)
	}
	return g, nil
}

// checkEntrypoint refuses types and options that mean something for state graphs only.
func (c *compiler) checkEntrypoint(n nodeDecl, returns reflect.Type) {
	for _, t := range []reflect.Type{n.input, returns} {
		if isState(t) {
			c.fail(n.name, n.call, "it takes or returns %s, a struct of channels: an entrypoint's values are plain types", jsonfit.TypeName(t))
		}
	}
	if n.options.late {
		c.fail(n.name, n.call, "WithDefer is for nodes that others can run before")
	}
	if c.options.input != nil || c.options.output != nil {
		c.fail(n.name, n.call, "WithInput and WithOutput are for state graphs: the input and the output are those of the function")
	}
}

func (c *compiler) entrypoint(n nodeDecl, returns reflect.Type) *graphadapter.Graph {
	o := n.options
	node := c.function(n, o)
	if node.Cache != nil && node.Cache.Key != nil {
		key := node.Cache.Key // of the function's argument, as it is of a Send's
		node.Cache.Key = func(in graphadapter.Input) (string, error) {
			return key(graphadapter.Input{Arg: in.State[pregel.FunctionInput].Value()})
		}
	}
	g := &graphadapter.Graph{
		Spec: pregel.FunctionSpec(n.name, pregel.NodeSpec{Name: n.name, TaskQueue: o.taskQueue,
			RunTimeout: o.run.Milliseconds(), IdleTimeout: o.idle.Milliseconds()}),
		Nodes:     map[string]graphadapter.Node{n.name: node},
		Subgraphs: map[string]*graphadapter.Graph{},
		Effects:   map[string]graphadapter.Effect{},
	}
	g.Spec.InterruptBefore, g.Spec.InterruptAfter = c.options.before, c.options.after
	g.Spec.Durability, g.Spec.Fused = string(c.options.durability), c.options.fused
	if c.options.cache != nil {
		g.Cache = cacheBackend{c.options.cache}
	}
	g.Schemas = func() graphadapter.Schemas {
		out := jsonfit.Shape(returns)
		return graphadapter.Schemas{Input: jsonfit.Shape(n.input), Output: out, State: out, Context: c.contextShape()}
	}
	c.assembleEffects(g)
	return g
}

type entryKey struct{}

// entry is one call of an entrypoint's function.
type entry struct {
	task     taskrun.Info
	previous pregel.Value // nil when no run of the thread has finished

	mu    sync.Mutex
	saved pregel.Value // nil when the returned value is kept
}

func (e *entry) kept(returned pregel.Value) pregel.Value {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.saved != nil {
		return e.saved
	}
	return returned
}

// entryOf returns the entrypoint that ctx belongs to. A graph that its function calls is not part of it.
func entryOf(ctx context.Context, call string) (*entry, *taskrun.TaskRun, error) {
	t, inside := taskrun.TaskFrom(ctx)
	e, ok := ctx.Value(entryKey{}).(*entry)
	if !inside || !ok || e.task != t.Info() {
		return nil, nil, fmt.Errorf("%s: %w", call, ErrOutsideEntrypoint)
	}
	return e, t, nil
}

// Previous returns what the thread's last finished run of this entrypoint kept: what it gave to [Save], or else what its
// function returned. It is false when no run has finished. The same run gets the same value however often it is called.
//
// Errors: [ErrOutsideEntrypoint]; *[StateError] when the kept value does not fit T, which no retry repeats.
func Previous[T any](ctx context.Context) (T, bool, error) {
	var v, none T
	e, t, err := entryOf(ctx, "previous")
	if err != nil || e.previous == nil {
		return none, false, err
	}
	if err := jsonfit.Decode(e.previous, &v); err != nil {
		info := t.Info()
		return none, false, graphadapter.Permanent(&StateError{Graph: info.Graph, Node: info.Node,
			Field: pregel.FunctionPrevious, Type: jsonfit.TypeName(reflect.TypeFor[T]()), Cause: err})
	}
	return v, true, nil
}

// Save keeps v, any value that encodes as JSON, for [Previous] in the thread's next run, instead of what the function
// returns (LangGraph's entrypoint.final). It is kept when the function returns without an error; the last call counts.
//
// Call it in the function itself. Inside a [Task] or [Go] it fails: a remembered call is not made again, so what it saved
// would be lost whenever the function runs once more.
func Save[T any](ctx context.Context, v T) error {
	e, t, err := entryOf(ctx, "save")
	if err != nil {
		return err
	}
	info := t.Info()
	if t.InCall() {
		return graphadapter.Permanent(fmt.Errorf("%ssave: it is inside a Task, which does not run again: return the value "+
			"from the Task and save it in the entrypoint's function", place(info.Graph, info.Node)))
	}
	raw, err := jsonfit.Encode(v)
	if err != nil {
		return graphadapter.Permanent(&StateError{Graph: info.Graph, Node: info.Node, Field: pregel.FunctionPrevious,
			Type: jsonfit.TypeName(reflect.TypeFor[T]()), Write: true, Cause: err})
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.saved = raw
	return nil
}
