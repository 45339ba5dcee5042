package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
)

// TestPrunedByTheCommandLine: threads are pruned by processes of which one is interrupted and several are killed, and by the last one to
// the end. Each lies in an archive, with the proof that it was erased, and is read from there without server and storage.
func TestPrunedByTheCommandLine(t *testing.T) {
	t.Parallel()
	values := filepath.Join(t.TempDir(), "values")
	server := testserver.Start(t, testserver.Options{Values: values})
	r := newRigAt(t, server.Address())
	kept, err := storage.Files(values, storage.Options{})
	require.NoError(t, err)
	r.client, err = superstep.NewClient(r.temporal, superstep.ClientConfig{TaskQueue: r.queue, Storage: kept})
	require.NoError(t, err)
	r.graphsWorker("worker")
	var all []string
	for range 30 {
		all = append(all, r.begin("adds", map[string]string{"note": "a note"}))
	}
	large := r.begin("large", map[string]int{"size": 100_000})
	for _, id := range append(all, large) {
		r.wait(id, thread.StatusFinished)
	}
	r.put("go")
	jobID := r.submitted("two")
	answer := r.exits(0, r.superstep("job", "answer", jobID)).stdout
	waits := r.stopped()
	state := r.exits(0, r.own("state", large, "-o", "json").end()).stdout

	dir := filepath.Join(r.dir, "archives")
	var dry thread.Pruning
	r.until("the server's index has all threads", func() bool {
		out := r.exits(0, r.superstep("prune", "--older-than", "0s", "-o", "json"))
		require.NoError(t, json.Unmarshal([]byte(out.stdout), &dry))
		return len(dry.Threads) == len(all)+2
	})
	require.NoDirExists(t, dir)
	out := r.exits(0, r.superstep("prune", "--older-than", "30d"))
	require.Contains(t, out.stdout, "nothing has ended before")
	prune := []string{"prune", "--older-than", "0s", "--archive", dir, "--yes"}
	proofs := func() int {
		found, err := filepath.Glob(filepath.Join(dir, "*.erased.json"))
		require.NoError(t, err)
		return len(found)
	}
	for _, end := range []func(*running){(*running).interrupt, killed, killed, killed} {
		for through := true; through; through = proofs() == len(all)+2 { // one that was through before its end came was not ended within anything
			r.pruneMore(&all, len(all)+2-proofs())
			had, p := proofs(), r.begun(prune...)
			r.until("a thread more is pruned", func() bool { return proofs() > had })
			end(p)
			p.end()
		}
	}
	require.Less(t, proofs(), len(all)+2, "some are left")
	t.Log("after the last of four that did not end,", proofs(), "of", len(all)+2, "threads and jobs are pruned")
	var report thread.Pruning
	require.NoError(t, json.Unmarshal([]byte(r.exits(0, r.superstep(append(prune, "-o", "json")...)).stdout), &report))
	require.NotEmpty(t, report.Threads)
	require.Equal(t, len(all)+2, proofs())
	out = r.exits(0, r.superstep(prune...))
	require.Contains(t, out.stdout, "nothing has ended before")
	r.exits(4, r.superstep("show", large))
	r.exits(0, r.superstep("show", waits))
	left, err := kept.List(t.Context(), storage.SpaceOf("default", large))
	require.NoError(t, err)
	require.Empty(t, left)

	r.exits(4, r.superstep("job", "show", jobID))
	out = r.exits(0, r.superstep("erase", all[1], "--yes", "--archive", dir)) // of which an archive is all that is left
	require.Contains(t, out.stdout, all[1]+".")
	require.Empty(t, filesOf(t, dir, all[1]))
	all = append(all[:1], all[2:]...)
	require.NoError(t, server.Stop())
	require.NoError(t, os.RemoveAll(values))
	for _, id := range all {
		require.Contains(t, r.exits(0, r.superstep("show", id, "--archive", dir)).stdout, "finished")
	}
	require.JSONEq(t, state, r.exits(0, r.own("state", large, "--archive", dir, "-o", "json").end()).stdout)
	require.Contains(t, r.exits(0, r.own("history", large, "--archive", dir).end()).stdout, "input")
	out = r.exits(6, r.superstep("history", large, "--archive", dir)) // the graph has a reducer of its own
	require.Contains(t, out.stderr, "read it with the program that has the graph")
	require.Contains(t, r.exits(0, r.superstep("job", "show", jobID, "--archive", dir)).stdout, "2/2 done")
	require.Contains(t, r.exits(0, r.superstep("job", "list", "--archive", dir)).stdout, jobID)
	require.Equal(t, answer, r.exits(0, r.superstep("job", "answer", jobID, "--archive", dir)).stdout)
	require.Equal(t, len(all)+3, strings.Count(r.exits(0, r.superstep("list", "--archive", dir)).stdout, "finished"))
	out = r.exits(4, r.superstep("show", waits, "--archive", dir))
	require.Contains(t, out.stderr, "list")

	files := slices.DeleteFunc(filesOf(t, dir, large), func(file string) bool { return strings.HasSuffix(file, ".part") }) // of those killed
	require.Len(t, files, 2, "an archive and its proof")
	r.exits(0, r.superstep("show", large, "--archive", files[0]))
	require.NoError(t, os.Truncate(files[0], 40_000))
	for _, place := range []string{files[0], dir} {
		out = r.exits(2, r.superstep("show", large, "--archive", place))
		require.Contains(t, out.stderr, fmt.Sprintf("archive %q is not what was written", files[0]))
	}
	r.exits(0, r.superstep("show", all[0], "--archive", dir))
}

// pruneMore sees to it that no few threads are there to be pruned, of which so many are left.
func (r *rig) pruneMore(all *[]string, left int) {
	r.t.Helper()
	const enough = 20
	if left >= enough {
		return
	}
	var more []string
	for range enough {
		more = append(more, r.begin("adds", map[string]string{"note": "a note"}))
	}
	for _, id := range more {
		r.wait(id, thread.StatusFinished)
	}
	*all = append(*all, more...)
	r.until("the server's index has them", func() bool {
		found := 0
		for _, p := range shown[thread.Pruning](r, "prune", "--older-than", "0s").Threads {
			if slices.Contains(more, p.Thread) {
				found++
			}
		}
		return found == enough
	})
}

// filesOf are the files of a thread in a directory of archives, the archive first.
func filesOf(t *testing.T, dir, threadID string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, threadID+".*"))
	require.NoError(t, err)
	return files
}

// killed ends a command line as a crash does.
func killed(p *running) { _ = p.cmd.Process.Kill() }
