package superstep

import (
	"context"
	"fmt"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
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

// EntrypointOption shapes a [NewEntrypoint]: every [NodeOption] that a function can have ([WithRetry], [WithTimeout],
// [WithCache], [WithTaskQueue]), every [CompileOption] except those of state fields, and [WithEffects]. A key of
// [CacheBy] is made of the input alone; without one the previous value counts too.
type EntrypointOption interface {
	ExpertOption
	applyEntrypoint(*entrypointOptions)
}

type entrypointOptions struct {
	node    nodeOptions
	compile compileOptions
	effects []effectDecl
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
		if err := decodeJSON(in.State[pregel.FunctionInput], &input); err != nil {
			return none, graphadapter.Permanent(inputError[In](newScope(name, name), err))
		}
		t, _ := taskrun.TaskFrom(ctx)
		e := &entry{task: t.Info(), previous: in.State[pregel.FunctionPrevious]}
		returned, err := fn(context.WithValue(ctx, entryKey{}, e), input)
		if err != nil {
			return none, err
		}
		output, err := encodeJSON(returned)
		if err != nil {
			return none, graphadapter.Permanent(&StateError{Graph: name, Node: name, Field: pregel.FunctionOutput,
				Type: typeName(reflect.TypeFor[Out]()), Write: true, Cause: err})
		}
		return pregel.Command{Update: pregel.FunctionWrites(output, e.kept(output))}, nil
	}
}

// entrypointInput checks input: any JSON that fits In, with no field that In does not have.
func entrypointInput[In any](name string) func(pregel.Value) error {
	return func(raw pregel.Value) error {
		if err := checkSingle[In](raw); err != nil {
			return &Error{Kind: ErrBadInput, Graph: name, Message: fmt.Sprintf("bad input for entrypoint %q", name), Cause: err}
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
			if err := checkSingle[Out](w.Value); err != nil {
				return &Error{Kind: ErrBadInput, Graph: name, Message: fmt.Sprintf("bad update for entrypoint %q", name), Cause: err}
			}
		}
		return nil
	}
}

// decodeReturned is what an entrypoint returned last, the zero value when it has not.
func decodeReturned[Out any](graph string, values map[string]pregel.Value) (Out, error) {
	var out Out
	raw := values[pregel.FunctionOutput]
	if raw == nil {
		return out, nil
	}
	if err := decodeJSON(raw, &out); err != nil {
		var none Out
		return none, &StateError{Graph: graph, Field: pregel.FunctionOutput, Type: typeName(reflect.TypeFor[Out]()), Cause: err}
	}
	return out, nil
}
