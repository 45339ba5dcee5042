package taskrun

import (
	"context"
	"fmt"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// recordAfter is how long a result or receipt that is already there may take to be stored after its context ended.
const recordAfter = 5 * time.Second

// Memo returns the recorded result of a call, or makes the call and records its result before returning it. An error
// is returned and not recorded, so the next execution calls again. The call is known by its key, or without one by its
// ordinal among the calls of that name in its scope; calls of one key in parallel are made once. Without a key it is not
// recorded where its ordinal says nothing; see callOrder.
func (t *TaskRun) Memo(ctx context.Context, name, key string, call MemoFunc) (pregel.Value, error) {
	return t.memo(ctx, t.memoEntry(name, key), call)
}

// ThreadMemo is Memo under a thread-wide key: the call is made once in the thread, and another task that wants its result
// at the same time waits. A result above 4 KiB is remembered by its own task alone.
func (t *TaskRun) ThreadMemo(ctx context.Context, name, key string, call MemoFunc) (pregel.Value, error) {
	return t.memo(ctx, t.threadMemoEntry(name, key), call)
}

// memoEntry describes a call of that name. Its key is empty for a call that is not recorded.
func (t *TaskRun) memoEntry(name, key string) ledger.Entry {
	if key == "" && !(callOrder{t}).counts() {
		callOrder{t}.warn(name)
		return ledger.Entry{Name: name, Kind: ledger.KindTask}
	}
	return ledger.Entry{Key: t.callKey(ledger.KindTask, name, key, ""), Name: name, Kind: ledger.KindTask, Attempts: 1}
}

func (t *TaskRun) threadMemoEntry(name, key string) ledger.Entry {
	return ledger.Entry{Key: t.threadKey(ledger.KindTask, name, key), Name: name, Kind: ledger.KindTask, Attempts: 1,
		ThreadWide: true}
}

// MemoFunc is a memoised call. Its context numbers the calls and questions inside it by themselves.
type MemoFunc func(ctx context.Context) (pregel.Value, error)

// MemoGo is Memo in a goroutine. The call is numbered before MemoGo returns, so parallel calls have the order in which
// they were started. The task does not end before the call did; an error that nobody gets is dropped.
func (t *TaskRun) MemoGo(ctx context.Context, name, key string, call MemoFunc) *Pending {
	return t.memoGo(ctx, t.memoEntry(name, key), call)
}

// ThreadMemoGo is [TaskRun.ThreadMemo] in a goroutine, as MemoGo is Memo.
func (t *TaskRun) ThreadMemoGo(ctx context.Context, name, key string, call MemoFunc) *Pending {
	return t.memoGo(ctx, t.threadMemoEntry(name, key), call)
}

func (t *TaskRun) memoGo(ctx context.Context, e ledger.Entry, call MemoFunc) *Pending {
	p := &Pending{done: make(chan struct{})}
	if err := t.start(); err != nil {
		p.err = err
		close(p.done)
		return p
	}
	go func() {
		defer t.end()
		defer close(p.done)
		p.err = &graphadapter.PanicError{Message: fmt.Sprintf("task %q ended its goroutine (runtime.Goexit)", e.Name)}
		p.value, p.err = t.guarded(ctx, e, call)
	}()
	return p
}

func (t *TaskRun) guarded(ctx context.Context, e ledger.Entry, call MemoFunc) (v pregel.Value, err error) {
	defer graphadapter.Catch(&err)
	return t.memo(ctx, e, call)
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

// memo makes the call that the entry describes, once.
func (t *TaskRun) memo(ctx context.Context, e ledger.Entry, call MemoFunc) (pregel.Value, error) {
	if e.Key == "" {
		return callOrder{t}.alone(ctx, e.Name, call)
	}
	if t.inside(e.Key) {
		return nil, t.memoError(e.Name, fmt.Errorf("a call of this key cannot be made inside itself"))
	}
	unlock, err := t.lock(ctx, e.Key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if e.ThreadWide {
		if err := t.own(e.Key); err != nil {
			return nil, err
		}
	}
	if recorded, ok := t.journal.Entry(e.Key); ok && recorded.State == ledger.StateCommitted {
		return recorded.Result, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // cancelled or fenced: too late to begin a call
	}
	if err := t.begin(ctx); err != nil {
		return nil, err
	}
	defer t.endCall()
	return t.callAndRecord(ctx, e, call)
}

func init() { runsCall = entryOf((*TaskRun).callAndRecord) }

// callAndRecord makes a call in a scope of its own.
//
//go:noinline
func (t *TaskRun) callAndRecord(ctx context.Context, e ledger.Entry, call MemoFunc) (pregel.Value, error) {
	inner := t.within(e.Key)
	v, err := call(inner.in(ctx))
	if err != nil {
		return nil, err
	}
	if inner.asked.Load() {
		return nil, graphadapter.ErrInterrupted // recorded now, the question would never be asked again
	}
	if v, err = jsontext.Compact(v); err != nil {
		return nil, t.memoError(e.Name, fmt.Errorf("its result is not JSON: %w", err))
	}
	if e, err = e.Commit(v, ""); err != nil {
		return nil, err
	}
	if err := t.recordDone(ctx, e); err != nil {
		return nil, t.memoError(e.Name, fmt.Errorf("record its result: %w", err))
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
