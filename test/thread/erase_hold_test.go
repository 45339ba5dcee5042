package thread_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// noting is a graph that ends by itself, with what it was given twice.
func noting() *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter]("noting")
	g.AddNode("note", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.Log.Append(s.Log.Get()[len(s.Log.Get())-1])
		return s, nil
	})
	g.AddEdge(superstep.Start, "note")
	return g.MustCompile()
}

// TestARunThatBeginsDuringAnErasure: at each point of an erasure a run either begins, with all its values, and the erasure says so and goes
// no further, or is refused with an error that says why; and the thread can be begun anew right behind it.
func TestARunThatBeginsDuringAnErasure(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := noting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	th := g.Thread(e.Client, "mine")
	begin := func(large string) error {
		got, err := th.Invoke(t.Context(), rig.Wrote(large), superstep.WithKeepOpen(-1))
		if err == nil {
			assert.Equal(t, thread.StatusFinished, got.Status)
		}
		return err
	}
	for i := range uint64(2) {
		require.NoError(t, begin(said(100_000, i)))
	}
	large, tries := said(100_000, 7), 0
	_, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Removed: func(thread.Removal) {
		if tries++; tries == 1 { // a run has gone, not the newest
			require.NoError(t, begin(large))
		}
	}})
	require.ErrorIs(t, err, thread.ErrRunning)
	log := rig.LogOf(t, th)
	require.Equal(t, []string{large, large}, log[len(log)-2:], "all that it had is there")

	v, err := e.Show(t.Context(), "mine")
	require.NoError(t, err)
	refused := 0
	proof, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Removed: func(r thread.Removal) {
		if r.Kind == thread.RemovedValue || r.Name == v.RunID {
			assert.ErrorIs(t, begin(large), thread.ErrErasing, r.Name)
			refused++
		}
	}})
	require.NoError(t, err)
	assert.Equal(t, proof.Values+1, refused)
	require.NoError(t, begin(large), "its name is free again")
	assert.Equal(t, []string{large, large}, rig.LogOf(t, th))
}

// TestRunsBesideErasures: runs that begin again and again, beside erasures that come again and again, are refused or whole.
func TestRunsBesideErasures(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := noting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	var stop atomic.Bool
	var whole atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		th := g.Thread(e.Client, "mine")
		for n := uint64(0); !stop.Load(); n++ {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			got, err := th.Invoke(ctx, rig.Wrote(said(60_000, n)), superstep.WithKeepOpen(-1))
			cancel()
			switch {
			case err == nil:
				whole.Add(1)
				assert.Equal(t, thread.StatusFinished, got.Status)
			case errors.Is(err, thread.ErrErasing), errors.Is(err, thread.ErrRunning), errors.Is(err, thread.ErrNotFound): // as the last run went
			default:
				assert.NoError(t, err)
			}
		}
	}()
	erased := 0
	for began := time.Now(); erased == 0 || whole.Load() == 0 || time.Since(began) < 4*time.Second; {
		_, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
		if err == nil {
			erased++
		} else {
			require.ErrorIs(t, err, thread.ErrRunning)
		}
	}
	stop.Store(true)
	<-done
	assert.NotZero(t, whole.Load())
	t.Logf("%d runs were whole, %d erasures", whole.Load(), erased)
}

// TestAnEraserThatStandsStill while it removes values is taken over from after a moment, in which nobody can begin the thread, and
// removes nothing any more when it goes on.
func TestAnEraserThatStandsStill(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := noting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	th := g.Thread(e.Client, "mine")
	_, err := th.Invoke(t.Context(), rig.Wrote(said(300_000, 1)), superstep.WithKeepOpen(-1))
	require.NoError(t, err)
	stands, goesOn, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		still := true
		_, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Removed: func(r thread.Removal) {
			if r.Kind == thread.RemovedValue && still {
				still = false
				close(stands)
				<-goesOn
			}
		}})
		ended <- err
	}()
	<-stands
	_, err = th.Invoke(t.Context(), rig.Wrote("another"))
	require.ErrorIs(t, err, thread.ErrErasing)
	_, err = e.Show(t.Context(), "mine")
	require.ErrorIs(t, err, thread.ErrErasing)
	proof, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
	require.NoError(t, err)
	assert.NotZero(t, proof.Values)
	large := said(300_000, 1) // what the other one is about to remove
	_, err = th.Invoke(t.Context(), rig.Wrote(large))
	require.NoError(t, err)
	close(goesOn)
	require.ErrorIs(t, <-ended, thread.ErrErasing)
	assert.Equal(t, []string{large, large}, rig.LogOf(t, th))
}

// holdThatIsOver gives a thread a hold as an eraser leaves it that was killed, after its time.
func (e *erasing) holdThatIsOver(id string) {
	e.T.Helper()
	run, err := e.Temporal.ExecuteWorkflow(e.T.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: protocol.ErasureWorkflow,
		WorkflowExecutionTimeout: time.Second}, protocol.ErasureWorkflow)
	require.NoError(e.T, err)
	require.ErrorContains(e.T, run.Get(e.T.Context(), nil), "timeout")
}

// TestAHoldThatIsOver keeps nobody from the name of a thread or a job, whoever begins it.
func TestAHoldThatIsOver(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := noting()
	l, err := leader.New("eraser", rig.Planner(func(context.Context, job.PlanRequest) (job.Draft, error) {
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: "say", Expert: "clerk"}}}, nil
	}), leader.NewExpert("clerk", "Says something.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		return job.WorkflowMessage{Status: job.Success, Output: "said"}, nil
	}))
	require.NoError(t, err)
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Leaders: []superstep.Leader{l}})
	input := []byte(`{"log": ["a word"]}`)
	begins := map[string]func(id string) error{
		"invoked": func(id string) error {
			_, err := g.Thread(e.Client, id).Invoke(t.Context(), rig.Wrote("a word"))
			return err
		},
		"started": func(id string) error {
			_, err := e.Start(t.Context(), thread.StartRequest{Graph: "noting", Thread: id, Input: input})
			return err
		},
		"new": func(id string) error {
			_, err := e.Start(t.Context(), thread.StartRequest{Graph: "noting", Thread: id, NewThread: true, Input: input})
			return err
		},
		job.WorkflowID("r-9"): func(string) error {
			_, err := e.SubmitJob(t.Context(), thread.SubmitJob{Leader: "eraser", Job: job.Job{ID: "r-9", Goal: "say"}})
			return err
		},
	}
	var all errgroup.Group
	for id, begin := range begins {
		e.holdThatIsOver(id)
		_, err := e.Show(t.Context(), id)
		require.ErrorIs(t, err, thread.ErrNotFound, id)
		all.Go(func() error {
			if err := begin(id); err != nil {
				return err
			}
			return e.Temporal.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil)
		})
	}
	require.NoError(t, all.Wait())
}

// stopper is called right before a call leaves this process, when what it carries is stored.
type stopper func(context.Context)

// starting marks the call that starts the thread.
type starting struct{}

// TagRPC implements stats.Handler.
func (s stopper) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	s(ctx)
	return ctx
}

// HandleRPC implements stats.Handler.
func (stopper) HandleRPC(context.Context, stats.RPCStats) {}

// TagConn implements stats.Handler.
func (stopper) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (stopper) HandleConn(context.Context, stats.ConnStats) {}

// TestAStartThatArrivesBehindAnErasure, with values that went with those of the thread, has begun nothing, is told so, and can be repeated.
func TestAStartThatArrivesBehindAnErasure(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := noting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	arrives, goesOn := make(chan struct{}), make(chan struct{})
	var late atomic.Bool
	c, err := client.Dial(client.Options{HostPort: e.server.Address(), Logger: rig.NoLog{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
			invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			if start, ok := req.(*workflowservice.StartWorkflowExecutionRequest); ok && start.GetWorkflowId() == "mine" {
				ctx = context.WithValue(ctx, starting{}, true)
			}
			return invoke(ctx, method, req, reply, cc, opts...)
		}), grpc.WithStatsHandler(stopper(func(ctx context.Context) {
			if ctx.Value(starting{}) != nil && late.CompareAndSwap(true, false) {
				close(arrives)
				<-goesOn
			}
		}))}}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	values, err := storage.Files(e.dir+"/values", storage.Options{})
	require.NoError(t, err)
	slow, err := superstep.NewClient(c, superstep.ClientConfig{TaskQueue: e.Queue, Storage: values})
	require.NoError(t, err)
	large := said(60_000, 2)
	start := func() (thread.View, error) {
		return slow.Start(t.Context(), thread.StartRequest{Graph: "noting", Thread: "mine", NewThread: true, Input: []byte(`{"log": ["` + large + `"]}`)})
	}
	late.Store(true)
	ended := make(chan error)
	go func() {
		_, err := start()
		ended <- err
	}()
	<-arrives
	_, err = e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
	require.NoError(t, err)
	close(goesOn)
	require.ErrorIs(t, <-ended, thread.ErrErasing)
	_, err = e.Show(t.Context(), "mine")
	require.ErrorIs(t, err, thread.ErrNotFound)
	_, err = start()
	require.NoError(t, err)
	_, err = slow.Wait(t.Context(), "mine")
	require.NoError(t, err)
	assert.Equal(t, []string{large, large}, rig.LogOf(t, g.Thread(e.Client, "mine")))
}
