package taskrun

import (
	"slices"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
)

func checkpointsOf(t *testing.T, p *past.Past) []string {
	t.Helper()
	history, err := p.History(nil)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range history {
		out = append(out, c.Checkpoint)
	}
	return out
}

// recorded drives a thread of the talk graph and tells p of it.
func recorded(t *testing.T, p *past.Past, g *graphadapter.Graph, thread *pregel.Thread, in pregel.Input, d graphadapter.Durability) {
	t.Helper()
	program, err := g.Program()
	if err != nil {
		t.Fatal(err)
	}
	p.Began(0, program, thread, d)
	loop, err := program.Start(thread, in, graphadapter.RunOptions{}.Engine(), false, p.Observer(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := drive(t.Context(), program, loop, graphadapter.RunOptions{}, inMemory{graph: g, thread: "r-7"}); err != nil {
		t.Fatal(err)
	}
	p.Ended(0, loop.Status(), loop.Thread())
}

// stored is a thread as the next run of it reads it.
func stored(t *testing.T, g *graphadapter.Graph, thread *pregel.Thread) *pregel.Thread {
	t.Helper()
	program, err := g.Program()
	if err != nil {
		t.Fatal(err)
	}
	text, err := program.EncodeThread(thread)
	if err != nil {
		t.Fatal(err)
	}
	out, err := program.DecodeThread(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestThePastOfSeveralRuns: a later run knows more of the checkpoint that it began at, and nothing is forgotten of what
// made it.
func TestThePastOfSeveralRuns(t *testing.T) {
	p, g := past.NewPast(), talk(sayHello)
	first := pregel.NewThread()
	recorded(t, p, g, first, input(`{}`), "")
	before, err := p.History(nil)
	if err != nil || len(before) != 3 || p.Status() != pregel.StatusWaiting || before[0].Tasks[0].Done {
		t.Fatalf("the first run left %+v, %v, %v", before, p.Status(), err)
	}
	recorded(t, p, g, stored(t, g, first), scalar(`1`), "")
	after, err := p.History(nil)
	if err != nil || len(after) != 5 || p.Status() != pregel.StatusDone {
		t.Fatalf("both runs left %+v, %v, %v", after, p.Status(), err)
	}
	asked := after[2]
	if asked.Checkpoint != before[0].Checkpoint || !asked.Tasks[0].Done || !slices.Equal(asked.Ran, []string{"say"}) ||
		!slices.Equal(asked.Wrote, []string{"log"}) {
		t.Errorf("the checkpoint of the question is %+v", asked)
	}
	fork, ok := p.At(asked.Checkpoint, pregel.ForReplay)
	if !ok || fork.Head.Checkpoint.ID != asked.Checkpoint {
		t.Errorf("it starts again at %+v", fork)
	}
	if _, ok := p.At("c-nothing", pregel.ForReplay); ok {
		t.Error("there is a checkpoint c-nothing")
	}
}

// TestThePastWithoutItsBeginning shows what a run began at all the same, though not what made it.
func TestThePastWithoutItsBeginning(t *testing.T) {
	g, first := talk(sayHello), pregel.NewThread()
	recorded(t, past.NewPast(), g, first, input(`{}`), "")
	p := past.NewPast()
	recorded(t, p, g, stored(t, g, first), scalar(`1`), "")
	history, err := p.History(nil)
	if err != nil || len(history) != 3 || history[2].Checkpoint != first.Head.Checkpoint.ID || history[2].Ran != nil {
		t.Errorf("the second run alone has %+v, %v", history, err)
	}
}

// TestThePastInExitMode has one checkpoint an invocation, in both runs of a thread.
func TestThePastInExitMode(t *testing.T) {
	p, g, first := past.NewPast(), talk(sayHello), pregel.NewThread()
	recorded(t, p, g, first, input(`{}`), graphadapter.DurabilityExit)
	recorded(t, p, g, stored(t, g, first), scalar(`1`), graphadapter.DurabilityExit)
	history, err := p.History(nil)
	if err != nil || len(history) != 2 || history[0].Parent != history[1].Checkpoint || history[1].Parent != "" {
		t.Errorf("two invocations left %+v, %v", history, err)
	}
}

// TestUpdatesAreAppliedAllOrNone, and the thread goes on from where it was.
func TestUpdatesAreAppliedAllOrNone(t *testing.T) {
	thread := NewMemory().Thread(talk(sayHello), "r-7")
	mustRun(t, thread, input(`{}`), graphadapter.RunOptions{})
	before := checkpointsOf(t, thread.history.past)
	good, bad := graphadapter.StateUpdate{Values: said("x").Update, AsNode: "say"}, graphadapter.StateUpdate{AsNode: "nobody"}
	if _, err := thread.Update(t.Context(), "", nil, [][]graphadapter.StateUpdate{{good}, {bad}}); err == nil {
		t.Error("an update as a node that there is not was taken")
	}
	if _, err := thread.Update(t.Context(), "", nil, nil); err == nil {
		t.Error("no update was taken")
	}
	if got := checkpointsOf(t, thread.history.past); !slices.Equal(got, before) {
		t.Errorf("refused updates left %v, there was %v", got, before)
	}
	open, err := thread.Questions(t.Context())
	if err != nil || len(open) != 1 {
		t.Errorf("open is %+v, %v", open, err)
	}
	s, err := thread.Update(t.Context(), "", nil, [][]graphadapter.StateUpdate{{good}, {good}, {good}})
	if err != nil || string(s.Values["log"]) != `["hello","x","x","x"]` {
		t.Errorf("three updates leave %+v, %v", s, err)
	}
	got := checkpointsOf(t, thread.history.past)
	if len(got) != len(before)+3 || got[0] != s.Checkpoint || !slices.Equal(got[3:], before) {
		t.Errorf("they left %v, there was %v", got, before)
	}
}

func TestABranchIsAThreadOfItsOwn(t *testing.T) {
	m, g := NewMemory(), talk(sayHello)
	thread, as := m.Thread(g, "r-7"), m.Thread(g, "r-8")
	mustRun(t, thread, input(`{}`), graphadapter.RunOptions{})
	before := checkpointsOf(t, thread.history.past)
	if _, fresh, err := thread.Branch(t.Context(), before[0], false, as); !fresh || err != nil {
		t.Fatalf("a new thread: %v, %v", fresh, err)
	}
	if got := checkpointsOf(t, as.history.past); !slices.Equal(got, before) {
		t.Errorf("the branch begins with %v, the old thread has %v", got, before)
	}
	mustRun(t, as, pregel.Input{}, graphadapter.RunOptions{Checkpoint: before[0]})
	if log := mustRun(t, as, scalar(`2`), graphadapter.RunOptions{}); log != `["hello","2","end"]` {
		t.Errorf("the branch ends with %s", log)
	}
	if got := checkpointsOf(t, thread.history.past); !slices.Equal(got, before) {
		t.Errorf("the old thread has %v, it had %v", got, before)
	}
	if _, fresh, err := thread.Branch(t.Context(), before[0], false, as); fresh || err != nil {
		t.Errorf("a thread that has begun: %v, %v", fresh, err)
	}
	if log := mustRun(t, thread, scalar(`1`), graphadapter.RunOptions{}); log != `["hello","1","end"]` {
		t.Errorf("the old thread ends with %s", log)
	}
}
