package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// told replays events and returns what the sink was told, one line each.
func (r *rig) told(runID string, events *history.Events) []string {
	r.t.Helper()
	var s seen
	if err := r.tail.ReplayEvents(r.thread, runID, events.All, workflows.NewReader(r.graph, &s)); err != nil {
		r.t.Fatal(err)
	}
	return s.told
}

// everyMoment holds what is told of a run at every moment of its life to be the beginning of what is told in the end,
// and to lie before the moment.
func (r *rig) everyMoment(runID string) []string {
	r.t.Helper()
	events := r.tail.Events(r.thread, runID)
	for !events.Closed() {
		if err := events.More(r.ctx); err != nil {
			r.t.Fatal(err)
		}
	}
	whole, last := r.told(runID, events), 0
	all := events.All
	for n := range all {
		if history.Durable(all[:n+1]) == n+1 && all[n].GetWorkflowTaskCompletedEventAttributes() == nil {
			continue // what a workflow task brings about is stored, and comes, together with its end
		}
		events.All = all[:n]
		got := r.told(runID, events)
		if len(got) < last || len(got) > len(whole) || !slices.Equal(got, whole[:len(got)]) {
			r.t.Fatalf("with %d of %d events it is told\n%s\nin the end\n%s", n, len(all), strings.Join(got, "\n"), strings.Join(whole, "\n"))
		}
		last = len(got)
		if last > 0 {
			at := 0
			if _, err := fmt.Sscan(got[last-1], &at); err != nil || at > n {
				r.t.Fatalf("with %d events it is told of event %d", n, at)
			}
		}
	}
	if last == 0 {
		r.t.Fatal("it was told nothing")
	}
	return whole
}

// fan runs five nodes side by side, of which the named ones end when release is closed.
func fan(release chan struct{}, slow ...string) *graphadapter.Graph {
	nodes := map[string]graphadapter.Node{}
	order := []string{"one", "two", "three", "four", "five", "end"}
	var edges [][2]string
	for _, n := range order[:5] {
		nodes[n] = says(n)
		edges = append(edges, [2]string{pregel.Start, n}, [2]string{n, "end"})
	}
	nodes["end"] = says("end")
	for _, n := range slow {
		nodes[n] = graphadapter.Node{Run: func(ctx context.Context, _ graphadapter.Input) (pregel.Command, error) {
			select {
			case <-release:
				return logs(n), nil
			case <-ctx.Done():
				return pregel.Command{}, context.Cause(ctx)
			}
		}}
	}
	return graph(nodes, order, edges...)
}

// TestReadingARunInTheMiddleOfAFanOut: what its finished tasks said is told while others run, and nothing else; after
// the run was terminated that is all there will ever be.
func TestReadingARunInTheMiddleOfAFanOut(t *testing.T) {
	t.Parallel()
	r := newRig(t, fan(make(chan struct{}), "two", "four"))
	runID := r.begin(`{}`)
	events := r.tail.Events(r.thread, runID)
	var told []string
	count := func(what string) (n int) {
		for _, line := range told {
			if strings.Contains(line, " "+what) {
				n++
			}
		}
		return n
	}
	for count("task_result one")+count("task_result three")+count("task_result five") < 3 {
		if err := events.More(r.ctx); err != nil {
			t.Fatal(err)
		}
		told = r.told(runID, events)
	}
	for _, want := range []string{"task_result one", "task_result three", "task_result five", "task two", "task four"} {
		if count(want) != 1 {
			t.Errorf("%q was told %d times:\n%s", want, count(want), strings.Join(told, "\n"))
		}
	}
	for _, not := range []string{"task_result two", "task_result four", "ended", "task end"} {
		if count(not) != 0 {
			t.Errorf("%q was told:\n%s", not, strings.Join(told, "\n"))
		}
	}
	if err := r.temporal.TerminateWorkflow(r.ctx, r.thread, runID, "test"); err != nil {
		t.Fatal(err)
	}
	if got := r.everyMoment(runID); !slices.Equal(got, told) {
		t.Errorf("terminated, it is told\n%s\nbefore\n%s", strings.Join(got, "\n"), strings.Join(told, "\n"))
	}
}

// TestReadingARunAtEveryMoment of its life: waiting, answered by signal and update, finished, failed, cancelled.
func TestReadingARunAtEveryMoment(t *testing.T) {
	t.Parallel()
	t.Run("waiting", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, approvals())
		runID := r.begin(`{}`)
		for i, q := range r.rest().Questions {
			req := thread.ResumeRequest{Thread: r.thread, Question: q.ID, Value: []byte(`"yes"`), Signal: i == 0}
			if _, err := r.Resume(r.ctx, req); err != nil {
				t.Fatal(err)
			}
		}
		r.rest()
		whole := r.everyMoment(runID)
		if n := strings.Count(strings.Join(whole, "\n"), "began"); n < 2 {
			t.Errorf("the engine began %d times:\n%s", n, strings.Join(whole, "\n"))
		}
		if last := whole[len(whole)-1]; !strings.HasSuffix(last, fmt.Sprintf(" ended %d", pregel.StatusDone)) {
			t.Errorf("the last it is told is %q", last)
		}
	})
	t.Run("failed", func(t *testing.T) {
		t.Parallel()
		bad := graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			return pregel.Command{}, errors.New("never")
		}}
		r := newRig(t, graph(map[string]graphadapter.Node{"bad": bad, "good": says("good")}, []string{"bad", "good"},
			[2]string{pregel.Start, "bad"}, [2]string{pregel.Start, "good"}))
		runID := r.begin(`{}`)
		r.rest()
		whole := r.everyMoment(runID)
		if last := whole[len(whole)-1]; !strings.HasSuffix(last, fmt.Sprintf(" ended %d", pregel.StatusFailed)) {
			t.Errorf("the last it is told is %q", last)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, fan(make(chan struct{}), "two"))
		runID := r.begin(`{}`)
		events := r.tail.Events(r.thread, runID)
		for !strings.Contains(strings.Join(r.told(runID, events), "\n"), "task_result five") {
			if err := events.More(r.ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Cancel(r.ctx, thread.CancelRequest{Thread: r.thread, Reason: "test"}); err != nil {
			t.Fatal(err)
		}
		r.everyMoment(runID)
	})
}

// TestPositionsAreThoseOfTheRun: what a sink is told in the run itself, a replay tells again, in the same places: the
// ids of the events with which the workflow tasks started.
func TestPositionsAreThoseOfTheRun(t *testing.T) {
	t.Parallel()
	g := approvals()
	c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(stop)
	queue := testserver.Queue(t)
	var live seen
	w := worker.New(c, queue, worker.Options{})
	workflows.NewGraphs([]*graphadapter.Graph{g}, workflows.Config{Sink: &live}).Register(w)
	activities.NewNodes(c, []*graphadapter.Graph{g}).Register(w)
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: queue, TaskQueue: queue}, protocol.GraphWorkflow,
		protocol.GraphInput{Graph: g.Spec.Name, Input: protocol.Input{Value: pregel.Value(`{}`)},
			Options: pregel.Options{InterruptAfter: []string{"draft"}}})
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, ctx: ctx, graph: g, temporal: c, thread: queue, tail: newTail(c)}
	events := r.tail.Events(queue, run.GetRunID())
	for !strings.Contains(strings.Join(r.told(run.GetRunID(), events), "\n"), "ended") {
		if err := events.More(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SignalWorkflow(ctx, queue, "", protocol.SignalResume, protocol.ResumeRequest{ID: "on"}); err != nil {
		t.Fatal(err)
	}
	for strings.Count(strings.Join(r.told(run.GetRunID(), events), "\n"), "ended") < 2 {
		if err := events.More(ctx); err != nil {
			t.Fatal(err)
		}
	}
	w.Stop()
	told := r.told(run.GetRunID(), events)
	if got, want := strings.Join(told, "\n"), strings.Join(live.told, "\n"); got != want {
		t.Errorf("a replay is told\n%s\nthe run's own sink was told\n%s", got, want)
	}
	for _, line := range told {
		var at int
		if _, err := fmt.Sscan(line, &at); err != nil || events.All[at-1].GetWorkflowTaskStartedEventAttributes() == nil {
			t.Errorf("%q is not at the start of a workflow task", line)
		}
	}
}

// longest is a reducer that only this program has.
type longest struct{}

func (longest) Name() string       { return "tests.longest/v1" }
func (longest) Zero() pregel.Value { return nil }

func (longest) Reduce(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
	for _, u := range updates {
		if len(u) > len(current) {
			current = u
		}
	}
	return current, nil
}

// TestReadingWithoutTheGraph: the run's Spec is in its history; only a custom reducer needs the program.
func TestReadingWithoutTheGraph(t *testing.T) {
	t.Parallel()
	r := newRig(t, approvals())
	runID := r.begin(`{}`)
	r.rest()
	var with, without seen
	if err := r.tail.Replay(r.ctx, r.thread, runID, workflows.NewReader(r.graph, &with)); err != nil {
		t.Fatal(err)
	}
	if err := r.tail.Replay(r.ctx, r.thread, runID, workflows.NewReader(nil, &without)); err != nil {
		t.Fatal(err)
	}
	if len(with.told) < 10 || !slices.Equal(with.told, without.told) {
		t.Errorf("without the graph it is told %v, with it %v", without.told, with.told)
	}
	if _, err := r.tail.All(r.ctx, r.thread+"-nobody", ""); !isNotFound(err) {
		t.Errorf("a thread that does not exist reads as %v", err)
	}
}

func isNotFound(err error) bool {
	var missing *serviceerror.NotFound
	return errors.As(err, &missing)
}

// TestReadingWithoutAReducer: the error is typed and says what to do; with the graph the same run is read.
func TestReadingWithoutAReducer(t *testing.T) {
	t.Parallel()
	g := graph(map[string]graphadapter.Node{"a": {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
		return pregel.Command{Update: []pregel.Write{{Channel: "best", Value: json.RawMessage(`"x"`)}}}, nil
	}}}, []string{"a"}, [2]string{pregel.Start, "a"})
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "best", Kind: pregel.KindReduce, Reducer: "tests.longest/v1"})
	g.Reducers = map[string]pregel.Reducer{"tests.longest/v1": longest{}}
	r := newRig(t, g)
	runID := r.begin(`{}`)
	r.rest()
	reader := workflows.NewReader(nil, &seen{})
	err := r.tail.Replay(r.ctx, r.thread, runID, reader)
	var missing *pregel.UnknownReducerError
	if !errors.As(err, &missing) || missing.Reducer != "tests.longest/v1" || !strings.Contains(err.Error(), "the program that has the graph") {
		t.Errorf("without its reducer the run reads as %v", err)
	}
	for _, want := range []string{r.thread, runID} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if err := r.tail.Replay(r.ctx, r.thread, runID, workflows.NewReader(g, &seen{})); err != nil {
		t.Error(err)
	}
}
