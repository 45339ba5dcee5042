package taskrun

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// What an execution before left is found again by what is asked now, and by an ordinal where the same is asked several times: a question by
// its text and schema, a wait by its event, a called graph by its input, an effect by its parameters. A memoised call has nothing but
// its name. Its ordinal is the same each time only while one goroutine makes the calls of a scope.

// errNotOrdered says why a memoised call is not recorded.
var errNotOrdered = errors.New("it is called without a key from a goroutine of the node's own, so its order says nothing, and its result is not " +
	"remembered: the call is made again whenever the node runs again. Give it superstep.WithKey, or start it with superstep.Go")

// callOrder is what the order of a scope's calls says.
type callOrder struct{ *TaskRun }

// runsNode and runsCall are the functions that run the function of a node and of a memoised call; the files of these name them.
var runsNode, runsCall uintptr

// entryOf is where a function's code begins.
func entryOf(function any) uintptr { return reflect.ValueOf(function).Pointer() }

// counts reports whether the order of the scope's calls is the same in every execution: the caller runs on the goroutine that runs the
// scope's function, the node's or that of a memoised call.
func (t callOrder) counts() bool {
	if t.unordered {
		return false
	}
	var room [64]uintptr
	for skip := 2; ; skip += len(room) {
		calls := room[:runtime.Callers(skip, room[:])]
		for _, pc := range calls {
			switch f := runtime.FuncForPC(pc - 1); {
			case f == nil:
			case f.Entry() == runsNode:
				return t.scope == ""
			case f.Entry() == runsCall:
				return t.scope != ""
			}
		}
		if len(calls) < len(room) {
			return t.env.Elsewhere && t.scope == ""
		}
	}
}

// warn says, once in an attempt, that calls are not recorded.
func (t callOrder) warn(name string) {
	t.mu.Lock()
	before := t.warned
	t.warned = true
	t.mu.Unlock()
	if !before {
		t.goesWithout(t.memoError(name, errNotOrdered))
	}
}

// alone makes a memoised call that is not recorded. All such calls of a scope share one scope within it, where again no order counts:
// the questions and effects of two of them are told apart by what they are.
func (t callOrder) alone(ctx context.Context, name string, call MemoFunc) (pregel.Value, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	defer t.endCall()
	v, err := call(t.aside().in(ctx))
	if err != nil {
		return nil, err
	}
	if v, err = jsontext.Compact(v); err != nil {
		return nil, t.memoError(name, fmt.Errorf("its result is not JSON: %w", err))
	}
	return v, nil
}

// aside is the scope of the calls in t that are not recorded.
func (t callOrder) aside() *TaskRun {
	if t.unordered {
		return t.TaskRun
	}
	t.countMu.Lock()
	defer t.countMu.Unlock()
	if t.apart == nil {
		t.apart = t.within(ledger.Hash("unordered", t.scope)[:ledger.KeyLength])
		t.apart.unordered = true
	}
	return t.apart
}
