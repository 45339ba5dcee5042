package thread_test

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/job"
	"superstep.dev/job/leader"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/archive"
	"superstep.dev/thread/storage"
)

// ended waits until the server's index knows that threads have ended, and returns a moment behind that.
func (e *erasing) ended(threads ...string) (before time.Time) {
	e.T.Helper()
	require.EventuallyWithT(e.T, func(c *assert.CollectT) {
		before = time.Now()
		r, err := e.Prune(e.T.Context(), thread.PruneRequest{Before: before, DryRun: true})
		assert.NoError(c, err)
		for _, id := range threads {
			assert.Contains(c, prunedIn(r), id)
		}
	}, 2*time.Minute, 50*time.Millisecond)
	return before
}

func prunedIn(r thread.Pruning) (ids []string) {
	for _, p := range r.Threads {
		ids = append(ids, p.Thread)
	}
	slices.Sort(ids)
	return ids
}

// archivedClient is a client over an archive, which is closed with the test.
func archivedClient(t *testing.T, place string, cfg superstep.ClientConfig) *superstep.Client {
	t.Helper()
	a, err := archive.Open(place)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	c, err := a.Client(client.Options{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	cfg.Storage = a.Storage()
	over, err := superstep.NewClient(c, cfg)
	require.NoError(t, err)
	return over
}

// looked is all that a client shows of a thread.
type looked struct {
	View       thread.View
	State      thread.StateView
	History    []thread.CheckpointView
	Effects    thread.EffectsView
	Checkpoint thread.CheckpointRecord
}

func lookAt(t *testing.T, c *superstep.Client, id string) (l looked) {
	t.Helper()
	var err error
	l.View, err = c.Show(t.Context(), id)
	require.NoError(t, err)
	l.View.Expires = time.Time{} // an archive expires never
	l.State, err = c.State(t.Context(), thread.StateRequest{Thread: id})
	require.NoError(t, err)
	l.History, err = c.History(t.Context(), thread.HistoryRequest{Thread: id, Values: true})
	require.NoError(t, err)
	l.Effects, err = c.Effects(t.Context(), thread.EffectsRequest{Thread: id})
	require.NoError(t, err)
	l.Checkpoint, err = c.Checkpoint(t.Context(), thread.CheckpointRequest{Thread: id})
	require.NoError(t, err)
	return l
}

// TestPrunedThreadsAreRead: what has ended before a moment is archived and erased; when server and storage are gone, the archive shows
// of it what they showed. What runs or waits stays, as does what ended later.
func TestPrunedThreadsAreRead(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	stop := e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	const marker = "marker-of-a-pruned-thread"
	mine, stopped, waits := g.Thread(e.Client, "mine/1"), g.Thread(e.Client, "stopped"), g.Thread(e.Client, "waits")
	turn(t, mine, marker, "an answer")
	turn(t, mine, marker+said(200_000, 1), said(30_000, 2))
	turn(t, waits, marker[:3], "an answer")
	for _, th := range []*superstep.Thread[rig.Counter]{stopped, waits} {
		_, err := th.Invoke(t.Context(), rig.Wrote("a word"))
		require.NoError(t, err)
	}
	require.NoError(t, e.Temporal.TerminateWorkflow(t.Context(), "stopped", "", "enough"))
	before := e.ended("mine/1", "stopped")
	turn(t, g.Thread(e.Client, "later"), "a word", "an answer")
	was, wasStopped := lookAt(t, e.Client, "mine/1"), lookAt(t, e.Client, "stopped")

	dir := filepath.Join(t.TempDir(), "archives")
	dry, err := e.Prune(t.Context(), thread.PruneRequest{Before: before, DryRun: true, Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, []string{"mine/1", "stopped"}, prunedIn(dry))
	assert.NoDirExists(t, dir)
	none, err := e.Prune(t.Context(), thread.PruneRequest{Before: before, DryRun: true, Graph: "another"})
	require.NoError(t, err)
	assert.Empty(t, none.Threads)
	report, err := e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, prunedIn(dry), prunedIn(report))
	for _, p := range report.Threads {
		assert.FileExists(t, p.Archive)
		assert.FileExists(t, p.Archive+".erased.json")
		assert.NotZero(t, p.Erasure.Checked)
		_, err := e.Show(t.Context(), p.Thread)
		require.ErrorIs(t, err, thread.ErrNotFound)
	}
	again, err := e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	require.NoError(t, err)
	assert.Empty(t, again.Threads)
	for _, id := range []string{"waits", "later"} {
		_, err := e.Show(t.Context(), id)
		require.NoError(t, err)
	}

	copies := t.TempDir()
	require.NoError(t, os.CopyFS(copies, os.DirFS(dir)))
	erased, err := e.Erase(t.Context(), thread.EraseRequest{Thread: "mine/1", Archives: copies})
	require.NoError(t, err)
	require.Len(t, erased.Archives, 1, "all that is left")
	assert.Len(t, erased.Archives[0].SHA256, 64)
	left, err := filepath.Glob(filepath.Join(copies, "mine*"))
	require.NoError(t, err)
	assert.Empty(t, left)

	stop()
	require.NoError(t, e.server.Stop())
	require.NoError(t, e.server.Vacuum())
	assert.Empty(t, filesWith(t, e.dir, marker), "neither the database nor the storage has it")
	require.NoError(t, os.RemoveAll(e.dir))
	assert.NotEmpty(t, historiesIn(t, dir))
	over := archivedClient(t, dir, superstep.ClientConfig{})
	assert.Equal(t, was, lookAt(t, over, "mine/1"))
	wasStopped.View.Durability = "" // a worker said so
	assert.Equal(t, wasStopped, lookAt(t, over, "stopped"))
	listed, err := over.List(t.Context(), thread.ListQuery{})
	require.NoError(t, err)
	assert.Len(t, listed, 2)
	_, err = over.Show(t.Context(), "waits")
	require.ErrorIs(t, err, thread.ErrNotFound)
	_, err = g.Thread(over, "mine/1").Invoke(t.Context(), rig.Wrote("more"))
	require.ErrorIs(t, err, thread.ErrNoWorker)
	require.ErrorContains(t, err, "archived")
}

// TestOneAtATimePrunesIntoADirectory: a second call would prove only what the first left it to remove. It is told so, and goes on behind it.
func TestOneAtATimePrunesIntoADirectory(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	turn(t, g.Thread(e.Client, "mine"), "a word", "an answer")
	before, dir := e.ended("mine"), filepath.Join(t.TempDir(), "archives")
	var meanwhile error
	_, err := e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir, Done: func(thread.Pruned) {
		_, meanwhile = e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	}})
	require.NoError(t, err)
	require.ErrorIs(t, meanwhile, thread.ErrBadInput)
	require.ErrorContains(t, meanwhile, "another process archives into it")
	_, err = e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	require.NoError(t, err)
}

// TestAPrunedJobIsRead: with its attempts, and with its answer, which lies in the histories of those.
func TestAPrunedJobIsRead(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	l, err := leader.New("pruner", rig.Planner(func(context.Context, job.PlanRequest) (job.Draft, error) {
		return job.Draft{SubJobs: []job.DraftSubJob{{ID: "1", Goal: "one", Expert: "clerk"}, {ID: "2", Goal: "two", Expert: "clerk", Dependencies: []string{"1"}}}}, nil
	}), leader.NewExpert("clerk", "Says something.", func(_ context.Context, a job.Assignment) (job.WorkflowMessage, error) {
		return job.WorkflowMessage{Status: job.Success, Output: a.Goal + said(50_000, 1)}, nil
	}))
	require.NoError(t, err)
	e.work(superstep.WorkerConfig{Leaders: []superstep.Leader{l}})
	_, err = e.SubmitJob(t.Context(), thread.SubmitJob{Leader: "pruner", Job: job.Job{ID: "r-3", Goal: "both"}})
	require.NoError(t, err)
	was, err := e.JobAnswer(t.Context(), "r-3")
	require.NoError(t, err)
	dir := t.TempDir()
	report, err := e.Prune(t.Context(), thread.PruneRequest{Before: e.ended("job/r-3"), Dir: dir})
	require.NoError(t, err)
	require.Equal(t, []string{"job/r-3"}, prunedIn(report), "attempts go with their job")
	assert.Len(t, report.Threads[0].Erasure.Threads, 3)
	_, err = e.Job(t.Context(), "r-3")
	require.ErrorIs(t, err, thread.ErrNotFound)

	over := archivedClient(t, report.Threads[0].Archive, superstep.ClientConfig{})
	got, err := over.JobAnswer(t.Context(), "r-3")
	require.NoError(t, err)
	assert.Equal(t, was.Parts, got.Parts)
	attempt, err := over.Show(t.Context(), report.Threads[0].Erasure.Threads[0])
	require.NoError(t, err)
	assert.Equal(t, thread.StatusFinished, attempt.Status)
}

// TestAPruneThatIsInterrupted at every removal goes on when it is repeated: the archive that is there is taken, nothing is removed that
// is not in it, and in the end it has all runs and a proof.
func TestAPruneThatIsInterrupted(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	th := g.Thread(e.Client, "mine")
	for i := range 4 {
		turn(t, th, said(20_000, uint64(i)), "and")
	}
	before, dir := e.ended("mine"), t.TempDir()
	was := lookAt(t, e.Client, "mine")
	interrupted := 0
	for {
		ctx, cancel := context.WithCancelCause(t.Context())
		report, err := e.Prune(ctx, thread.PruneRequest{Before: before, Dir: dir, Removed: func(thread.Removal) { cancel(errors.New("interrupted")) }})
		cancel(nil)
		if err == nil {
			require.Len(t, report.Threads, 1)
			break
		}
		require.ErrorContains(t, err, "interrupted")
		interrupted++
		require.Less(t, interrupted, 100)
	}
	assert.GreaterOrEqual(t, interrupted, 5)
	files, err := filepath.Glob(filepath.Join(dir, "mine.*"))
	require.NoError(t, err)
	assert.Len(t, files, 2, "one archive, one proof: %v", files)
	assert.Equal(t, was, lookAt(t, archivedClient(t, dir, superstep.ClientConfig{}), "mine"))
	lie, err := e.values.List(t.Context(), storage.SpaceOf("default", "mine"))
	require.NoError(t, err)
	assert.Empty(t, lie)
}

// TestAThreadThatCannotBeArchivedWhole stays as it is: a value that its history refers to is not there any more. Others are pruned, and
// when the value is back, so is this one.
func TestAThreadThatCannotBeArchivedWhole(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	turn(t, g.Thread(e.Client, "whole"), said(100_000, 1), "an answer")
	turn(t, g.Thread(e.Client, "broken"), said(100_000, 2), "an answer")
	lie, err := e.values.List(t.Context(), storage.SpaceOf("default", "broken"))
	require.NoError(t, err)
	require.NotEmpty(t, lie)
	name := lie[0].Name
	path, away := filepath.Join(e.values.Where(), name[:2], name), filepath.Join(t.TempDir(), "away")
	require.NoError(t, os.Rename(path, away))
	before, dir := e.ended("whole", "broken"), t.TempDir()
	// Another process: this one has the value in memory, which is no place to archive it from.
	report, err := e.another().Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	require.ErrorIs(t, err, thread.ErrStorage)
	assert.Equal(t, []string{"whole"}, prunedIn(report))
	require.Len(t, report.Failed, 1)
	assert.Contains(t, report.Failed[0].Error, name)
	files, err := filepath.Glob(filepath.Join(dir, "broken*"))
	require.NoError(t, err)
	assert.Empty(t, files)
	_, err = e.Temporal.DescribeWorkflowExecution(t.Context(), "broken", "")
	require.NoError(t, err)

	require.NoError(t, os.Rename(away, path))
	was := lookAt(t, e.Client, "broken")
	report, err = e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, []string{"broken"}, prunedIn(report))
	assert.Equal(t, was, lookAt(t, archivedClient(t, dir, superstep.ClientConfig{}), "broken"))
}

// another is a client of the same server and storage with a memory of its own.
func (e *erasing) another() *superstep.Client {
	e.T.Helper()
	values, err := storage.Files(e.values.Where(), storage.Options{})
	require.NoError(e.T, err)
	c, err := superstep.NewClient(e.Temporal, superstep.ClientConfig{TaskQueue: e.Queue, Storage: values})
	require.NoError(e.T, err)
	return c
}

// TestAThreadThatGoesOnWhileItIsPruned keeps its values and the run that began; what had gone by then is in the archive. When it has ended
// again it is pruned, and both archives together have all of its past.
func TestAThreadThatGoesOnWhileItIsPruned(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	g := chatting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}})
	th := g.Thread(e.Client, "mine")
	turn(t, th, "one", said(50_000, 1))
	turn(t, th, "two", said(50_000, 2))
	before, dir := e.ended("mine"), t.TempDir()
	began := false
	report, err := e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir, Removed: func(gone thread.Removal) {
		if !began && gone.Kind == thread.RemovedRun {
			began = true
			_, err := th.Invoke(t.Context(), rig.Wrote("three"), superstep.WithKeepOpen(-1))
			assert.NoError(t, err)
		}
	}})
	require.ErrorIs(t, err, thread.ErrRunning)
	assert.Empty(t, report.Threads)
	_, err = th.Resume(t.Context(), said(50_000, 3))
	require.NoError(t, err)
	log := rig.LogOf(t, th)
	assert.Len(t, log, 6)
	_, err = e.Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	require.NoError(t, err, "it has ended too late for that")
	report, err = e.Prune(t.Context(), thread.PruneRequest{Before: e.ended("mine"), Dir: dir})
	require.NoError(t, err)
	assert.Equal(t, []string{"mine"}, prunedIn(report))
	files, err := filepath.Glob(filepath.Join(dir, "mine.*"))
	require.NoError(t, err)
	assert.Len(t, files, 4, "two archives, two proofs: %v", files)
	over := archivedClient(t, dir, superstep.ClientConfig{})
	assert.Equal(t, log, rig.LogOf(t, g.Thread(over, "mine")))
	views, err := over.History(t.Context(), thread.HistoryRequest{Thread: "mine"})
	require.NoError(t, err)
	inputs := 0
	for _, v := range views {
		if v.Source == "input" {
			inputs++
		}
	}
	assert.Equal(t, 3, inputs, "the past of all three runs")
}

// TestAnArchiveIsEncryptedAsTheServerIs: it has what the server had, so who has no keys reads names and times, and is told which key is
// missing.
func TestAnArchiveIsEncryptedAsTheServerIs(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	keys := newKeyFile(t, "prod-1").keys().Converter(nil)
	var err error
	e.Client, err = superstep.NewClient(e.Temporal, superstep.ClientConfig{TaskQueue: e.Queue, Storage: e.values, DataConverter: keys})
	require.NoError(t, err)
	g := chatting()
	e.work(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, DataConverter: keys})
	const marker = "marker-of-a-secret"
	turn(t, g.Thread(e.Client, "mine"), marker+said(100_000, 1), marker)
	was, dir := lookAt(t, e.Client, "mine"), t.TempDir()
	_, err = e.Prune(t.Context(), thread.PruneRequest{Before: e.ended("mine"), Dir: dir})
	require.NoError(t, err)
	for _, lie := range historiesIn(t, dir) {
		assert.NotContains(t, lie, marker)
	}
	assert.Empty(t, filesWith(t, dir, marker))
	assert.Equal(t, was, lookAt(t, archivedClient(t, dir, superstep.ClientConfig{DataConverter: keys}), "mine"))
	_, err = archivedClient(t, dir, superstep.ClientConfig{}).Show(t.Context(), "mine")
	require.ErrorContains(t, err, "prod-1")
	other := newKeyFile(t, "other").keys().Converter(nil)
	_, err = archivedClient(t, dir, superstep.ClientConfig{DataConverter: other}).State(t.Context(), thread.StateRequest{Thread: "mine"})
	require.ErrorContains(t, err, "prod-1")
}

// historiesIn are the histories in the archives of a directory, as they are without compression.
func historiesIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.archive"))
	require.NoError(t, err)
	for _, path := range paths {
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		for in := tar.NewReader(file); ; {
			head, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			if !strings.HasSuffix(head.Name, ".zst") {
				continue
			}
			z, err := zstd.NewReader(in)
			require.NoError(t, err)
			text, err := io.ReadAll(z)
			require.NoError(t, err)
			z.Close()
			all = append(all, string(text))
		}
	}
	require.NotEmpty(t, all)
	return all
}
