package thread_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// talking is a graph of which each turn appends what it is told.
func talking(name string) *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter](name)
	g.AddNode("listen", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.N.Set(s.N.Get() + 1)
		return s, nil
	})
	g.AddEdge(superstep.Start, "listen")
	return g.MustCompile()
}

// process is what another process has of the storage: a memory of its own, with nothing in it.
func (s *shared) process(t *testing.T) *shared {
	t.Helper()
	values, err := storage.Files(s.dir, storage.Options{})
	require.NoError(t, err)
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: s.Queue, Storage: values})
	require.NoError(t, err)
	return &shared{&rig.Server{T: t, Client: c, Temporal: s.Temporal, Queue: s.Queue}, s.dir, values}
}

// apart gives a thread a turn that is a run of its own.
func apart(t *testing.T, th *superstep.Thread[rig.Counter], turn int) superstep.Result[rig.Counter] {
	t.Helper()
	var in rig.Counter
	in.Log.Append(said(1<<10, uint64(turn)))
	got, err := th.Invoke(t.Context(), in, superstep.WithKeepOpen(-1))
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, got.Status)
	return got
}

// saidAll holds that a conversation has had its turns, and no other ones.
func saidAll(t *testing.T, log []string, turns int) {
	t.Helper()
	require.Len(t, log, turns)
	for i, text := range log {
		require.Equal(t, said(1<<10, uint64(i)), text, "turn %d", i)
	}
}

// TestTurnsApartStoreWhatTheyAdd: of a conversation with a run of its own for each turn the storage grows by some of what is said, however
// long it is; and any process reads it.
func TestTurnsApartStoreWhatTheyAdd(t *testing.T) {
	t.Parallel()
	s := newShared(t, rig.NewServer(t)).process(t)
	g := talking("apart")
	s.process(t).work(g)
	th := g.Thread(s.Client, s.Queue)
	var at []int64
	const each = 128
	for turn := range 3 * each {
		got := apart(t, th, turn)
		if (turn+1)%each == 0 {
			saidAll(t, got.Output.Log.Get(), turn+1)
			_, bytes := s.objects()
			at = append(at, bytes)
		}
	}
	t.Logf("stored after %d, %d and %d turns: %v bytes", each, 2*each, 3*each, at)
	assert.Less(t, at[2]-at[1], int64(each*10<<10), "what a turn stores")
	assert.Less(t, at[2]-at[1], (at[1]-at[0])*3/2, "and no more than one before")
	state, err := g.Thread(s.process(t).Client, th.ID()).State(t.Context())
	require.NoError(t, err)
	saidAll(t, state.State.Log.Get(), 3*each)
}

// TestTurnsApartOfSeveralClients: whoever takes the next turn, and however many want to at once, nothing that was said is lost or said twice;
// and whatever process reads an earlier checkpoint, goes on from one, or forks it, has what was there.
func TestTurnsApartOfSeveralClients(t *testing.T) {
	t.Parallel()
	s := newShared(t, rig.NewServer(t))
	g := talking("several")
	s.process(t).work(g)
	clients := []*superstep.Thread[rig.Counter]{}
	for range 3 {
		clients = append(clients, g.Thread(s.process(t).Client, s.Queue))
	}
	for turn := range 60 {
		apart(t, clients[turn%len(clients)], turn)
	}
	atOnce(t, clients)
	state, err := g.Thread(s.process(t).Client, s.Queue).State(t.Context())
	require.NoError(t, err)
	log := state.State.Log.Get()
	saidAll(t, log[:60], 60)
	require.Greater(t, len(log), 60)
	require.Len(t, log, int(state.State.N.Get()), "each turn that counted, once")

	history, err := clients[0].History(t.Context(), superstep.WithValues())
	require.NoError(t, err)
	middle := ""
	for _, c := range history {
		if string(c.Values["n"]) == "40" && len(c.Next) == 0 {
			var said []string
			require.NoError(t, json.Unmarshal(c.Values["log"], &said))
			saidAll(t, said, 40)
			middle = c.Checkpoint
		}
	}
	require.NotEmpty(t, middle)
	reader := g.Thread(s.process(t).Client, s.Queue)
	forked, err := reader.Fork(t.Context(), middle, s.Queue+"-fork")
	require.NoError(t, err)
	_, err = forked.Wait(t.Context())
	require.NoError(t, err)
	for turn := 40; turn < 50; turn++ {
		apart(t, forked, turn)
	}
	state, err = g.Thread(s.process(t).Client, forked.ID()).State(t.Context())
	require.NoError(t, err)
	saidAll(t, state.State.Log.Get(), 50)

	_, err = reader.Fork(t.Context(), middle, "") // back, on the thread itself
	require.NoError(t, err)
	_, err = reader.Wait(t.Context())
	require.NoError(t, err)
	got := apart(t, clients[1], 40)
	saidAll(t, got.Output.Log.Get(), 41)
}

// atOnce has several clients take a turn of a thread at the same time. Some are refused.
func atOnce(t *testing.T, clients []*superstep.Thread[rig.Counter]) {
	t.Helper()
	took := make(chan error)
	for i, th := range clients {
		go func() {
			var in rig.Counter
			in.Log.Append(said(1<<10, uint64(1000+i)))
			_, err := th.Invoke(context.Background(), in, superstep.WithKeepOpen(-1))
			took <- err
		}()
	}
	done := 0
	for range clients {
		err := <-took
		if err == nil {
			done++
			continue
		}
		require.ErrorIs(t, err, thread.ErrRunning)
	}
	require.NotZero(t, done)
}

// TestTurnsApartOutliveTheirRuns: the server has removed all runs but the newest, and somebody all files that nobody has used for a month; the
// thread goes on with all that was said, and is read by any process.
func TestTurnsApartOutliveTheirRuns(t *testing.T) {
	t.Parallel()
	s := newShared(t, rig.NewServer(t)).process(t)
	g := talking("idle")
	worker := s.process(t)
	worker.work(g)
	th := g.Thread(s.Client, s.Queue)
	runs := []string{}
	for turn := range 50 {
		apart(t, th, turn)
		view, err := s.Show(t.Context(), th.ID())
		require.NoError(t, err)
		runs = append(runs, view.RunID)
	}
	for _, run := range runs[:len(runs)-1] {
		_, err := s.Temporal.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{Namespace: "default",
			WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: th.ID(), RunId: run}})
		require.NoError(t, err)
	}
	month := time.Now().Add(-31 * 24 * time.Hour)
	paths, _ := s.objects()
	for _, path := range paths {
		require.NoError(t, os.Chtimes(path, month, month))
	}
	saidAll(t, apart(t, th, 50).Output.Log.Get(), 51)
	for _, path := range paths {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if time.Since(info.ModTime()) > 24*time.Hour {
			require.NoError(t, os.Remove(path))
		}
	}
	other := g.Thread(s.process(t).Client, th.ID())
	state, err := other.State(t.Context())
	require.NoError(t, err)
	saidAll(t, state.State.Log.Get(), 51)
	saidAll(t, apart(t, other, 51).Output.Log.Get(), 52)
}

// TestAGapInTurnsApart: what the newest state goes on from is gone. That is said at once, with the names of both and what is left to do, and
// the thread is not changed; when it is there again all goes on.
func TestAGapInTurnsApart(t *testing.T) {
	t.Parallel()
	s := newShared(t, rig.NewServer(t))
	g := talking("gap")
	writer, worker := s.process(t), s.process(t)
	stop := worker.work(g)
	th := g.Thread(writer.Client, s.Queue)
	for turn := range 30 {
		apart(t, th, turn)
	}
	turns, middle := 30, []string(nil)
	for grew := int64(1 << 30); grew > 8<<10; turns++ { // until one stores what is new only
		var bytes, now int64
		middle, bytes = s.objects()
		apart(t, th, turns)
		_, now = s.objects()
		grew = now - bytes
	}
	stop()
	kept := map[string][]byte{}
	for _, path := range middle {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		kept[path] = text
		require.NoError(t, os.Remove(path))
	}
	reader := s.process(t)
	again := g.Thread(reader.Client, th.ID())
	_, err := again.State(t.Context())
	require.ErrorIs(t, err, thread.ErrStorage)
	require.ErrorIs(t, err, storage.ErrMissing)
	require.ErrorContains(t, err, "and others go on from")
	require.ErrorContains(t, err, "restore it there from a backup")
	s.process(t).work(g)
	var in rig.Counter
	_, err = again.Invoke(t.Context(), in, superstep.WithKeepOpen(-1))
	require.ErrorIs(t, err, thread.ErrStorage)

	for path, text := range kept {
		require.NoError(t, os.WriteFile(path, text, 0o600))
	}
	saidAll(t, apart(t, again, turns).Output.Log.Get(), turns+1)
}

// TestPrunedTurnsApart: an archive has all that its states are told by. Processes that have a thread's states in memory go on from none of
// them when the thread begins anew.
func TestPrunedTurnsApart(t *testing.T) {
	t.Parallel()
	e := newErasing(t)
	s := &shared{e.Server, filepath.Join(e.dir, "values"), e.values}
	g := talking("anew")
	writer, worker := s.process(t), s.process(t)
	worker.work(g)
	th := g.Thread(writer.Client, "mine")
	const turns = 26
	for turn := range turns {
		apart(t, th, turn)
	}
	before := e.ended(th.ID())
	dir := filepath.Join(t.TempDir(), "archives")
	report, err := s.process(t).Prune(t.Context(), thread.PruneRequest{Before: before, Dir: dir})
	require.NoError(t, err)
	require.Len(t, report.Threads, 1)
	archived := archivedClient(t, dir, superstep.ClientConfig{})
	state, err := g.Thread(archived, th.ID()).State(t.Context())
	require.NoError(t, err)
	saidAll(t, state.State.Log.Get(), turns)
	history, err := g.Thread(archived, th.ID()).History(t.Context(), superstep.WithValues())
	require.NoError(t, err)
	require.Equal(t, 3*turns, len(history), "two checkpoints of each input, and one behind it")

	left, err := s.storage.List(t.Context(), storage.SpaceOf("default", th.ID()))
	require.NoError(t, err)
	require.Empty(t, left)
	for turn := range turns { // the very same texts
		apart(t, th, turn)
	}
	state, err = g.Thread(s.process(t).Client, th.ID()).State(t.Context())
	require.NoError(t, err)
	saidAll(t, state.State.Log.Get(), turns)
}
