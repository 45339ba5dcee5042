package pregel

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Bounds of what a thread keeps under thread-wide keys.
const (
	// MaxKept bounds the keys of a thread.
	MaxKept = 10_000
	// MaxKeptBytes bounds a key and its value together.
	MaxKeptBytes = 4 << 10
	// MaxKeptTotal bounds all keys and values of a thread: beyond it no key is claimed any more. Those that are claimed
	// already may still be kept, so that what happened under them is not lost.
	MaxKeptTotal = 1 << 20
)

// KeyLimitType is the type of the error of a task that claimed one thread-wide key too many, or kept what does not fit
// under one. No retry helps.
const KeyLimitType = "KeyLimit"

// Kept returns what the thread keeps under a thread-wide key, false when it keeps nothing.
func (t *Thread) Kept(key string) (Value, bool) {
	v, ok := t.kept[key]
	return v, ok
}

// Keep sets what the thread keeps under a thread-wide key; null forgets it. It may not be called while a task owns the
// key. The error says that it does not fit, or is no JSON.
func (t *Thread) Keep(key string, v Value) error {
	if IsNull(v) || v == nil {
		t.forget(key)
		return nil
	}
	if err := t.fits(key, len(v)); err != nil {
		return err
	}
	if !json.Valid(v) {
		return fmt.Errorf("what is kept under the key %q is not JSON: %s", brief(Value(key)), brief(v))
	}
	if t.kept == nil {
		t.kept = map[string]Value{}
	}
	t.forget(key)
	t.kept[key] = v
	t.filled += len(key) + len(v)
	return nil
}

func (t *Thread) forget(key string) {
	if v, known := t.kept[key]; known {
		t.filled -= len(key) + len(v)
		delete(t.kept, key)
	}
}

// fits refuses a key, with a value of that size, that the thread has no room for.
func (t *Thread) fits(key string, size int) error {
	if len(key)+size > MaxKeptBytes {
		return fmt.Errorf("the thread-wide key %q and its value have %d bytes, at most %d are kept: keep a reference",
			brief(Value(key)), len(key)+size, MaxKeptBytes)
	}
	if _, known := t.kept[key]; !known && len(t.kept) >= MaxKept {
		return fmt.Errorf("the thread has %d thread-wide keys, which is as many as it may have: go on in a new thread", MaxKept)
	}
	return nil
}

// claimable refuses to let a task own a key under which the thread has no room for anything new: before anything happens
// that would have to be kept.
func (t *Thread) claimable(key string) error {
	if _, known := t.kept[key]; !known && t.filled > MaxKeptTotal-MaxKeptBytes {
		return fmt.Errorf("the thread keeps %d bytes under thread-wide keys, of at most %d: go on in a new thread", t.filled, MaxKeptTotal)
	}
	return t.fits(key, 0)
}

// keepAll takes in what a task leaves under keys that it owns.
func (l *Loop) keepAll(tr *taskRun, kept map[string]Value) error {
	for _, key := range sortedKeys(kept) {
		if l.root.owners[key] != tr {
			return fmt.Errorf("it kept something under the thread-wide key %q, which it does not own", brief(Value(key)))
		}
		if err := l.thread.Keep(key, kept[key]); err != nil {
			return err
		}
	}
	return nil
}

// yielded hands a task out again that was given back, with what it left and once it owns what it claims.
func (l *Loop) yielded(tr *taskRun, claim string) error {
	if claim != "" && !slices.Contains(tr.rec.Claims, claim) {
		if err := l.thread.claimable(claim); err != nil {
			return err
		}
		tr.rec.Claims = append(slices.Clip(tr.rec.Claims), claim)
	}
	tr.running = false
	l.handAgain(tr)
	return nil
}

// handAgain hands a task out once more, with what is known of it by now.
func (l *Loop) handAgain(tr *taskRun) {
	tr.task.Answers, tr.task.Ledger = l.answers(tr.rec), tr.rec.Ledger
	l.handOut(tr)
}

// own makes a task the owner of all keys that it claims, or of none: tasks that wait for each other would wait for ever.
func (l *Loop) own(tr *taskRun) bool {
	for _, key := range tr.rec.Claims {
		if owner := l.owners[key]; owner != nil && owner != tr {
			l.disown(tr)
			return false
		}
	}
	if l.owners == nil {
		l.owners = map[string]*taskRun{}
	}
	tr.task.Kept = make(map[string]Value, len(tr.rec.Claims))
	for _, key := range tr.rec.Claims {
		l.owners[key] = tr
		tr.task.Kept[key] = orNull(l.thread.kept[key])
	}
	return true
}

// disown gives a task's keys up. They stay claimed: when the task runs again, it owns them again.
func (l *Loop) disown(tr *taskRun) {
	for _, key := range tr.rec.Claims {
		if l.owners[key] == tr {
			delete(l.owners, key)
		}
	}
}

// park puts a task aside until it can own what it claims, in task order.
func (l *Loop) park(tr *taskRun) {
	tr.parked = true
	at, _ := slices.BinarySearchFunc(l.parked, tr, func(a, b *taskRun) int { return slices.Compare(a.position(), b.position()) })
	l.parked = slices.Insert(l.parked, at, tr)
}

// unpark hands out the parked tasks that can own what they claim by now.
func (l *Loop) unpark() {
	l.parked = slices.DeleteFunc(l.parked, func(tr *taskRun) bool {
		if !l.own(tr) {
			return false
		}
		tr.parked = false
		tr.task.loop.handAgain(tr)
		return true
	})
}

// position is a task's place in the order of tasks: that of the tasks it is nested in, and its own.
func (tr *taskRun) position() []int {
	var outer []int
	if within := tr.task.loop.within; within != nil {
		outer = within.position()
	}
	return append(outer, tr.at)
}
