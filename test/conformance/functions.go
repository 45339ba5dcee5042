package main

import (
	"context"
	"errors"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/test/conformance/trace"
)

// nodeScript is a node's script as a graphadapter.NodeFunc.
type nodeScript struct {
	steps    script
	name     string
	kinds    map[string]pregel.Kind
	counters *counters
	graphs   *builder
}

func (n *nodeScript) run(ctx context.Context, input graphadapter.Input) (pregel.Command, error) {
	n.counters.started(n.name)
	value, err := scriptInput(input.State, input.Arg)
	if err != nil {
		return pregel.Command{}, err
	}
	f := newFrame(ctx, taskHost{n.graphs}, value)
	if err := n.steps.run(f, n.name); err != nil {
		return pregel.Command{}, report(n.counters, err)
	}
	return n.result(f), nil
}

// result is what the script came to: its writes, and with a goto a command of them.
func (n *nodeScript) result(f *frame) pregel.Command {
	if f.nothing {
		return pregel.Command{}
	}
	var c pregel.Command
	for _, w := range f.writes {
		c.Update = append(c.Update, toWrite(n.kinds, w.channel, w.value))
	}
	if !f.moved {
		return c
	}
	c.Goto = f.targets
	if f.parent {
		return pregel.Command{Parent: &c}
	}
	return c
}

// branchScript is a branch's script as a graphadapter.BranchFunc.
type branchScript struct {
	steps    script
	name     string
	counters *counters
	graphs   *builder
}

func (b *branchScript) run(ctx context.Context, state graphadapter.State) ([]pregel.Target, error) {
	value, err := scriptInput(state, nil)
	if err != nil {
		return nil, err
	}
	f := newFrame(ctx, taskHost{b.graphs}, value)
	if err := b.steps.run(f, b.name); err != nil {
		return nil, report(b.counters, err)
	}
	return f.targets, nil
}

// report keeps a script's own fault and passes every error on.
func report(c *counters, err error) error {
	var fault *ScriptError
	if errors.As(err, &fault) {
		c.failed(fault)
	}
	return err
}

// scriptInput is INPUT: the argument of a send, else the state as an object.
func scriptInput(state graphadapter.State, arg pregel.Value) (any, error) {
	if arg != nil {
		return trace.Decode(arg)
	}
	out := make(map[string]any, len(state))
	for name, raw := range state {
		v, err := trace.Decode(raw.Value())
		if err != nil {
			return nil, fmt.Errorf("the engine gave channel %q a value that is no JSON: %w", name, err)
		}
		out[name] = v
	}
	return out, nil
}
