package archive_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/internal/archive"
	"superstep.dev/thread"
)

const value = "0123456789abcdef0123456789abcdef/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// events are a history of n events.
func events(n int) func(func(*historypb.HistoryEvent) error) error {
	return func(take func(*historypb.HistoryEvent) error) error {
		for i := range n {
			if err := take(&historypb.HistoryEvent{EventId: int64(i + 1)}); err != nil {
				return err
			}
		}
		return nil
	}
}

func described(id, run string) *workflowservice.DescribeWorkflowExecutionResponse {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}}}
}

// written writes a file of a thread with two runs and a value.
func written(t *testing.T, dir, threadID string) string {
	t.Helper()
	w, err := archive.Create(dir, archive.Head{Thread: threadID, Newest: "run-2", Namespace: "default", At: time.Now().UTC()})
	require.NoError(t, err)
	defer w.Abandon()
	require.NoError(t, w.Run(threadID, "run-1", described(threadID, "run-1"), events(3)))
	require.NoError(t, w.Run(threadID, "run-2", described(threadID, "run-2"), events(700)))
	require.NoError(t, w.Value(value, []byte("a value")))
	_, err = archive.Open(archive.Path(dir, threadID, "run-2"))
	require.ErrorIs(t, err, thread.ErrNotFound, "before it is whole")
	path, err := w.Close()
	require.NoError(t, err)
	return path
}

// TestWhatIsWrittenIsRead.
func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, id := range []string{"mine", "job/r-3", "..", strings.Repeat("ü", 100), strings.Repeat("ü", 99) + "u", "a.b"} {
		path := written(t, dir, id)
		f, err := archive.Open(path)
		require.NoError(t, err)
		assert.Equal(t, id, f.Thread)
		raw, err := os.ReadFile(path)
		require.NoError(t, err)
		sum := sha256.Sum256(raw)
		assert.Equal(t, hex.EncodeToString(sum[:]), f.SHA256, "what sha256sum says")
		require.Len(t, f.Runs, 2)
		run, n := f.Run(id, "run-2"), 0
		var again archive.Sum
		require.NoError(t, f.Events(run, func(e *historypb.HistoryEvent) error {
			n++
			assert.EqualValues(t, n, e.GetEventId())
			return again.Add(e)
		}))
		assert.Equal(t, 700, n)
		assert.Equal(t, run.SHA256, again.SHA256())
		assert.Equal(t, "run-2", run.Described.GetWorkflowExecutionInfo().GetExecution().GetRunId())
		got, err := f.Value(value)
		require.NoError(t, err)
		assert.Equal(t, "a value", string(got))
		_, err = f.Value(value[:len(value)-1] + "0")
		require.ErrorIs(t, err, fs.ErrNotExist)
		require.NoError(t, f.Close())
		of, err := archive.Of(dir, id)
		require.NoError(t, err)
		assert.Equal(t, []string{path}, of)
	}
	all, err := archive.Unproved(dir, "")
	require.NoError(t, err)
	require.Len(t, all, 6)
	require.NoError(t, archive.Prove(all[0], map[string]string{"sha256": "another"}))
	_, err = archive.Open(all[0])
	require.ErrorIs(t, err, thread.ErrBadInput, "it is not the one that was proved")
	left, err := archive.Unproved(dir, "")
	require.NoError(t, err)
	assert.Len(t, left, 5)
}

// TestAFileThatIsNotWhatWasWritten is refused, with one error that names it: cut at any byte, with any byte changed, or with something
// behind it.
func TestAFileThatIsNotWhatWasWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, err := os.ReadFile(written(t, dir, "mine"))
	require.NoError(t, err)
	path := filepath.Join(dir, "other.run.archive")
	refused := func(content []byte, what string, at int) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, content, 0o600))
		f, err := archive.Open(path)
		if err == nil {
			f.Close()
			t.Fatalf("%s at %d of %d: it was opened", what, at, len(whole))
		}
		require.ErrorIs(t, err, thread.ErrBadInput)
		require.Equal(t, 1, strings.Count(err.Error(), "is not what was written"), err.Error())
		require.Contains(t, err.Error(), path)
	}
	for at := 0; at < len(whole); at += 7 {
		refused(whole[:at], "cut", at)
		changed := bytes.Clone(whole)
		changed[at] ^= 0x10
		refused(changed, "changed", at)
	}
	refused(whole[:len(whole)-1], "cut", len(whole)-1)
	refused(append(bytes.Clone(whole), 0), "longer", 0)
	refused(append(bytes.Clone(whole), whole...), "twice", 0)
	require.NoError(t, os.WriteFile(path, whole, 0o600))
	f, err := archive.Open(path)
	require.NoError(t, err)
	f.Close()
}

// TestAFileThatIsAbandoned leaves nothing, and what a process that died was writing goes after an hour.
func TestAFileThatIsAbandoned(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := archive.Create(dir, archive.Head{Thread: "mine", Newest: "run-2"})
	require.NoError(t, err)
	broken := errors.New("broken")
	require.ErrorIs(t, w.Run("mine", "run-2", described("mine", "run-2"), func(func(*historypb.HistoryEvent) error) error { return broken }), broken)
	w.Abandon()
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	old, young := filepath.Join(dir, "a.run.archive.1.part"), filepath.Join(dir, "b.run.archive.2.part")
	for _, part := range []string{old, young} {
		require.NoError(t, os.WriteFile(part, nil, 0o600))
	}
	long := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(old, long, long))
	archive.Sweep(dir)
	assert.NoFileExists(t, old)
	assert.FileExists(t, young)
}

// TestPartsOfAThread: those of another one whose name begins the same stay.
func TestPartsOfAThread(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := []string{"a.run-1.archive.1.part", "a.run-2.archive.22.part"}
	others := []string{"a.b.run-1.archive.3.part", "ab.run-1.archive.4.part", "a.run-1.archive", "a.run-1.archive.erased.json"}
	for _, name := range append(mine, others...) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	require.NoError(t, archive.RemoveParts(dir, "a"))
	for _, name := range mine {
		assert.NoFileExists(t, filepath.Join(dir, name))
	}
	for _, name := range others {
		assert.FileExists(t, filepath.Join(dir, name))
	}
	require.NoError(t, archive.RemoveParts(filepath.Join(dir, "nowhere"), "a"))
}
