package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// streaming is a "stream -o json" under way, in a program that has the graphs of these tests.
type streaming struct {
	running
	lines *bufio.Scanner
}

// stream starts to stream a thread.
func (r *rig) stream(thread string, args ...string) *streaming {
	r.t.Helper()
	return r.streamIn("values,updates,custom,tasks,checkpoints,messages", thread, args...)
}

// streamIn is stream in some modes only.
func (r *rig) streamIn(modes, thread string, args ...string) *streaming {
	r.t.Helper()
	args = append([]string{"stream", thread, "--mode", modes, "-o", "json", "--address", r.address, "--task-queue", r.queue}, args...)
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	r.t.Cleanup(cancel)
	s := &streaming{running: running{r: r, cmd: exec.CommandContext(ctx, os.Args[0], args...)}}
	s.cmd.Env = environment(asProgram + "=1")
	s.cmd.Stderr = &s.stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(r.t, err)
	s.lines = bufio.NewScanner(out)
	require.NoError(r.t, s.cmd.Start())
	return s
}

// until reads parts until one has that text, or until the end for "".
func (s *streaming) until(text string) []thread.Part {
	s.r.t.Helper()
	var parts []thread.Part
	for s.lines.Scan() {
		var p thread.Part
		require.NoError(s.r.t, json.Unmarshal(s.lines.Bytes(), &p), s.lines.Text())
		parts = append(parts, p)
		if text != "" && strings.Contains(s.lines.Text(), text) {
			return parts
		}
	}
	require.NoError(s.r.t, s.lines.Err())
	require.Empty(s.r.t, text, "the stream ended before: %s", &s.stderr)
	return parts
}

// ends wants an exit code.
func (s *streaming) ends(code int) {
	s.r.t.Helper()
	_ = s.cmd.Wait()
	require.Equal(s.r.t, code, s.cmd.ProcessState.ExitCode(), s.stderr.String())
}

// content are parts without their offsets, and without the name of their thread.
func content(thread string, parts []thread.Part) []string {
	var out []string
	for _, p := range parts {
		out = append(out, string(p.Mode)+" "+strings.ReplaceAll(string(p.Data), thread, "THREAD"))
	}
	return out
}

// A reader and the worker are both killed in the middle of a run. Another reader goes on from the last part that the
// first one saw, while another worker goes on with the run: together they saw exactly what one reader sees of a run that
// nothing happened to.
func TestStreamGoesOnInAnotherProcess(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker-1")
	threadID := r.begin("tells", r.steered())
	first := r.stream(threadID)
	seen := first.until(`"name":"second","input"`)
	r.until("the node is in the middle", func() bool { return r.ran("second") == 1 })
	require.NoError(t, first.cmd.Process.Kill())
	_ = first.cmd.Wait()
	r.kill(worker)

	second := r.stream(threadID, "--from", seen[len(seen)-1].Offset)
	r.put("go")
	r.graphsWorker("worker-2")
	seen = append(seen, second.until("")...)
	second.ends(0)
	require.Equal(t, 2, r.ran("second"), "its worker was killed")

	whole := r.stream(threadID)
	require.Equal(t, whole.until(""), seen, "a reader who comes late sees the same, at the same offsets")
	whole.ends(0)
	again := r.begin("tells", r.steered())
	r.wait(again, thread.StatusFinished)
	quiet := r.stream(again)
	require.Equal(t, content(again, quiet.until("")), content(threadID, seen), "nothing lost, nothing twice")
	quiet.ends(0)
}

// What a segment has stored is streamed while it is under way. Its worker is killed then, and another goes on behind that:
// the reader gets everything once, as one who comes late.
func TestStreamOfASegmentThatLosesItsWorker(t *testing.T) {
	for name, mode := range map[string]thread.StartRequest{
		"fused": {Fused: true}, "async": {Durability: superstep.DurabilityAsync},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			worker := r.graphsWorker("worker-1")
			thread := testserver.Queue(t)
			mode.Graph, mode.Thread, mode.Input = "tells", thread, encode(t, r.steered())
			_, err := r.client.Start(t.Context(), mode)
			require.NoError(t, err)
			reader := r.streamIn("values,updates,custom", thread)
			seen := reader.until(`"first works"`)
			seen = append(seen, reader.until(`values`)...)
			r.until("the node is in the middle", func() bool { return r.ran("second") == 1 })
			r.kill(worker)
			r.put("go")
			r.graphsWorker("worker-2")
			seen = append(seen, reader.until("")...)
			reader.ends(0)
			require.Equal(t, []int{1, 2, 1}, []int{r.ran("first"), r.ran("second"), r.ran("third")})
			whole := r.streamIn("values,updates,custom", thread)
			require.Equal(t, content(thread, whole.until("")), content(thread, seen))
			whole.ends(0)
		})
	}
}

// A thread's next run goes on behind the offset of the one before, and with no worker at all.
func TestStreamGoesOverToTheNextRun(t *testing.T) {
	r := newRig(t)
	worker := r.graphsWorker("worker")
	threadID := r.begin("adds", map[string]string{"note": "one"})
	r.wait(threadID, thread.StatusFinished)
	one := r.stream(threadID)
	seen := one.until("")
	one.ends(0)
	r.again("adds", threadID, map[string]string{"note": "two"})
	r.wait(threadID, thread.StatusFinished)
	r.again("adds", threadID, map[string]string{"note": "three"})
	r.wait(threadID, thread.StatusFinished)
	r.kill(worker)

	rest := r.stream(threadID, "--from", seen[len(seen)-1].Offset)
	var updates []string
	for _, p := range rest.until("") {
		if p.Mode == thread.StreamUpdates {
			updates = append(updates, string(p.Data))
		}
	}
	rest.ends(0)
	require.Equal(t, []string{`{"adds":{"log":["two"]}}`, `{"adds":{"log":["three"]}}`}, updates)
	newest := r.stream(threadID)
	require.Contains(t, content(threadID, newest.until("")), `updates {"adds":{"log":["three"]}}`)
	newest.ends(0)
}

// Ctrl-C ends the reading and not the run; a program without the graph says what is missing; an offset that is none is
// refused.
func TestStreamsThatEndEarly(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	threadID := r.begin("slow", r.steered())
	s := r.stream(threadID)
	seen := s.until(`"name":"slow","input"`)
	s.interrupt()
	s.ends(130)
	require.Contains(t, s.stderr.String(), "--from "+seen[len(seen)-1].Offset)
	r.put("go")
	r.wait(threadID, thread.StatusFinished)

	require.Contains(t, r.exits(2, r.superstep("stream", threadID)).stderr, "run this from the program that has the graph")
	for _, offset := range []string{"nonsense", seen[0].Offset + "0", strings.Repeat("1/", 1000)} {
		r.exits(2, r.superstep("stream", threadID, "--from", offset))
	}
	r.exits(4, r.superstep("stream", "nobody"))
}
