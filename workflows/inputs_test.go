package workflows_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev"
	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// TestHistoryGrowsWithWhatChanges: 1 MiB of state through 200 supersteps is sent once, in the run's input and again in
// its end.
func TestHistoryGrowsWithWhatChanges(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	steps := fewer(100, 200)
	r := newRig(t)
	big := large(size)
	r.serve(superstep.WorkerConfig{}, loopGraph("grows", readsBig(big)))
	run := r.looped("grows", steps, big)
	if result := r.finished(run); result.Step != steps {
		t.Fatalf("the run ended at step %d", result.Step)
	}
	got := r.historySize(run)
	t.Logf("%d supersteps that read %d bytes: %d bytes of history, %d a superstep without the input and the end",
		steps, size, got, (got-2*size)/steps)
	if most := 2*size + steps*4<<10 + 64<<10; got > most {
		t.Errorf("the history has %d bytes, want at most %d", got, most)
	}
}

// TestAListGrowsByWhatIsAppended: 500 supersteps append 1 KiB each, and each reads all there is; with -short it is 150.
func TestAListGrowsByWhatIsAppended(t *testing.T) {
	t.Parallel()
	const size = 1 << 10
	steps := fewer(150, 500)
	r := newRig(t)
	piece := strings.Repeat("x", size-3)
	r.serve(superstep.WorkerConfig{}, loopGraph("appends", func(s graphadapter.State, n int) ([]any, error) {
		if want := n*size + 1; n > 0 && len(s["log"].Value()) != want {
			return nil, fmt.Errorf("in superstep %d the node reads %d bytes, want %d", n+1, len(s["log"].Value()), want)
		}
		return []any{"log", []string{piece}}, nil
	}))
	run := r.looped("appends", steps, nil)
	if result := r.finished(run); result.Step != steps || len(result.State) < steps*size {
		t.Fatalf("the run ended at step %d with %d bytes", result.Step, len(result.State))
	}
	got := r.historySize(run)
	t.Logf("%d supersteps that append %d bytes to what they read: %d bytes of history, by value it would be %d more",
		steps, size, got, steps*(steps-1)/2*size)
	if most := 2*steps*size + steps*4<<10; got > most {
		t.Errorf("the history has %d bytes, want at most %d", got, most)
	}
}

// TestAWorkerThatSentNothingFindsEverything: the worker that decides and the worker that runs the nodes are two, so
// every value is found by a replay; with a cache that keeps nothing, in every superstep.
func TestAWorkerThatSentNothingFindsEverything(t *testing.T) {
	t.Parallel()
	for name, inputBytes := range map[string]int{"with a cache": 0, "with a cache that is too small": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			big := large(1 << 20)
			g := loopGraph("cold", readsBig(big))
			cold := runs
			cold.InputBytes = inputBytes
			r.serve(decides, g)
			r.serve(cold, g)
			if result := r.finished(r.looped("cold", 10, big)); result.Step != 10 {
				t.Errorf("the run ended at step %d", result.Step)
			}
		})
	}
}

// TestAReplayReadsWhatACodecWrote: payloads may be compressed or encrypted by the Temporal client's data converter.
func TestAReplayReadsWhatACodecWrote(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	coded := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true}))
	c, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: silent{}, DataConverter: coded})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	r.client = c
	big := large(1 << 20)
	g := loopGraph("coded", readsBig(big))
	cold := runs
	cold.DataConverter = coded
	r.serve(decides, g)
	r.serve(cold, g)
	run := r.looped("coded", 3, big)
	if result := r.finished(run); result.Step != 3 {
		t.Errorf("the run ended at step %d", result.Step)
	}
	if size := r.historySize(run); size > 200<<10 {
		t.Errorf("the history has %d bytes: it was not compressed", size)
	}
}

// TestWorkersTakeTurns: a list that grows in every superstep is read by whichever of two workers is given the task.
func TestWorkersTakeTurns(t *testing.T) {
	t.Parallel()
	const steps = 40
	r := newRig(t)
	piece := strings.Repeat("x", 8<<10)
	var ran [2]atomic.Int32
	of := func(worker int) *graphadapter.Graph {
		return loopGraph("turns", func(s graphadapter.State, n int) ([]any, error) {
			ran[worker].Add(1)
			var log []string
			if err := json.Unmarshal(append([]byte(nil), s["log"].Value()...), &log); n > 0 && (err != nil || len(log) != n || log[n-1] != piece) {
				return nil, fmt.Errorf("in superstep %d the node reads %d pieces: %v", n+1, len(log), err)
			}
			return []any{"log", []string{piece}}, nil
		})
	}
	r.serve(decides, of(0))
	for worker, name := range []string{"one", "the other"} {
		cfg := runs
		cfg.Options.Identity = name
		r.serve(cfg, of(worker))
	}
	var waiting []string // for tasks: one that comes late would find all of them done
	await(t, "both workers", func() bool {
		described, err := r.client.DescribeTaskQueue(r.ctx, r.queue, enumspb.TASK_QUEUE_TYPE_ACTIVITY)
		waiting = nil
		for _, p := range described.GetPollers() {
			waiting = append(waiting, p.GetIdentity())
		}
		return err == nil && slices.Contains(waiting, "one") && slices.Contains(waiting, "the other")
	}, func() any { return waiting })
	if result := r.finished(r.looped("turns", steps, nil)); result.Step != steps {
		t.Errorf("the run ended at step %d", result.Step)
	}
	t.Logf("the workers ran %d and %d tasks", ran[0].Load(), ran[1].Load())
	if ran[0].Load() == 0 || ran[1].Load() == 0 {
		t.Error("one worker ran all tasks")
	}
}

// TestOneReplayForAWholeSuperstep: 500 tasks of one superstep read the same 1 MiB, on a worker that never saw it; with -short it
// is 100.
func TestOneReplayForAWholeSuperstep(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	wide := fewer(100, 500)
	r := newRig(t)
	big := large(size)
	nodes, names := map[string]graphadapter.Node{}, []string{}
	var edges []pregel.Edge
	for i := range wide {
		name := fmt.Sprintf("n%03d", i)
		names, edges = append(names, name), append(edges, to(pregel.Start, name))
		nodes[name] = graphadapter.Node{Run: func(_ context.Context, in graphadapter.Input) (pregel.Command, error) {
			if !bytes.Equal(in.State["big"].Value(), big) {
				return pregel.Command{}, fmt.Errorf("%s reads %d bytes", name, len(in.State["big"].Value()))
			}
			return writes("log", []string{name}), nil
		}}
	}
	g := graph("wide", nodes, names, edges...)
	g.Spec.Channels = append(g.Spec.Channels, pregel.ChannelSpec{Name: "big", Kind: pregel.KindLast})
	var replays atomic.Int32
	rebuild := r.replaying(g)
	r.serve(decides, g)
	r.counted(g, func(ctx context.Context, run activities.Run, pass func(pregel.Value)) error {
		replays.Add(1)
		return rebuild(ctx, run, pass)
	})
	run := r.start(testserver.Queue(t), protocol.GraphInput{Graph: "wide",
		Input: protocol.Input{Value: pregel.Value(`{"big":` + string(big) + `}`)}})
	r.finished(run)
	state, err := r.state(run.GetID())
	if err != nil {
		t.Fatal(err)
	}
	var log []string
	if err := json.Unmarshal(state.Snapshot.Values["log"], &log); err != nil || len(log) != wide {
		t.Errorf("%d tasks wrote: %v", len(log), err)
	}
	if n := replays.Load(); n != 1 {
		t.Errorf("the run was replayed %d times for %d tasks", n, wide)
	}
}

// TestAWorkerThatCannotFindGivesBack: the task waits for a worker that can, the reason is there to be read, and the
// node never runs with anything else.
func TestAWorkerThatCannotFindGivesBack(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	big := large(64 << 10)
	g := loopGraph("lost", readsBig(big))
	r.serve(decides, g)
	r.counted(g, func(_ context.Context, _ activities.Run, pass func(pregel.Value)) error {
		pass(large(64<<10 - 1))
		return nil
	})
	run := r.looped("lost", 2, big)
	await(t, "the reason", func() bool {
		d, err := r.client.DescribeWorkflowExecution(r.ctx, run.GetID(), run.GetRunID())
		if err != nil || len(d.GetPendingActivities()) == 0 {
			return false
		}
		failure := d.GetPendingActivities()[0].GetLastFailure()
		return failure.GetApplicationFailureInfo().GetType() == graphadapter.NodeInputType &&
			strings.Contains(failure.GetMessage(), `of graph "lost" read`) && strings.Contains(failure.GetMessage(), "(thread "+run.GetID())
	}, func() any { return nil })
	r.serve(runs, g)
	if result := r.finished(run); result.Step != 2 {
		t.Errorf("the run ended at step %d", result.Step)
	}
}
