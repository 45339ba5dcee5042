package taskrun

import (
	"context"
	"errors"
	"log/slog"

	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
)

// close ends the execution: whatever the node left running can no longer ask, emit or start a call.
func (a *attempt) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	a.cancel(nil)
	if a.patience != nil {
		a.patience.Stop()
	}
}

func (a *attempt) isClosed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.closed
}

func (a *attempt) waits() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.questions) > 0
}

// lock waits until no other call of that key is under way in this execution, so that the second finds what the first
// recorded. The returned function ends the turn.
func (a *attempt) lock(ctx context.Context, key string) (unlock func(), err error) {
	a.mu.Lock()
	turn, ok := a.locks[key]
	if !ok {
		turn = make(chan struct{}, 1)
		if a.locks == nil {
			a.locks = map[string]chan struct{}{}
		}
		a.locks[key] = turn
	}
	a.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start counts one more future; it fails when the execution ended.
func (a *attempt) start() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return graphadapter.ErrFenced
	}
	a.running++
	return nil
}

// end counts one future less.
func (a *attempt) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running--
	if a.running == 0 && a.settled != nil {
		close(a.settled)
		a.settled = nil
	}
}

// settle waits for the futures that nobody awaited: their results are recorded, their errors belong to nobody.
func (a *attempt) settle() {
	a.mu.Lock()
	if a.running == 0 {
		a.mu.Unlock()
		return
	}
	if a.settled == nil {
		a.settled = make(chan struct{})
	}
	settled := a.settled
	a.mu.Unlock()
	<-settled
}

// goesWithout tells of what went wrong without harm to the task.
func (a *attempt) goesWithout(what error) {
	if a.env.Warn != nil {
		a.env.Warn(what)
		return
	}
	slog.Warn("superstep: a task goes on without something", "thread", a.info.Thread, "error", what)
}

// fencedJournal is a task's journal as its node sees it: it ends with the execution.
type fencedJournal struct{ a *attempt }

func (j fencedJournal) Entry(key string) (ledger.Entry, bool) { return j.a.journal.Entry(key) }

func (j fencedJournal) Entries() []ledger.Entry { return j.a.journal.Entries() }

func (j fencedJournal) Record(ctx context.Context, e ledger.Entry) error {
	if j.a.isClosed() {
		return graphadapter.ErrFenced
	}
	e, record, err := j.a.sized(e)
	if err != nil || !record {
		return err
	}
	err = j.a.journal.Record(ctx, e)
	switch {
	case errors.Is(err, graphadapter.ErrFenced):
		j.a.mu.Lock()
		j.a.fenced = true
		j.a.mu.Unlock()
	case errors.Is(err, graphadapter.ErrYielded):
		j.a.yield("")
	}
	j.a.idle.progress()
	return err
}

// sized returns the entry as it has room in the task's ledger: whole, or without what is too large to keep, of which the
// log and the entry tell. record is false for a memoised call that cannot even be noted.
func (a *attempt) sized(e ledger.Entry) (fitting ledger.Entry, record bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	fitting, record = e, true
	if !a.sizes.fits(e) {
		if fitting, record, err = a.cut(e); err != nil || !record {
			return fitting, false, err
		}
	}
	a.sizes.set(e.Key, graphadapter.EntrySize(fitting))
	return fitting, true, nil
}

// cut makes an entry smaller.
func (a *attempt) cut(e ledger.Entry) (ledger.Entry, bool, error) {
	if e.Result != nil {
		e = e.WithoutResult()
		note := fmt.Sprintf("its result has %d bytes, too large to be kept with the task's", e.Left)
		if e.Evidence == "" {
			e.Evidence = note
		}
		a.goesWithout(fmt.Errorf("%s %q of node %q, graph %q, thread %q: %s", e.Kind, e.Name, a.info.Node, a.info.Graph,
			a.info.Thread, note))
	}
	switch {
	case a.sizes.fits(e):
		return e, true, nil
	case e.Kind != ledger.KindEffect:
		return e, false, nil
	}
	e.Params = nil
	if !a.sizes.fits(e) && e.State == ledger.StateIntent {
		return e, false, &LedgerFullError{Graph: a.info.Graph, Node: a.info.Node, Thread: a.info.Thread,
			Calls: len(a.sizes.of), Limit: maxLedgerBytes}
	}
	return e, true, nil // what a call that is on record came to is always put on record too
}

// traced makes a call in a span of the attempt's.
func traced[T any](ctx context.Context, a *attempt, of TracedCall, call func(context.Context) (T, error)) (result T, err error) {
	tracer := a.env.Tracer
	if tracer == nil || of.Kind == "" {
		return call(ctx)
	}
	ctx, end := tracer.Call(ctx, a.number(of))
	failed := "Panic"
	defer func() { end(failed) }()
	result, err = call(ctx)
	failed = failedType(err)
	return result, err
}

// number counts a call of the attempt.
func (a *attempt) number(c TracedCall) TracedCall {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.traces == nil {
		a.traces = map[TracedCall]int{}
	}
	a.traces[c]++
	c.Number = a.traces[c]
	return c
}

// failedType is the type of an error of the user's code, "" for none.
func failedType(err error) string {
	if err == nil {
		return ""
	}
	return graphadapter.FailureOf("", "", err).Type
}
