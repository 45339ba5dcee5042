package taskrun

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"

	"superstep.dev/graphadapter"
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

// ordered reports whether the order of the scope's calls is the same in every execution: the caller runs on the goroutine that runs the
// scope's function, the node's or that of a memoised call.
func (t *TaskRun) ordered() bool {
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

// The functions of this package that run a scope's own function.
var (
	runsNode = reflect.ValueOf((*TaskRun).result).Pointer()
	runsCall = reflect.ValueOf((*TaskRun).callAndRecord).Pointer()
)

// warnOfOrder says, once in an attempt, that calls are not recorded.
func (t *TaskRun) warnOfOrder(name string) {
	t.mu.Lock()
	before := t.warned
	t.warned = true
	t.mu.Unlock()
	if !before {
		t.goesWithout(t.memoError(name, errNotOrdered))
	}
}

// callAlone makes a memoised call that is not recorded. All such calls of a scope share one scope within it, where again no order counts:
// the questions and effects of two of them are told apart by what they are.
func (t *TaskRun) callAlone(ctx context.Context, name string, call MemoFunc) (pregel.Value, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	defer t.endCall()
	v, err := call(t.withoutOrder().in(ctx))
	if err != nil {
		return nil, err
	}
	if v, err = jsontext.Compact(v); err != nil {
		return nil, t.memoError(name, fmt.Errorf("its result is not JSON: %w", err))
	}
	return v, nil
}

// withoutOrder is the scope of the calls in t that are not recorded.
func (t *TaskRun) withoutOrder() *TaskRun {
	if t.unordered {
		return t
	}
	t.countMu.Lock()
	defer t.countMu.Unlock()
	if t.aside == nil {
		t.aside = t.within(ledger.Hash("unordered", t.scope)[:ledger.KeyLength])
		t.aside.unordered = true
	}
	return t.aside
}

// aboutQuestion names what is asked, wherever it is asked: the event that is waited for, or the question and the schema of its answer.
func aboutQuestion(q *pregel.Question) (string, error) {
	if q.Event != "" {
		return ledger.Hash("event", q.Event), nil
	}
	value, err := graphadapter.ParamsHash(jsontext.OrNull(q.Value))
	if err != nil {
		return "", err
	}
	schema, err := graphadapter.ParamsHash(jsontext.OrNull(q.Schema))
	return ledger.Hash("question", value, schema), err
}
