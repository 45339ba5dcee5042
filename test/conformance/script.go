package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"superstep.dev/graphadapter/pregel"
)

// script is a compiled list of operations.
type script []op

// op executes one operation. It ends the script with errEnd.
type op func(f *frame) error

// errEnd ends a script early; it never leaves the interpreter.
var errEnd = errors.New("the script returned")

// host is what a script needs of the engine that runs it.
type host interface {
	// ask asks a question and returns its answer, or the error that makes the task wait.
	ask(ctx context.Context, question any) (any, error)
	// emit sends a value to the custom stream.
	emit(ctx context.Context, value any) error
	// call runs a subgraph inside the calling task.
	call(ctx context.Context, graph string, input any) (any, error)
}

// frame is one execution of a script.
type frame struct {
	ctx   context.Context
	host  host
	input any
	vars  map[string]any
	item  any // the element a send with each is at

	writes  []write
	targets []pregel.Target // of goto, or of route
	moved   bool            // a goto was executed
	parent  bool            // one of them went to the parent graph
	nothing bool            // return_nothing was executed
}

// write is one channel and value of a script's result.
type write struct {
	channel string
	value   any
}

// NodeFailure is the failure that a fail operation raises.
type NodeFailure struct{ Message string }

// Error is the bare message: the recorded traces compare it.
func (e *NodeFailure) Error() string { return e.Message }

// ErrorType names the failure in stored data.
func (e *NodeFailure) ErrorType() string { return typeNodeFailure }

// ScriptError says that a script did something that the format gives no meaning to: the case is wrong, or the engine
// gave its task an impossible input.
type ScriptError struct {
	Script string
	Cause  error
}

func (e *ScriptError) Error() string { return fmt.Sprintf("script of %s: %v", e.Script, e.Cause) }

// Unwrap returns what was impossible.
func (e *ScriptError) Unwrap() error { return e.Cause }

// hostError marks what the engine or a fail operation returned, so that it passes through unchanged.
type hostError struct{ cause error }

func (e *hostError) Error() string { return e.cause.Error() }
func (e *hostError) Unwrap() error { return e.cause }

// run executes the script in f. Errors of the engine come back as they were, all others as a *ScriptError.
func (s script) run(f *frame, name string) error {
	err := s.steps(f)
	var fromHost *hostError
	switch {
	case err == nil, errors.Is(err, errEnd):
		return nil
	case errors.As(err, &fromHost):
		return fromHost.cause
	}
	return &ScriptError{Script: name, Cause: err}
}

func (s script) steps(f *frame) error {
	for _, step := range s {
		if err := step(f); err != nil {
			return err
		}
	}
	return nil
}

func newFrame(ctx context.Context, h host, input any) *frame {
	return &frame{ctx: ctx, host: h, input: input, vars: map[string]any{}}
}

// put adds a write; a second write of a channel replaces the first.
func (f *frame) put(channel string, value any) {
	for i := range f.writes {
		if f.writes[i].channel == channel {
			f.writes[i].value = value
			return
		}
	}
	f.writes = append(f.writes, write{channel, value})
}

// parser compiles the scripts of one graph.
type parser struct {
	branch bool
	// counts are shared by all executions of a case: a fail operation counts over tasks and runs.
	counts *sync.Mutex
	// calls collects the graphs that call operations name.
	calls map[string]bool
}

// script compiles a list of operations.
func (p *parser) script(raw json.RawMessage) (script, error) {
	var raws []json.RawMessage
	if err := json.Unmarshal(raw, &raws); err != nil {
		return nil, fmt.Errorf("a script is a list of operations: %w", err)
	}
	out := make(script, 0, len(raws))
	for i, raw := range raws {
		step, err := p.op(raw)
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", i, err)
		}
		out = append(out, step)
	}
	return out, nil
}

func (p *parser) op(raw json.RawMessage) (op, error) {
	var head struct {
		Op string `json:"op"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, err
	}
	parse, ok := p.table()[head.Op]
	if !ok {
		where := "node"
		if p.branch {
			where = "branch"
		}
		return nil, fmt.Errorf("a %s's script has no operation %q", where, head.Op)
	}
	step, err := parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", head.Op, err)
	}
	return step, nil
}

// table is what a node's or a branch's script may do. A branch has no result but its routes, so it cannot write, go
// or return nothing.
func (p *parser) table() map[string]func(json.RawMessage) (op, error) {
	table := map[string]func(json.RawMessage) (op, error){
		"let": p.let, "if": p.branching, "interrupt": p.interrupt, "fail": p.fail, "custom": p.custom, "sleep": p.sleep,
	}
	if p.branch {
		table["route"] = p.route
		return table
	}
	table["write"], table["goto"], table["call"], table["return_nothing"] = p.write, p.jump, p.call, p.nothing
	return table
}
