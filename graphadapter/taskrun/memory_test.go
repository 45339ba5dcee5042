package taskrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// talk is a graph of a log: say, then ask, then end.
func talk(say graphadapter.NodeFunc) *graphadapter.Graph {
	ask := func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
		task, _ := TaskFrom(ctx)
		answer, err := task.Ask(ctx, pregel.Value(`"go on?"`), nil, "")
		return said(string(answer)), err
	}
	end := func(context.Context, graphadapter.Input) (pregel.Command, error) { return said("end"), nil }
	return &graphadapter.Graph{
		Spec: &pregel.Spec{
			Version: pregel.SpecVersion, Name: "talk",
			Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}},
			Nodes:    []pregel.NodeSpec{{Name: "say"}, {Name: "ask"}, {Name: "end"}},
			Edges:    []pregel.Edge{{From: pregel.Start, To: "say"}, {From: "say", To: "ask"}, {From: "ask", To: "end"}},
		},
		Nodes: map[string]graphadapter.Node{"say": {Run: say}, "ask": {Run: ask}, "end": {Run: end}},
	}
}

func said(word string) pregel.Command {
	return pregel.Command{Update: []pregel.Write{{Channel: "log", Value: pregel.Value(fmt.Sprintf("[%q]", word))}}}
}

func sayHello(context.Context, graphadapter.Input) (pregel.Command, error) { return said("hello"), nil }

func input(text string) pregel.Input { return pregel.Input{Value: pregel.Value(text)} }

func scalar(text string) pregel.Input {
	return pregel.Input{Resume: &pregel.Resume{Scalar: pregel.Value(text)}}
}

// mustRun runs the thread and returns its log.
func mustRun(t *testing.T, thread *Thread, in pregel.Input, opts graphadapter.RunOptions) string {
	t.Helper()
	result, err := thread.Run(t.Context(), in, opts)
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Output["log"])
}

func steps(t *testing.T, thread *Thread) []int {
	t.Helper()
	snapshots, err := thread.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []int
	for _, s := range snapshots {
		out = append(out, s.Step)
	}
	return out
}

func TestAThreadIsKeptByItsID(t *testing.T) {
	m, g := NewMemory(), talk(sayHello)
	mustRun(t, m.Thread(g, "r-7"), input(`{}`), graphadapter.RunOptions{})
	if log := mustRun(t, m.Thread(g, "r-7"), scalar(`1`), graphadapter.RunOptions{}); log != `["hello","1","end"]` {
		t.Errorf("the thread goes on to %s", log)
	}
	if other, err := m.Thread(g, "r-8").State(t.Context(), ""); err != nil || other.Checkpoint != "" || len(other.Next) != 0 {
		t.Errorf("another thread has the state %+v, %v", other, err)
	}
	if got := steps(t, m.Thread(g, "r-7")); !slices.Equal(got, []int{3, 2, 1, 0, -1}) {
		t.Errorf("the history has the steps %v", got)
	}
}

// TestExitKeepsOneCheckpoint a run, whose parent is the one that the run began at.
func TestExitKeepsOneCheckpoint(t *testing.T) {
	thread := NewMemory().Thread(talk(sayHello), "r-7")
	exit := graphadapter.RunOptions{Durability: graphadapter.DurabilityExit}
	mustRun(t, thread, input(`{}`), exit)
	mustRun(t, thread, scalar(`1`), exit)
	snapshots, err := thread.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(snapshots) != 2 || snapshots[0].Parent != snapshots[1].Checkpoint || snapshots[1].Parent != "" {
		t.Errorf("two runs left %+v", snapshots)
	}
	if got := steps(t, thread); !slices.Equal(got, []int{3, 1}) {
		t.Errorf("they are at the steps %v", got)
	}
}

func TestACheckpointThatIsNotThere(t *testing.T) {
	thread := NewMemory().Thread(talk(sayHello), "r-7")
	var missing *pregel.NoCheckpointError
	if _, err := thread.State(t.Context(), "c-nothing"); !errors.As(err, &missing) || missing.Thread != "r-7" {
		t.Errorf("reading it: %v", err)
	}
	if _, err := thread.Run(t.Context(), input(`{}`), graphadapter.RunOptions{Checkpoint: "c-nothing"}); !errors.As(err, &missing) {
		t.Errorf("running from it: %v", err)
	}
}

// TestRunsOfOneThreadExcludeEachOther, and who waits may give up.
func TestRunsOfOneThreadExcludeEachOther(t *testing.T) {
	started, release := make(chan struct{}), make(chan struct{})
	thread := NewMemory().Thread(talk(func(context.Context, graphadapter.Input) (pregel.Command, error) {
		close(started)
		<-release
		return said("slow"), nil
	}), "r-7")
	done := make(chan error)
	go func() {
		_, err := thread.Run(t.Context(), input(`{}`), graphadapter.RunOptions{})
		done <- err
	}()
	<-started
	impatient, cancel := context.WithCancelCause(t.Context())
	why := errors.New("no patience")
	cancel(why)
	if _, err := thread.Run(impatient, scalar(`1`), graphadapter.RunOptions{}); !errors.Is(err, why) {
		t.Errorf("a second run: %v", err)
	}
	if _, err := thread.State(impatient, ""); !errors.Is(err, why) {
		t.Errorf("reading the state: %v", err)
	}
	if _, err := thread.History(impatient); !errors.Is(err, why) {
		t.Errorf("reading the history: %v", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestARefusedRunLeavesTheThread as it was.
func TestARefusedRunLeavesTheThread(t *testing.T) {
	thread := NewMemory().Thread(talk(sayHello), "r-7")
	mustRun(t, thread, input(`{}`), graphadapter.RunOptions{})
	before, err := thread.State(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := thread.Run(t.Context(), input(`not JSON`), graphadapter.RunOptions{}); err == nil {
		t.Error("a run took what is not JSON")
	}
	after, err := thread.State(t.Context(), "")
	if err != nil || after.Checkpoint != before.Checkpoint || len(after.Tasks[0].Questions) != 1 {
		t.Errorf("the thread is at %+v, %v", after, err)
	}
}

func TestInvokeKeepsNothing(t *testing.T) {
	g := talk(sayHello)
	for range 2 {
		result, err := Invoke(t.Context(), g, input(`{}`), graphadapter.RunOptions{})
		if err != nil || string(result.Output["log"]) != `["hello"]` || len(result.Questions) != 1 {
			t.Errorf("the run ended with %+v, %v", result, err)
		}
	}
}
