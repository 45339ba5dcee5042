package taskrun

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
)

// Info says which task runs.
type Info struct {
	Graph, Node, Thread string
	// Namespace, Step, Path and Branch place the task in its thread; see pregel.Task.
	Namespace, Path, Branch string
	Step                    int
	// Attempt counts the executions of this task that the node's retry policy sees, from 1.
	Attempt int
	// StepsLeft counts the supersteps that may still run in this run after this one.
	StepsLeft int
	// LastStep says that this is the last superstep after which the run can still finish within its recursion limit
	// (LangGraph's IsLastStep; StepsLeft is its RemainingSteps).
	LastStep bool
	// Requester is on whose behalf the run is, "" when nobody said.
	Requester string
	// Suspect says that an earlier execution of this task may have acted outside without a trace: effects look up
	// before they call.
	Suspect bool
	// Lost says that such an execution was lost with its worker, or with its run: it may go on when that thaws.
	Lost bool
}

// Journal is where a running task keeps what must survive it: the ledger of its memoised calls and effects. It is safe
// for concurrent use.
type Journal interface {
	// Entry returns the entry of that key.
	Entry(key string) (ledger.Entry, bool)
	// Record stores an entry, replacing the one of the same key. It returns when the entry is durable: nil means it
	// will be seen by every later execution of the task, any error that it may not be. [ErrFenced] means another
	// execution owns the task: stop, start no new call.
	Record(ctx context.Context, e ledger.Entry) error
	// Entries returns all entries in the order in which they were first recorded.
	Entries() []ledger.Entry
}

// TaskRun is one execution of one task, as its node sees it through the context. Its methods are safe for concurrent
// use. After the execution ended they do nothing and return [ErrFenced].
//
// Calls are numbered by name, in the order in which they are made, to find them again when the task runs once more.
// Inside a memoised call the numbering starts afresh, so that parallel calls do not disturb each other's.
type TaskRun struct {
	*attempt
	// scope is the key of the memoised call that this one runs in, "" for the node itself.
	scope  string
	parent *TaskRun
	asked  atomic.Bool // a question was asked in this scope, or in one within it

	countMu    sync.Mutex
	counts     map[string]int    // nil while nothing was counted
	unfinished map[string]string // effect calls that ended with an error: keys by name and parameters; nil for none
}

type taskKey struct{}

// TaskFrom returns the task that ctx belongs to.
func TaskFrom(ctx context.Context) (*TaskRun, bool) {
	t, ok := ctx.Value(taskKey{}).(*TaskRun)
	return t, ok
}

// in returns ctx as the context of t.
func (t *TaskRun) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, taskKey{}, t)
}

// within returns the numbering of the calls made inside the memoised call of that key.
func (t *TaskRun) within(key string) *TaskRun {
	return &TaskRun{attempt: t.attempt, scope: key, parent: t}
}

// inside reports whether t runs within the call of that key.
func (t *TaskRun) inside(key string) bool {
	for ; t != nil; t = t.parent {
		if t.scope == key {
			return true
		}
	}
	return false
}

// Info says which task runs.
func (t *TaskRun) Info() Info { return t.info }

// InCall reports whether t runs within a memoised call, which is not made again once it is recorded.
func (t *TaskRun) InCall() bool { return t.scope != "" }

// RunContext returns the context value of the run, nil for none: the same in every node, branch, effect and error
// handler, also in graphs that a node calls. It must not be changed.
func (t *TaskRun) RunContext() pregel.Value { return t.env.Context }

// maxDrainReason bounds the reason of a drain, in bytes.
const maxDrainReason = 1 << 10

// Drain asks the run to stop before its next superstep; the first reason given in an attempt counts, cut at 1 KiB. The
// task itself is not stopped: what it returns is kept, and so is what its siblings return. An attempt that fails has
// asked for nothing.
func (t *TaskRun) Drain(reason string) {
	if t.outer != nil {
		t.outer.Drain(reason)
		return
	}
	if reason == "" {
		reason = fmt.Sprintf("node %q of graph %q asked for it", t.info.Node, t.info.Graph)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.drain == "" && !t.closed {
		t.drain = clip.Text(reason, maxDrainReason)
	}
}

// Beat says that the node makes progress, which restarts its idle timeout.
func (t *TaskRun) Beat() {
	t.idle.progress()
	if t.env.Beat != nil && !t.isClosed() {
		t.env.Beat()
	}
}

// Journal returns the task's journal. Record counts as progress, and returns [ErrFenced] once the execution ended.
func (t *TaskRun) Journal() Journal { return fencedJournal{t.attempt} }

// EffectKey returns the key of the next call of the effect of that name, in hex: of the next ordinal, or of the given
// key, which may be used again to mean the same call. Neither attempt nor run is part of it, so every execution of
// the task gets the same key for the same call.
func (t *TaskRun) EffectKey(name, key string) string { return t.callKey(ledger.KindEffect, name, key) }

// callKey numbers one call. A given key is the task's, wherever in it the call is made; an ordinal is the scope's.
func (t *TaskRun) callKey(kind ledger.Kind, name, key string) string {
	line, renewals := pregel.Renewals(t.outermost().info.Branch)
	place := []string{"ordinal", t.scope, ""}
	if key != "" {
		place = []string{"key", key}
	} else {
		place[2] = t.next("call", string(kind), name)
	}
	first := t.hashOn(line, append([]string{"call", string(kind), name}, place...)...)[:ledger.KeyLength]
	if kind != ledger.KindEffect {
		return first // what was remembered is forgotten with the tasks that were to begin anew
	}
	return t.renewedKey(first, renewals)
}

// renewedKey is the key of an effect's call on a renewed branch: what was made before has been undone, so the call is
// another write, unless the task is left with the earlier one.
func (t *TaskRun) renewedKey(first string, renewals []string) string {
	key := first
	for _, renewal := range renewals {
		if _, left := t.journal.Entry(key); left {
			return key
		}
		key = ledger.Hash("renewed", first, renewal)[:ledger.KeyLength]
	}
	return key
}

// next returns the ordinal of one more use of a name, from 0.
func (t *TaskRun) next(name ...string) string {
	t.countMu.Lock()
	defer t.countMu.Unlock()
	key := ledger.Hash(name...)
	n := t.counts[key]
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[key] = n + 1
	return strconv.Itoa(n)
}

// hash names something of this task: the same in every execution of it, another in every other task and thread.
func (t *TaskRun) hash(parts ...string) string { return t.info.hash(parts...) }

// hashOn is hash on another branch.
func (t *TaskRun) hashOn(branch string, parts ...string) string {
	place := t.info
	place.Branch = branch
	return place.hash(parts...)
}

func (i *Info) hash(parts ...string) string {
	place := []string{i.Thread, i.Branch, i.Namespace, strconv.Itoa(i.Step), i.Path}
	return ledger.Hash(append(place, parts...)...)
}

// newTaskRun prepares one execution.
func newTaskRun(g *graphadapter.Graph, task *pregel.Task, env *Env) (*TaskRun, error) {
	t := &struct {
		TaskRun
		of attempt
	}{} // they live and end together
	t.attempt = &t.of
	return &t.TaskRun, t.of.init(g, task, env)
}
