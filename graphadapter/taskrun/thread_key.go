package taskrun

import (
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/jsontext"
)

// maxKeptEntry bounds what a thread keeps under one of its keys, in bytes.
const maxKeptEntry = 4<<10 - ledger.KeyLength - 32

// KeptOf returns what the thread shall keep of a task's ledger: the entries under the thread-wide keys that it owns, each
// cut to what a thread keeps.
func KeptOf(task *pregel.Task, entries []ledger.Entry) map[string]pregel.Value {
	var kept map[string]pregel.Value
	for _, e := range entries {
		if _, owned := task.Kept[e.Key]; !owned || !e.ThreadWide {
			continue
		}
		if graphadapter.EntrySize(e) > maxKeptEntry {
			e = graphadapter.Slim(e)
			e.Evidence = clip.Text(e.Evidence, maxKeptEntry/4)
		}
		v, err := jsontext.Encode(e)
		if err != nil {
			continue // no such entry is recorded
		}
		if kept == nil {
			kept = map[string]pregel.Value{}
		}
		kept[e.Key] = v
	}
	return kept
}

// KeptIn is KeptOf a stored ledger; nil for one that cannot be read.
func KeptIn(task *pregel.Task, stored pregel.Value) map[string]pregel.Value {
	entries, err := graphadapter.DecodeLedger(stored)
	if err != nil {
		return nil
	}
	return KeptOf(task, entries)
}

// kept is what the thread shall keep. A called graph's tasks leave that to the task that they are part of.
func (t *TaskRun) kept(entries []ledger.Entry) map[string]pregel.Value {
	if t.outer != nil {
		return nil
	}
	return KeptOf(t.task, entries)
}

// threadKey is the key of a call that is the same in all of the thread: in every task, superstep and branch.
func (t *TaskRun) threadKey(kind ledger.Kind, name, key string) string {
	return ledger.Hash("thread-wide", t.info.Thread, string(kind), name, key)[:ledger.KeyLength]
}

// own returns nil when the task owns a thread-wide key. Otherwise the task is given back to claim it.
func (a *attempt) own(key string) error {
	a = a.outermost()
	if _, owned := a.task.Kept[key]; owned || a.env.Alone {
		return nil
	}
	a.yield(key)
	return graphadapter.ErrYielded
}

// KeepUndone tells a thread what became of an effect under a thread-wide key that was to be undone: its tasks are given
// what it keeps, and must not take an undone write for a made one, nor make one a second time that stands. No task may own
// the key.
func KeepUndone(t *pregel.Thread, c Compensation, state ledger.State, evidence string) error {
	if !c.Effect.ThreadWide {
		return nil
	}
	if _, keeps := t.Kept(c.Effect.Key); keeps && state == c.Effect.State {
		return nil
	}
	e := graphadapter.Slim(c.Effect)
	e.State, e.Evidence = state, clip.Text(evidence, maxKeptEntry/4)
	e.Reported = state == ledger.StateCompensated
	v, err := jsontext.Encode(e)
	if err != nil {
		return err
	}
	return t.Keep(e.Key, v)
}

// keyBehind is the key of the write that is made again after the one of that key was undone: a target that knows the key
// would answer with the receipt of a write that is not there.
func keyBehind(undone string) string { return ledger.Hash("behind", undone)[:ledger.KeyLength] }
