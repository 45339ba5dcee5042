package taskrun

import (
	"bytes"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// The bounds of what one attempt may emit: its values are part of the task's result, which is stored with the run.
const (
	// MaxEmitted is the greatest number of values.
	MaxEmitted = 10_000
	// MaxEmittedValue is the greatest size of one value, in bytes of JSON.
	MaxEmittedValue = 256 << 10
	// MaxEmittedTotal is the greatest size of all values together, in bytes of JSON.
	MaxEmittedTotal = 1 << 20
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

// KeepEmitted returns what a failed attempt, and those before it, emitted, cut to about that many bytes of JSON: the
// oldest go first. What is left begins with the reset of its own attempt if one went, so that it is never taken for an
// earlier one's.
func KeepEmitted(emitted []pregel.Emission, most int) []pregel.Emission {
	from, size := len(emitted), emittedSize(pregel.Emission{})
	for from > 0 && size+emittedSize(emitted[from-1]) <= most {
		from--
		size += emittedSize(emitted[from])
	}
	kept := emitted[from:]
	if len(kept) > 0 && kept[0].Kind == pregel.EmissionReset {
		return kept
	}
	for i := from - 1; i >= 0; i-- {
		if emitted[i].Kind == pregel.EmissionReset {
			return append([]pregel.Emission{emitted[i]}, kept...)
		}
	}
	return kept
}

// emittedSize bounds the bytes of one emission as stored JSON, where <, > and & take six bytes and the two line
// separators of Unicode six instead of three.
func emittedSize(e pregel.Emission) int {
	const frame = 64 // kind, attempt and the names of the fields
	size := frame + len(e.Value)
	for _, c := range []string{"<", ">", "&", "\u2028", "\u2029"} {
		size += 5 * bytes.Count(e.Value, []byte(c))
	}
	return size
}
