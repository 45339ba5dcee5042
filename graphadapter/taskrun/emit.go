package taskrun

import (
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// Emit puts a value on the custom stream: at once if somebody listens, and in any case into the task's outcome. Beyond
// [MaxEmitted], [MaxEmittedValue] or [MaxEmittedTotal] it returns an [*EmitLimitError]. Emitting is progress.
func (t *TaskRun) Emit(v pregel.Value) error { return t.emit(pregel.EmissionCustom, v) }

// EmitMessage is Emit for the messages stream: v is a message, or a piece of one that has the id of the whole. Both
// kinds share the bounds.
func (t *TaskRun) EmitMessage(v pregel.Value) error { return t.emit(pregel.EmissionMessage, v) }

func (t *TaskRun) emit(kind pregel.EmissionKind, v pregel.Value) error {
	v, err := jsontext.Compact(v)
	if err != nil {
		return fmt.Errorf("node %q of graph %q emits something that is not JSON: %w", t.info.Node, t.info.Graph, err)
	}
	if t.isClosed() {
		return graphadapter.ErrFenced
	}
	if t.outer != nil {
		t.idle.progress()
		return t.outer.emit(kind, v)
	}
	e := pregel.Emission{Kind: kind, Value: v}
	t.emitting.Lock()
	defer t.emitting.Unlock()
	if err := t.keep(e); err != nil {
		return err
	}
	t.idle.progress()
	t.tell(e)
	return nil
}

func (a *attempt) tell(e pregel.Emission) {
	if a.env.Emit != nil {
		a.env.Emit(e)
	}
}

func (a *attempt) keep(e pregel.Emission) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	limit := func(what string, n int) error {
		return &graphadapter.EmitLimitError{Graph: a.info.Graph, Node: a.info.Node, What: what, Limit: n}
	}
	switch {
	case a.closed:
		return graphadapter.ErrFenced
	case len(e.Value) > MaxEmittedValue:
		return limit("bytes in one emitted value", MaxEmittedValue)
	case a.emittedCount == MaxEmitted:
		return limit("emitted values in one attempt", MaxEmitted)
	case a.emittedBytes+len(e.Value) > MaxEmittedTotal:
		return limit("emitted bytes in one attempt", MaxEmittedTotal)
	}
	a.emitted = append(a.emitted, e)
	a.emittedCount++
	a.emittedBytes += len(e.Value)
	return nil
}

// reset begins what a repeated attempt emits, or one that was given back: what went before is void. A graph called from a node's
// code has no word in that; its node's own attempts do.
func (a *attempt) reset() {
	if a.info.Attempt == 1 && !a.between.Begun || a.outer != nil {
		return
	}
	e := pregel.Emission{Kind: pregel.EmissionReset, Attempt: a.info.Attempt}
	a.emitted = append(a.emitted, e)
	a.tell(e)
}
