package stream_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/message"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// steady is a silence that a worker on a busy machine does not reach: none is lost here, and a node that runs again tells all again.
const steady = 30 * time.Second

// liveRuntime is a client and a worker that share a transport.
func liveRuntime(t *testing.T, transport live.Transport, graphs ...superstep.Runnable) *superstep.Client {
	t.Helper()
	c, err := client.DialContext(t.Context(), client.Options{HostPort: testserver.Address(t), Logger: rig.NoLog{}})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	queue := testserver.Queue(t)
	ready := make(chan struct{})
	w, err := superstep.NewWorker(c, superstep.WorkerConfig{Graphs: graphs, TaskQueue: queue, Transport: transport, LostAfter: steady,
		OnReady: func() { close(ready) }})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	<-ready
	rt, err := superstep.NewClient(c, superstep.ClientConfig{TaskQueue: queue, Transport: transport})
	require.NoError(t, err)
	return rt
}

// tellingGraph emits count values, waits for seen after the first ones, fails once, and emits them again.
func tellingGraph(name string, count int, seen <-chan struct{}) *superstep.Graph[rig.Counter] {
	var once rig.Flaky
	g := superstep.NewStateGraph[rig.Counter](name)
	g.AddNode("tell", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		for i := range count {
			if err := superstep.Emit(ctx, fmt.Sprintf("<%d>", i)); err != nil {
				return s, err
			}
		}
		select {
		case <-seen:
		case <-ctx.Done():
			return s, ctx.Err()
		}
		if once.Fails(ctx, 1) {
			return s, errors.New("hiccup")
		}
		return s, superstep.Emit(ctx, "last")
	}, superstep.WithRetry(superstep.RetryPolicy{InitialInterval: time.Millisecond, NoJitter: true}))
	g.AddEdge(superstep.Start, "tell")
	return g.MustCompile()
}

// TestLiveStream: what a node emits arrives while it runs, and not again with its result.
func TestLiveStream(t *testing.T) {
	seen := make(chan struct{})
	g := tellingGraph("live", 3, seen)
	th := g.Thread(liveRuntime(t, &live.Local{}, g), graphtest.ThreadID(t))
	// The reader is there before the first value: the node must not be waited for.
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var parts []thread.Part
	for p, err := range th.Stream(t.Context(), thread.StreamCustom, thread.StreamUpdates, thread.StreamTasks) {
		require.NoError(t, err)
		parts = append(parts, p)
		if len(parts) == 1 {
			close(seen) // the start of the task; from here on the node may end
		}
	}
	lines := rig.Lines(parts)
	assert.Equal(t, []string{`1 custom "<0>"`, `1 custom "<1>"`, `1 custom "<2>"`, `1 custom "last"`, `1 updates {"tell":null}`}, current(lines))
	assert.Equal(t, current(lines), current(rig.Lines(rig.StreamOf(t, th, thread.StreamCustom, thread.StreamUpdates, thread.StreamTasks))))
}

// current are the custom and update lines that no reset voids.
func current(lines []string) []string {
	var out []string
	for _, l := range lines {
		var step int
		var mode string
		_, _ = fmt.Sscanf(l, "%d %s", &step, &mode)
		switch mode {
		case "reset":
			out = nil
		case "custom", "updates":
			out = append(out, l)
		}
	}
	return out
}

// TestLiveBeforeTheResult: the node waits until its reader has what it emitted, which without a transport would never be.
func TestLiveBeforeTheResult(t *testing.T) {
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) { liveBeforeTheResult(t, opts...) })
	}
}

func liveBeforeTheResult(t *testing.T, opts ...superstep.CompileOption) {
	seen := make(chan struct{})
	g := superstep.NewStateGraph[rig.Counter]("live_before")
	listening := make(chan struct{})
	g.AddNode("tell", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		for _, wait := range []<-chan struct{}{listening, seen} {
			select {
			case <-wait:
			case <-ctx.Done():
				return s, ctx.Err()
			}
			if err := superstep.EmitMessage(ctx, message.Message{ID: "m", Role: message.RoleAssistant, Content: message.Text("he")}); err != nil {
				return s, err
			}
		}
		return s, nil
	})
	g.AddEdge(superstep.Start, "tell")
	graph := g.MustCompile(opts...)
	th := graph.Thread(liveRuntime(t, &live.Local{}, graph), graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var modes []thread.StreamMode
	var offsets []string
	for p, err := range th.Stream(t.Context(), thread.StreamMessages, thread.StreamTasks) {
		require.NoError(t, err)
		modes, offsets = append(modes, p.Mode), append(offsets, p.Offset)
		switch len(modes) {
		case 1:
			close(listening)
		case 2:
			close(seen)
		}
	}
	assert.Equal(t, []thread.StreamMode{thread.StreamTasks, thread.StreamMessages, thread.StreamMessages, thread.StreamTasks}, modes)
	rest := rig.StreamOf(t, th, thread.StreamMessages, thread.StreamTasks, superstep.StreamFrom(offsets[1]))
	assert.Len(t, rest, 2, "a reader that reconnects after a live part gets what comes after it")
	assert.Len(t, rig.StreamOf(t, th, thread.StreamMessages, thread.StreamTasks, superstep.StreamFrom(offsets[3])), 0)
}

// badTransport loses some emissions, repeats others, and fails for some.
type badTransport struct {
	live.Local
	calls atomic.Int64
	fault func(n int64) string
}

func (b *badTransport) Publish(ctx context.Context, e live.Emission) error {
	switch b.fault(b.calls.Add(1)) {
	case "lose":
		return nil
	case "twice":
		if err := b.Local.Publish(ctx, e); err != nil {
			return err
		}
	case "fail":
		return errors.New("no connection")
	}
	return b.Local.Publish(ctx, e)
}

// TestATransportMayBeBad: whatever it does, a reader ends with each valid emission once and in order.
func TestATransportMayBeBad(t *testing.T) {
	for name, fault := range map[string]func(int64) string{
		"loses the first":   func(n int64) string { return map[bool]string{true: "lose"}[n == 1] },
		"loses in between":  func(n int64) string { return map[bool]string{true: "lose"}[n%5 == 3] },
		"repeats":           func(n int64) string { return map[bool]string{true: "twice"}[n%2 == 0] },
		"loses attempt two": func(n int64) string { return map[bool]string{true: "lose"}[n > 10] },
		"fails":             func(n int64) string { return map[bool]string{true: "fail"}[n == 4] },
		"loses everything":  func(int64) string { return "lose" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := make(chan struct{})
			g := tellingGraph("bad_transport", 10, seen)
			th := g.Thread(liveRuntime(t, &badTransport{fault: fault}, g), graphtest.ThreadID(t))
			require.NoError(t, th.Start(t.Context(), rig.Counter{}))
			var lines []string
			for p, err := range th.Stream(t.Context(), thread.StreamCustom, thread.StreamUpdates, thread.StreamTasks) {
				require.NoError(t, err)
				if len(lines) == 0 {
					close(seen)
				}
				lines = append(lines, rig.Lines([]thread.Part{p})...)
			}
			want := rig.Lines(rig.StreamOf(t, th, thread.StreamCustom, thread.StreamUpdates))
			assert.Equal(t, current(want), current(lines))
			assert.Len(t, current(lines), 12)
		})
	}
}

// TestLiveForWhoComesLate: readers that come right after the start, after three of ten values and after seven, and one that
// goes on from another one's offset, have all ten, each once and in order, while the node is still under way.
func TestLiveForWhoComesLate(t *testing.T) {
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) { liveForWhoComesLate(t, opts...) })
	}
}

func liveForWhoComesLate(t *testing.T, opts ...superstep.CompileOption) {
	const count = 10
	emitted := make(chan int)      // how many
	goOn := make(chan struct{})    // to emit more
	allHave := make(chan struct{}) // until then the node does not end
	await := func(ctx context.Context, c <-chan struct{}) error {
		select {
		case <-c:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g := superstep.NewStateGraph[rig.Counter]("live_late")
	g.AddNode("tell", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		for i := range count {
			if err := superstep.Emit(ctx, i); err != nil {
				return s, err
			}
			select {
			case emitted <- i + 1:
			case <-ctx.Done():
				return s, ctx.Err()
			}
			if err := await(ctx, goOn); err != nil {
				return s, err
			}
		}
		return s, await(ctx, allHave)
	})
	g.AddEdge(superstep.Start, "tell")
	graph := g.MustCompile(opts...)
	th := graph.Thread(liveRuntime(t, &live.Local{}, graph), graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))

	var have, ended sync.WaitGroup
	offset := make(chan string, 1)
	read := func(name string, had int, from ...superstep.StreamOption) {
		have.Add(1)
		ended.Go(func() {
			var got, want []string
			for i := range had {
				got = append(got, fmt.Sprint(i))
			}
			for p, err := range th.Stream(t.Context(), append(from, thread.StreamCustom)...) {
				if !assert.NoError(t, err, name) {
					return
				}
				if got = append(got, string(p.Data)); len(got) == 1 && name == "first" {
					offset <- p.Offset
				}
				if len(got) == count {
					have.Done()
				}
			}
			for i := range count {
				want = append(want, fmt.Sprint(i))
			}
			assert.Equal(t, want, got, name)
		})
	}
	read("first", 0)
	for n := range emitted {
		switch n {
		case 3:
			read("after three", 0)
		case 7:
			read("after seven", 0)
			read("reconnects", 1, superstep.StreamFrom(<-offset))
		}
		goOn <- struct{}{}
		if n == count {
			break
		}
	}
	have.Wait()
	close(allHave)
	ended.Wait()
}

// TestNothingIsKeptOfTasksThatHaveEnded: who subscribes to a thread whose nodes have ended is given nothing of theirs, also where a node
// ended before its workflow task did.
func TestNothingIsKeptOfTasksThatHaveEnded(t *testing.T) {
	for name, opts := range rig.Modes {
		t.Run(name, func(t *testing.T) {
			g := superstep.NewStateGraph[rig.Counter]("live_ended")
			tell := func(ctx context.Context, s rig.Counter) (rig.Counter, error) { return s, superstep.Emit(ctx, "told") }
			g.AddNode("first", tell)
			g.AddNode("second", tell)
			g.AddEdge(superstep.Start, "first")
			g.AddEdge("first", "second")
			graph, transport := g.MustCompile(opts...), &live.Local{}
			th := graph.Thread(liveRuntime(t, transport, graph), graphtest.ThreadID(t))
			for range 5 {
				_, err := th.Invoke(t.Context(), rig.Counter{})
				require.NoError(t, err)
			}
			comes, err := transport.Subscribe(t.Context(), th.ID())
			require.NoError(t, err)
			require.NoError(t, transport.Publish(t.Context(), live.Emission{Thread: th.ID(), Task: "behind"}))
			assert.Equal(t, "behind", (<-comes).Task)
		})
	}
}
