package graphadapter

import (
	"context"
	"fmt"
	"time"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// recordAfter is how long a result or receipt that is already there may take to be stored after its context ended.
const recordAfter = 5 * time.Second

// Memo returns the recorded result of a call, or makes the call and records its result before returning it. An error
// is returned and not recorded, so the next execution calls again. The call is known by its key, or without one by its
// ordinal among the calls of that name in its scope; calls of one key in parallel are made once.
func (t *TaskRun) Memo(ctx context.Context, name, key string, call MemoFunc) (pregel.Value, error) {
	return t.memo(ctx, t.callKey(ledger.KindTask, name, key), name, call)
}

// MemoFunc is a memoised call. Its context numbers the calls and questions inside it by themselves.
type MemoFunc func(ctx context.Context) (pregel.Value, error)

// MemoGo is Memo in a goroutine. The call is numbered before MemoGo returns, so parallel calls have the order in which
// they were started. The task does not end before the call did; an error that nobody gets is dropped.
func (t *TaskRun) MemoGo(ctx context.Context, name, key string, call MemoFunc) *Pending {
	p := &Pending{done: make(chan struct{})}
	hashed := t.callKey(ledger.KindTask, name, key)
	if err := t.start(); err != nil {
		p.err = err
		close(p.done)
		return p
	}
	go func() {
		defer t.end()
		defer close(p.done)
		p.err = &PanicError{Message: fmt.Sprintf("task %q ended its goroutine (runtime.Goexit)", name)}
		p.value, p.err = t.guarded(ctx, hashed, name, call)
	}()
	return p
}

func (t *TaskRun) guarded(ctx context.Context, key, name string, call MemoFunc) (v pregel.Value, err error) {
	defer catch(&err)
	return t.memo(ctx, key, name, call)
}

// Pending is a memoised call under way.
type Pending struct {
	done  chan struct{}
	value pregel.Value
	err   error
}

// Get waits for the call and returns its result, as often as it is asked. It returns ctx's cause if ctx ends first.
func (p *Pending) Get(ctx context.Context) (pregel.Value, error) {
	select {
	case <-p.done:
		return p.value, p.err
	default:
	}
	select {
	case <-p.done:
		return p.value, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (t *TaskRun) memo(ctx context.Context, key, name string, call MemoFunc) (pregel.Value, error) {
	if t.inside(key) {
		return nil, t.memoError(name, fmt.Errorf("a call of this key cannot be made inside itself"))
	}
	unlock, err := t.lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if e, ok := t.journal.Entry(key); ok && e.State == ledger.StateCommitted {
		return e.Result, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // cancelled or fenced: too late to begin a call
	}
	inner := t.within(key)
	v, err := call(inner.in(ctx))
	if err != nil {
		return nil, err
	}
	if inner.asked.Load() {
		return nil, ErrInterrupted // recorded now, the question would never be asked again
	}
	if v, err = compact(v); err != nil {
		return nil, t.memoError(name, fmt.Errorf("its result is not JSON: %w", err))
	}
	entry, err := ledger.Entry{Key: key, Name: name, Kind: ledger.KindTask, Attempts: 1}.Commit(v, "")
	if err != nil {
		return nil, err
	}
	if err := t.recordDone(ctx, entry); err != nil {
		return nil, t.memoError(name, fmt.Errorf("record its result: %w", err))
	}
	return v, nil
}

// recordDone records what has already happened, also when the context ended meanwhile: losing it would cost a call or
// a lookup.
func (t *TaskRun) recordDone(ctx context.Context, e ledger.Entry) error {
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), recordAfter)
		defer cancel()
	}
	return t.Journal().Record(ctx, e)
}

func (t *TaskRun) memoError(name string, err error) error {
	return fmt.Errorf("task %q of node %q, graph %q, thread %q: %w", name, t.info.Node, t.info.Graph, t.info.Thread, err)
}
