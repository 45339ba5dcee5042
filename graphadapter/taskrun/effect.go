package taskrun

import (
	"context"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

// Effect calls the registered effect of that name once for this task, whatever crashes, and returns its receipt.
//
// A recorded receipt is returned without a call. If an earlier execution may have called, the target is asked first,
// and ledger.Decide says how to go on. A call is made only after its intent is durable, with a deadline inside the
// lease, and its receipt is checked and made durable before Effect returns. When only a person can tell, the task asks
// one and Effect returns [ErrInterrupted].
//
// An error from Do or Lookup comes back in an [*EffectError]; the intent stays recorded, so the next execution looks
// up before it calls, and so does a second call with the same parameters in this one. The exception is a [Permanent]
// error from a keyed target that, asked, has nothing under the key: that is recorded as failed.
func (t *TaskRun) Effect(ctx context.Context, name string, params pregel.Value, o graphadapter.CallOptions) (pregel.Value, error) {
	c := &effectCall{t: t, timeout: o.Timeout, settle: o.Settle}
	c.entry = ledger.Entry{Name: name, Kind: ledger.KindEffect}
	if err := c.prepare(params, o); err != nil {
		return nil, c.failed("prepare", err)
	}
	if c.entry.ThreadWide = o.ThreadWide; o.ThreadWide {
		c.entry.Key = t.threadKey(c.entry.Kind, name, o.Key)
	} else {
		c.entry.Key = t.effectKeyFor(c.entry, o.Key)
	}
	receipt, err := c.once(ctx)
	if err != nil {
		t.unfinish(ledger.Entry{Name: name, Key: c.entry.Key, ParamsHash: c.proposedHash}, o.Key)
	}
	return receipt, err
}

// effectKeyFor returns the key of a call: that of the call which the node repeats, or the next one. A node that calls
// again with the same parameters after an error means the same write, and a new key would make it a second one.
func (t *TaskRun) effectKeyFor(e ledger.Entry, key string) string {
	if key == "" {
		t.countMu.Lock()
		repeated, ok := t.unfinished[ledger.Hash(e.Name, e.ParamsHash)]
		delete(t.unfinished, ledger.Hash(e.Name, e.ParamsHash))
		t.countMu.Unlock()
		if ok {
			return repeated
		}
	}
	return t.EffectKey(e.Name, key)
}

// unfinish notes a call that ended with an error.
func (t *TaskRun) unfinish(e ledger.Entry, key string) {
	if key != "" {
		return
	}
	t.countMu.Lock()
	defer t.countMu.Unlock()
	if t.unfinished == nil {
		t.unfinished = map[string]string{}
	}
	t.unfinished[ledger.Hash(e.Name, e.ParamsHash)] = e.Key
}
