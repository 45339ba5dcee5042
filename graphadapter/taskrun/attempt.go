package taskrun

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
)

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
	sizes        ledgerSizes

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
		Namespace: task.Namespace, Path: task.Path, Branch: task.Branch, Step: task.Step,
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
	a.sizes = sizesOf(a.journal.Entries())
	return nil
}

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
