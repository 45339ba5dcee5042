package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// situation is a point of a case from which on a difference is one of ours: what is declared in a row of
// docs/differences.md has come about there, by our own rules, and what follows depends on it.
type situation struct {
	row    string
	action int
}

// The rows that are recognised in any case by what happens in it. The others name their cases.
const (
	rowStaleAnswer     = "stale-answer"
	rowEarlyAnswer     = "early-answer"
	rowRetriedSubgraph = "retried-subgraph"
	rowForgetful       = "forgetful-answers"
	rowForkMemory      = "fork-memory"
	rowCorrected       = "corrected-answer"
	rowMemoryTwice     = "memory-twice"
	rowExitUntracked   = "exit-untracked"
	rowExitConflict    = "exit-conflict"
	rowExitLimit       = "exit-limit"
	rowUntrackedAlone  = "untracked-alone"
)

// situationsOf runs a case once in this process, as far as it goes, and tells where declared situations come about in it, in
// order. Nothing of what LangGraph recorded is looked at.
func situationsOf(ctx context.Context, c *source, name string) []situation {
	r, err := newRun(c.doc, c.text, name)
	if err != nil || r.refused != nil {
		return nil
	}
	r.states = func(int) bool { return false }
	w := &watcher{doc: c.doc, scalars: map[string]string{}, asked: map[string]bool{}, given: map[string]string{},
		named: map[string]bool{}}
	r.after = func(context.Context, int) error {
		if r.counters.hasRetried() {
			w.note(rowRetriedSubgraph)
		}
		w.action++
		return nil
	}
	_, _ = r.on(ctx, w) // what it answers has been compared
	return w.found
}

// watcher is the in-process engine that looks for situations.
type watcher struct {
	memoryEngine
	doc    *caseDoc
	action int
	found  []situation
	// scalars are, by thread, the root's checkpoints at which a value was given that does not say what it answers.
	scalars map[string]string
	// asked are the ids of questions that were asked within a subgraph that keeps nothing; forgotten says that one of them
	// has had its answer.
	asked     map[string]bool
	forgotten bool
	// given are, by thread, the root's checkpoints at which such a question was first answered.
	given map[string]string
	// named are the threads of which an action has named a checkpoint to go on from.
	named map[string]bool
}

func (w *watcher) open(ctx context.Context, g *graphadapter.Graph) (threads, error) {
	opened, err := w.memoryEngine.open(ctx, g)
	if err != nil {
		return nil, err
	}
	return &watchedThreads{memoryThreads: opened.(*memoryThreads), w: w}, nil
}

func (w *watcher) note(row string) {
	if s := (situation{row, w.action}); !slices.Contains(w.found, s) {
		w.found = append(w.found, s)
	}
}

type watchedThreads struct {
	*memoryThreads
	w *watcher
}

func (m *watchedThreads) update(ctx context.Context, at place, u graphadapter.StateUpdate) error {
	if at.checkpoint != "" {
		m.w.named[at.thread] = true
	}
	return m.memoryThreads.update(ctx, at, u)
}

// run looks at what a run finds, and follows it.
func (m *watchedThreads) run(ctx context.Context, thread string, in pregel.Input, opts graphadapter.RunOptions, rec *recorder) error {
	t := m.store.Thread(m.graph, thread)
	program, err := m.graph.Program()
	if err != nil {
		return err
	}
	before, err := t.State(ctx, opts.Checkpoint)
	if err != nil {
		before = &pregel.Snapshot{}
	}
	open, err := t.Questions(ctx)
	if err != nil {
		return err
	}
	v := &view{w: m.w, program: program, thread: thread, in: in, begun: before.Checkpoint,
		exit: opts.Durability == graphadapter.DurabilityExit}
	newest, err := t.State(ctx, "")
	if err != nil {
		newest = before
	}
	if newest.Checkpoint == before.Checkpoint {
		v.open = slices.DeleteFunc(open, func(q pregel.OpenQuestion) bool { return q.Event != "" })
	} else if in.Resume != nil {
		v.corrects(before)
	}
	m.w.named[thread] = m.w.named[thread] || opts.Checkpoint != ""
	if v.scalar() {
		m.w.scalars[thread] = v.begun
	}
	v.answers()
	opts.Observer = func(e pregel.Event) {
		v.see(e)
		rec.observe(e)
	}
	_, err = t.Run(ctx, in, opts)
	if after, unreadable := t.State(ctx, ""); unreadable == nil {
		v.leftUntracked(after)
		v.leftAlone(program, after)
	}
	if !v.exit {
		return err
	}
	if conflict := (*pregel.InvalidUpdateError)(nil); errors.As(err, &conflict) {
		v.w.note(rowExitConflict)
	}
	return err
}

// view is one run as the watcher sees it.
type view struct {
	w       *watcher
	program *pregel.Program
	thread  string
	in      pregel.Input
	begun   string                // the root's checkpoint at which it began
	open    []pregel.OpenQuestion // that people were asked when it began; none of an earlier checkpoint
	over    bool                  // the root has made a checkpoint
	exit    bool                  // it runs in durability exit
}

func (v *view) scalar() bool { return v.in.Resume != nil && v.in.Resume.Scalar != nil }

// corrects notes an answer at a checkpoint that the thread has passed, where something was answered before.
func (v *view) corrects(at *pregel.Snapshot) {
	if slices.ContainsFunc(at.Tasks, func(t pregel.TaskSnapshot) bool { return t.Done && len(t.Questions) > 0 }) {
		v.w.note(rowCorrected)
	}
}

// leftUntracked notes a superstep under way, left in durability exit, of which tasks have finished.
func (v *view) leftUntracked(s *pregel.Snapshot) {
	if !v.exit {
		return
	}
	tracked := !slices.ContainsFunc(v.program.Spec.Channels, func(c pregel.ChannelSpec) bool { return c.Kind == pregel.KindUntracked })
	if !tracked && len(s.Next) > 0 && slices.ContainsFunc(s.Tasks, func(t pregel.TaskSnapshot) bool { return t.Done }) {
		v.w.note(rowExitUntracked)
	}
}

// leftAlone notes a superstep under way of which a task has finished that wrote nothing but untracked values.
func (v *view) leftAlone(p *pregel.Program, s *pregel.Snapshot) {
	for _, t := range s.Tasks {
		if sub, ok := subgraphOf(p, t.Name); ok && t.State != nil {
			v.leftAlone(sub, t.State)
		}
		if t.Done && len(t.Wrote) > 0 && !slices.ContainsFunc(t.Wrote, func(w pregel.Write) bool { return !isUntracked(p, w.Channel) }) {
			v.w.note(rowUntrackedAlone)
		}
	}
}

func isUntracked(p *pregel.Program, channel string) bool {
	return slices.ContainsFunc(p.Spec.Channels, func(c pregel.ChannelSpec) bool {
		return c.Name == channel && c.Kind == pregel.KindUntracked
	})
}

// answers notes what the run's answers are for.
func (v *view) answers() {
	if v.w.given[v.thread] == v.begun && v.begun != "" && v.in.Value == nil {
		v.w.note(rowForgetful)
	}
	if v.in.Resume == nil {
		return
	}
	for id := range v.in.Resume.ByID {
		if !slices.ContainsFunc(v.open, func(q pregel.OpenQuestion) bool { return q.ID == id }) {
			v.w.note(rowEarlyAnswer) // it is listed, and not open: an update has dropped it
		}
	}
	given := slices.ContainsFunc(v.open, func(q pregel.OpenQuestion) bool {
		_, byID := v.in.Resume.ByID[q.ID]
		return v.w.asked[q.ID] && (byID || v.scalar())
	})
	if !given {
		return
	}
	if v.w.forgotten || !v.scalar() { // the first bare answer is LangGraph's own way to answer such a question
		v.w.note(rowForgetful)
	}
	v.w.forgotten = true
	v.w.given[v.thread] = v.begun
}

func (v *view) see(e pregel.Event) {
	root := e.Namespace == ""
	switch {
	case e.Kind == pregel.EventCheckpoint && root:
		v.over = v.over || e.Checkpoint.Checkpoint.Source != pregel.SourceFork
	case e.Kind == pregel.EventTick && v.w.named[v.thread] && v.within(e.Nodes, pregel.MemoryThread):
		v.w.note(rowForkMemory) // on a line of its own it has the memory of that line
	case e.Kind == pregel.EventInterrupt && e.Task != nil:
		v.question(e)
	case e.Kind == pregel.EventTaskEnd && e.Error != nil && strings.Contains(e.Error.Message, "remembers, and runs twice"):
		v.w.note(rowMemoryTwice)
	case e.Kind == pregel.EventTaskEnd && e.Error != nil && v.exit:
		v.failed(nodeErrorType(e.Error))
	}
}

// failed notes a subgraph that ended in durability exit in a way of which LangGraph keeps less.
func (v *view) failed(how string) {
	switch how {
	case typeRecursion:
		v.w.note(rowExitLimit)
	case typeInvalidUpdate:
		v.w.note(rowExitConflict)
	}
}

// question notes a question that LangGraph answers with a value that was not meant for it.
func (v *view) question(e pregel.Event) {
	for _, q := range e.Questions {
		if v.within(e.Nodes, pregel.MemoryNone) {
			v.w.asked[q.ID] = true
		}
	}
	switch {
	case v.over:
	case v.scalar():
		if len(v.open) == 0 || v.in.Control != nil && len(v.in.Control.Goto) > 0 || v.another(e) {
			v.w.note(rowEarlyAnswer)
		}
	case v.w.scalars[v.thread] == v.begun && v.in.Value == nil:
		v.w.note(rowStaleAnswer)
	}
}

// another reports whether a task asks that had nothing open when the run began, beside one that had.
func (v *view) another(e pregel.Event) bool {
	beside := false
	for _, q := range v.open {
		if q.Node == e.Task.Node {
			return false
		}
		beside = beside || q.Step == e.Step
	}
	return beside
}

// at is the subgraph at a path of nodes.
func (v *view) at(nodes []string) (p *pregel.Program, ok bool) {
	p = v.program
	for _, node := range nodes {
		if p, ok = subgraphOf(p, node); !ok {
			return nil, false
		}
	}
	return p, true
}

// within reports whether one of the subgraphs at a path of nodes remembers for that long.
func (v *view) within(nodes []string, memory pregel.Memory) bool {
	for i := range nodes {
		if sub, ok := v.at(nodes[:i+1]); ok && sub.Spec.Memory == memory {
			return true
		}
	}
	return false
}
