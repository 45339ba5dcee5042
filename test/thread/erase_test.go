package thread_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// filesWith are the files below a directory that hold a marker.
func filesWith(t *testing.T, dir, marker string) (found []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(marker)) {
			found = append(found, path)
		}
		return err
	}))
	return found
}

// chatting is a graph of which each run says what it is given, asks, and says the answer.
func chatting() *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter]("chatting")
	g.AddNode("ask", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		answer, err := superstep.Interrupt[string](ctx, "what else, after "+s.Log.Get()[0]+"?")
		s.Log.Append(answer)
		return s, err
	})
	g.AddEdge(superstep.Start, "ask")
	return g.MustCompile()
}

// turn runs a thread once, with what is said and what is answered.
func turn(t *testing.T, th *superstep.Thread[rig.Counter], says, answers string) {
	t.Helper()
	got, err := th.Invoke(t.Context(), rig.Wrote(says), superstep.WithKeepOpen(-1))
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, got.Status)
	got, err = th.Resume(t.Context(), answers)
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
}

// erasing is a server of a test's own, with what is kept of its threads below one directory.
type erasing struct {
	*rig.Server
	server *testserver.Server
	dir    string
	values *storage.Storage
}

func newErasing(t *testing.T) *erasing {
	t.Helper()
	e := &erasing{dir: t.TempDir()}
	e.server = testserver.Start(t, testserver.Options{DB: filepath.Join(e.dir, "server.db")})
	c, err := client.Dial(client.Options{HostPort: e.server.Address(), Logger: rig.NoLog{}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	e.values, err = storage.Files(filepath.Join(e.dir, "values"), storage.Options{})
	require.NoError(t, err)
	e.Server = &rig.Server{T: t, Temporal: c, Queue: "erasing"}
	e.Client, err = superstep.NewClient(c, superstep.ClientConfig{TaskQueue: e.Queue, Storage: e.values})
	require.NoError(t, err)
	return e
}

func (e *erasing) work(cfg superstep.WorkerConfig) (stop func()) {
	cfg.Storage = e.values
	return e.WorkWith(cfg)
}

// TestAnErasedThreadIsGone: what a thread was given, said and asked is in no file of the server's database once that is vacuumed, and not
// in the storage; what a fork of it has stays there and can be gone on from; a thread of the same name begins anew.
func TestAnErasedThreadIsGone(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	stop := e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	const small, answer, kept = "marker-of-a-small-value", "marker-of-an-answer", "marker-that-stays"
	large := "marker-of-a-large-value " + said(200_000, 1)
	mine, other := g.Thread(e.Client, "mine"), g.Thread(e.Client, "other")
	turn(t, mine, small, answer)
	turn(t, mine, large, answer+said(30_000, 2))
	turn(t, other, kept, kept+said(100_000, 3))
	require.NoError(t, e.server.Stop())
	require.NotEmpty(t, filesWith(t, e.dir, small), "the search finds what is there")
	require.NoError(t, e.server.Restart())

	space, others := storage.SpaceOf("default", "mine"), storage.SpaceOf("default", "other")
	lie, err := e.values.List(t.Context(), space)
	require.NoError(t, err)
	require.NotEmpty(t, lie)
	var told []thread.Removal
	proof, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Removed: func(r thread.Removal) { told = append(told, r) }})
	require.NoError(t, err)
	assert.Len(t, proof.Runs, 2)
	assert.Equal(t, len(lie), proof.Values)
	assert.Len(t, told, len(proof.Runs)+proof.Values)
	assert.Equal(t, thread.RemovedValue, told[len(told)-1].Kind, "values go when no run needs them")
	for _, run := range proof.Runs {
		assert.Len(t, run.SHA256, 64)
		assert.Greater(t, run.Events, 5)
	}
	assert.NotZero(t, proof.Checked)
	_, err = mine.State(t.Context())
	require.ErrorIs(t, err, thread.ErrNotFound)
	again, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
	require.NoError(t, err)
	assert.Empty(t, again.Runs)
	assert.Zero(t, again.Values)

	assert.Equal(t, []string{kept, kept + said(100_000, 3)}, rig.LogOf(t, other))
	left, err := e.values.List(t.Context(), others)
	require.NoError(t, err)
	assert.NotEmpty(t, left)
	stop()
	require.NoError(t, e.server.Stop())
	require.NoError(t, e.server.Vacuum())
	for _, marker := range []string{small, answer, "marker-of-a-large-value"} {
		assert.Empty(t, filesWith(t, e.dir, marker), marker)
	}
	require.NotEmpty(t, filesWith(t, e.dir, kept))
	require.NoError(t, e.server.Restart())
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	turn(t, mine, large, answer)
	assert.Equal(t, []string{large, answer}, rig.LogOf(t, mine))
	turn(t, other, "and", "on")
}

// TestAnErasureThatIsInterrupted at every point ends, when it is repeated, as one that was not: nothing is found any more.
func TestAnErasureThatIsInterrupted(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	th := g.Thread(e.Client, "mine")
	for i := range 4 {
		turn(t, th, said(20_000, uint64(i)), "and")
	}
	interrupted, removed := 0, 0
	for {
		ctx, cancel := context.WithCancelCause(t.Context())
		proof, err := e.Erase(ctx, thread.EraseRequest{Thread: "mine", Removed: func(thread.Removal) {
			removed++
			cancel(errors.New("interrupted"))
		}})
		cancel(nil)
		if err == nil {
			assert.NotZero(t, proof.Checked)
			break
		}
		interrupted++
		require.Less(t, interrupted, 100)
		assert.Zero(t, proof.Checked)
	}
	assert.GreaterOrEqual(t, interrupted, 5)
	assert.GreaterOrEqual(t, removed, 4+interrupted-5)
	_, err := th.State(t.Context())
	require.ErrorIs(t, err, thread.ErrNotFound)
	left, err := e.values.List(t.Context(), storage.SpaceOf("default", "mine"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestAnErasureWithoutTheStorage is refused where values lie in one, and changes nothing: no history would name them any more. Threads whose
// histories have all of their values are erased.
func TestAnErasureWithoutTheStorage(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	for name, says := range map[string]string{"large": said(200_000, 1), "small": "a word"} {
		turn(t, g.Thread(e.Client, name), says, "and")
	}
	turn(t, g.Thread(e.Client, "large"), "a word", "and") // the values are those of the run before
	without, err := superstep.NewClient(e.Temporal, superstep.ClientConfig{TaskQueue: e.Queue})
	require.NoError(t, err)
	_, err = without.Erase(t.Context(), thread.EraseRequest{Thread: "large", Cancel: true})
	require.ErrorIs(t, err, thread.ErrStorage)
	require.ErrorContains(t, err, `thread "large" is not erased`)
	proof, err := without.Erase(t.Context(), thread.EraseRequest{Thread: "small"})
	require.NoError(t, err)
	assert.Len(t, proof.Runs, 1)

	proof, err = e.Erase(t.Context(), thread.EraseRequest{Thread: "large"})
	require.NoError(t, err)
	assert.Len(t, proof.Runs, 2)
	assert.NotZero(t, proof.Values)
	left, err := e.values.List(t.Context(), storage.SpaceOf("default", "large"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestAnErasureOfAnOpenThread is refused and changes nothing, unless the run is to be cancelled; without a worker it is not ended by
// force. What the audit says can be kept, also when the erasure is repeated.
func TestAnErasureOfAnOpenThread(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	stop := e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	th := g.Thread(e.Client, "mine")
	_, err := th.Invoke(t.Context(), rig.Wrote("a word"))
	require.NoError(t, err)
	_, err = e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
	require.ErrorIs(t, err, thread.ErrRunning)
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, got.Status)

	var kept []approval.Entry
	proof, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Cancel: true, By: "ann", Reason: "they asked for it",
		KeepAudit: func(id string, read func() (approval.Export, error)) error {
			assert.Equal(t, "mine", id)
			x, err := read()
			kept = x.Entries
			return err
		}})
	require.NoError(t, err)
	assert.Equal(t, []string{"mine"}, proof.AuditKept)
	require.Len(t, kept, 1)
	assert.Equal(t, "they asked for it", kept[0].Reason)
	_, err = th.State(t.Context())
	require.ErrorIs(t, err, thread.ErrNotFound)

	_, err = th.Invoke(t.Context(), rig.Wrote("another"))
	require.NoError(t, err)
	_, err = e.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Cancel: true,
		KeepAudit: func(string, func() (approval.Export, error)) error { return errors.New("the disk is full") }})
	require.ErrorContains(t, err, "the disk is full")
	_, err = th.State(t.Context())
	require.NoError(t, err, "nothing was erased")
	stop()
}

// TestAnErasureDuringARun: what a node does is not ended behind its back. Two that are to cancel it first end it once, and both leave
// nothing.
func TestAnErasureDuringARun(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	begun, told := make(chan struct{}, 10), make(chan struct{}, 10)
	b := superstep.NewStateGraph[rig.Counter]("working")
	b.AddNode("works", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		begun <- struct{}{}
		<-ctx.Done()
		told <- struct{}{}
		return s, context.Cause(ctx)
	})
	b.AddEdge(superstep.Start, "works")
	g := b.MustCompile()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	_, err := e.Start(t.Context(), thread.StartRequest{Graph: "working", Thread: "mine", Input: []byte(`{"log": ["a word"]}`)})
	require.NoError(t, err)
	<-begun
	_, err = e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
	require.ErrorIs(t, err, thread.ErrRunning)
	assert.Empty(t, told)
	both := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine", Cancel: true})
			both <- err
		}()
	}
	for range 2 {
		if err := <-both; err != nil { // the other one was first
			_, err = e.Erase(t.Context(), thread.EraseRequest{Thread: "mine"})
			require.NoError(t, err)
		}
	}
	assert.Len(t, told, 1)
	assert.Empty(t, begun)
	_, err = e.Show(t.Context(), "mine")
	require.ErrorIs(t, err, thread.ErrNotFound)
}

// TestAJobIsErasedWithItsAttempts: an attempt is not erased alone.
func TestAJobIsErasedWithItsAttempts(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	const marker = "marker-of-an-attempt"
	l, err := leader.New("eraser", rig.Planner(func(context.Context, job.PlanRequest) (job.Draft, error) {
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: marker, Expert: "clerk"}, {ID: "2", Goal: marker, Expert: "clerk", Dependencies: []string{"1"}}}}, nil
	}), leader.NewExpert("clerk", "Says something.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		return job.WorkflowMessage{Status: job.Success, Output: marker + said(50_000, 1)}, nil
	}))
	require.NoError(t, err)
	stop := e.work(superstep.WorkerConfig{Leaders: []superstep.Leader{l}})
	_, err = e.SubmitJob(t.Context(), thread.SubmitJob{Leader: "eraser", Job: job.Job{ID: "r-3", Goal: marker}})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		v, err := e.Job(t.Context(), "r-3")
		assert.NoError(c, err)
		assert.Equal(c, job.StatusFinished, v.Status)
	}, 2*time.Minute, 50*time.Millisecond)

	attempt := job.AttemptThread("r-3", "1", 1)
	_, err = e.Erase(t.Context(), thread.EraseRequest{Thread: attempt})
	require.ErrorIs(t, err, thread.ErrBadInput)
	proof, err := e.Erase(t.Context(), thread.EraseRequest{Thread: job.WorkflowID("r-3")})
	require.NoError(t, err)
	assert.Len(t, proof.Threads, 3, strings.Join(proof.Threads, " "))
	assert.GreaterOrEqual(t, len(proof.Runs), 3)
	assert.NotZero(t, proof.Values)
	_, err = e.Job(t.Context(), "r-3")
	require.ErrorIs(t, err, thread.ErrNotFound)
	stop()
	require.NoError(t, e.server.Stop())
	require.NoError(t, e.server.Vacuum())
	assert.Empty(t, filesWith(t, e.dir, marker))
}
