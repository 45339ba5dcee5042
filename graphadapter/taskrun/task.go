package taskrun

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
)

// TaskRun is one execution of one task, as its node sees it through the context. Its methods are safe for concurrent
// use. After the execution ended they do nothing and return [ErrFenced].
//
// Calls are numbered by what they are about, in the order in which they are made, to find them again when the task runs once more.
// Inside a memoised call the numbering starts afresh, so that parallel calls do not disturb each other's.
type TaskRun struct {
	*attempt
	// scope is the key of the memoised call that this one runs in, "" for the node itself.
	scope  string
	parent *TaskRun
	asked  atomic.Bool // a question was asked in this scope, or in one within it

	// unordered says that calls in this scope come in any order; apart is the scope of such calls within this one, nil before the first.
	unordered bool
	apart     *TaskRun

	countMu    sync.Mutex
	counts     map[string]int    // nil while nothing was counted
	approvals  map[int]bool      // places of approvals that this execution has come to; nil for none
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

// Decoded is [graphadapter.RunOptions].Decoded. Nil for a task that runs without a driver, alone in its activity.
func (t *TaskRun) Decoded() *sync.Map { return t.env.decoded }

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

// callKey returns the key of the next call of that name, in hex. A given key is the task's, wherever in it the call is made, and may be used
// again to mean the same call; an ordinal is the scope's, among the calls about the same thing. The thread's origin is part of it, neither attempt nor run is,
// so every execution of the task gets the same key for the same call.
func (t *TaskRun) callKey(kind ledger.Kind, name, key, about string) string {
	line, renewals := pregel.Renewals(t.outermost().info.Branch)
	place := []string{"ordinal", t.scope, ""}
	if key != "" {
		place = []string{"key", key}
	} else if place[2] = t.next("call", string(kind), name, about); about != "" {
		place = append(place, about)
	}
	first := t.hashOn(line, append(withOrigin(t.outermost().task.Origin, "call", string(kind), name), place...)...)[:ledger.KeyLength]
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

// newTaskRun prepares one execution.
func newTaskRun(g *graphadapter.Graph, task *pregel.Task, env *Env) (*TaskRun, error) {
	t := &struct {
		TaskRun
		of attempt
	}{} // they live and end together
	t.attempt = &t.of
	return &t.TaskRun, t.of.init(g, task, env)
}

// attempt is what all scopes of one execution of a task share.
type attempt struct {
	info    Info
	root    *graphadapter.Graph // graph's outermost
	graph   *graphadapter.Graph
	node    graphadapter.Node
	task    *pregel.Task
	env     *Env     // as it was when the execution began, but for its Attempt
	outer   *TaskRun // the task whose code called the graph that this task is of; nil for none
	journal Journal
	idle    *idleTimer
	answers map[string]pregel.Answer
	early   []pregel.Answer // given before their questions were asked
	// remembered are the keys of what was recorded before the attempt began, of a node that may keep its result; nil for none.
	remembered map[string]bool

	emitting sync.Mutex // held while a value is emitted, so that values leave in the order in which they are kept

	mu           sync.Mutex
	closed       bool
	fenced       bool
	questions    []pregel.Question
	ordinals     map[string]int // of the questions by id; this map and those below are nil while nothing is in them
	drain        string
	emitted      []pregel.Emission
	emittedBytes int
	emittedCount int           // without resets
	running      int           // futures that have not ended
	settled      chan struct{} // closed when running falls to 0; nil while nobody waits
	locks        map[string]chan struct{}
	beyond       string // what the node has read that its input does not have; empty for nothing
	warned       bool   // of calls whose order says nothing
	sizes        ledgerSizes
	traces       map[TracedCall]int // calls so far, where anybody traces them

	// How the execution is given back; see yield.
	yielding bool
	claim    string
	calls    int                     // under way
	cancel   context.CancelCauseFunc // of the node's context
	free     []func() bool           // what else bounds it
	inline   inlineRun
	patience *time.Timer
	between  graphadapter.CarryOver // what the attempts before left
}

// init makes a the attempt of a task.
func (a *attempt) init(g *graphadapter.Graph, task *pregel.Task, env *Env) error {
	graph, node, err := g.Serve(task)
	if err != nil {
		return err
	}
	if env.Outbox == nil {
		if env.Outbox, err = OpenOutbox(task, nil, nil, ""); err != nil {
			return err
		}
	}
	a.root, a.graph, a.node, a.task, a.env, a.outer, a.journal = g, graph, node, task, env, env.outer, env.Journal
	if a.journal == nil {
		a.journal = env.Outbox
	}
	a.info = Info{
		Graph: graph.Spec.Name, Node: task.Node, Thread: env.Thread,
		Origin: task.Origin, Namespace: task.Namespace, Path: task.Path, Branch: task.Branch, Step: task.Step,
		Attempt: max(env.Attempt, 1), StepsLeft: task.StepsLeft, LastStep: task.StepsLeft == 1,
		Suspect: env.Suspect, Lost: env.Lost, Requester: env.Requester,
	}
	if env.outer != nil {
		a.info.Branch = env.outer.outermost().info.Branch // what it asks is new where the task that calls the graph is
	}
	a.between = env.Outbox.CarryOver()
	a.info.Suspect = a.info.Suspect || a.between.Suspect
	a.info.Lost = a.info.Lost || a.between.Lost
	if len(task.Answers) > 0 {
		a.answers = make(map[string]pregel.Answer, len(task.Answers))
	}
	for _, answer := range task.Answers {
		if answer.Early() {
			a.early = append(a.early, answer)
			continue
		}
		a.answers[answer.QuestionID] = answer
	}
	entries := a.journal.Entries()
	if a.sizes = sizesOf(entries); node.Cache != nil && len(entries) > 0 {
		a.remembered = make(map[string]bool, len(entries))
		for _, e := range entries {
			a.remembered[e.Key] = true
		}
	}
	return nil
}

// kept is what the thread shall keep. A called graph's tasks leave that to the task that they are part of.
func (t *TaskRun) kept(entries []ledger.Entry) map[string]pregel.Value {
	if t.outer != nil {
		return nil
	}
	return KeptOf(t.task, entries)
}

// threadKey is the key of a call that is the same in all of the thread's life: in every task, superstep and branch.
func (t *TaskRun) threadKey(kind ledger.Kind, name, key string) string {
	return ledger.Hash(withOrigin(t.outermost().task.Origin, "thread-wide", t.info.Thread, string(kind), name, key)...)[:ledger.KeyLength]
}

// withOrigin puts the origin of the task's thread before the parts of a key. Graphs that are called from a node's code have their keys
// in the thread of the outermost task.
func withOrigin(origin string, parts ...string) []string {
	if origin == "" {
		return parts
	}
	return append([]string{"origin", origin}, parts...)
}

// keyBehind is the key of the write that is made again after the one of that key was undone: a target that knows the key
// would answer with the receipt of a write that is not there.
func keyBehind(undone string) string { return ledger.Hash("behind", undone)[:ledger.KeyLength] }
