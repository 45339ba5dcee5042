package superstep_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
)

// TestHTTP drives the handler of Example_http as a browser does, on every runtime.
func TestHTTP(t *testing.T) {
	g := refundGraph()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		web := httptest.NewServer((&refundsAPI{g, rt}).Handler())
		t.Cleanup(web.Close)
		url := web.URL + "/refunds/" + graphtest.ThreadID(t)
		call := func(method, url, body string, header ...string) (int, string) {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
			require.NoError(t, err)
			if len(header) > 0 {
				req.Header.Set(header[0], header[1])
			}
			response, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			require.NoError(t, err)
			return response.StatusCode, string(text)
		}
		status, _ := call(http.MethodGet, url+"/events", "")
		require.Equal(t, http.StatusOK, status)
		status, body := call(http.MethodPut, url, `{"order":"o-7"}`)
		require.Equal(t, http.StatusOK, status, body)
		_, events := call(http.MethodGet, url+"/events", "")
		id, question := "", ""
		for lines := bufio.NewScanner(strings.NewReader(events)); lines.Scan(); {
			if value, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = value
			}
			if at := strings.Index(lines.Text(), "q-"); at >= 0 {
				question = lines.Text()[at : at+len("q-")+8]
			}
		}
		require.NotEmpty(t, question, events)
		for _, repeated := range []bool{false, true} {
			status, body = call(http.MethodPost, url+"/answers", `{"`+question+`":true}`, "Idempotency-Key", "k-1")
			require.Equal(t, http.StatusOK, status, body)
			assert.Equal(t, repeated, strings.Contains(body, `"repeated":true`), body)
			_, events = call(http.MethodGet, url+"/events", "", "Last-Event-ID", id)
			assert.Equal(t, 2, strings.Count(events, "id: "), events)
			assert.Contains(t, events, "event: custom\ndata: \"decided\"")
			assert.Contains(t, events, `data: {"ask":{"result":"refunded"}}`)
		}
		status, _ = call(http.MethodPost, url+"/answers", `{"`+question+`":false}`)
		assert.Equal(t, http.StatusConflict, status)
	}, g)
}

// TestContinueBehindSeveralRuns: a client that took its time continues a thread only when nobody else has since.
func TestContinueBehindSeveralRuns(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	var broken atomic.Bool
	g := rig.Fateful(&broken)
	s.Work(g)
	th := g.Thread(s.Client, s.Queue)
	var runs []string
	for range 3 {
		rig.Invoke(t, th, rig.Wrote("finish"))
		now, err := s.Show(t.Context(), th.ID())
		require.NoError(t, err)
		runs = append(runs, now.RunID)
	}
	for _, behind := range runs[:2] {
		assert.ErrorIs(t, superstep.LaunchBehind(t, s.Client, th.ID(), behind), superstep.ErrRunning)
	}
	now, err := s.Show(t.Context(), th.ID())
	require.NoError(t, err)
	assert.Equal(t, runs[2], now.RunID)
}

// heldGraph has a node that waits for let.
func heldGraph(name string, let <-chan struct{}) *superstep.Graph[rig.Counter] {
	g := superstep.NewStateGraph[rig.Counter](name)
	g.AddNode("held", func(ctx context.Context, s rig.Counter) (rig.Counter, error) {
		select {
		case <-let:
		case <-ctx.Done():
		}
		s.Log.Append("held")
		return s, ctx.Err()
	})
	g.AddEdge(superstep.Start, "held")
	return g.MustCompile()
}

// TestReadersShareOneTail: of one run, however many they are; and nobody follows it when they are gone.
func TestReadersShareOneTail(t *testing.T) {
	const readers = 20
	let := make(chan struct{})
	g := heldGraph("shared_tail", let)
	rt := graphtest.Temporal(t, g)
	th := g.Thread(rt, graphtest.ThreadID(t))
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var begun, done sync.WaitGroup
	begun.Add(readers)
	var parts [readers][]superstep.StreamPart
	for i := range readers {
		done.Go(func() {
			for p, err := range th.Stream(t.Context(), superstep.StreamTasks) {
				if assert.NoError(t, err) && len(parts[i]) == 0 {
					begun.Done()
				}
				parts[i] = append(parts[i], p)
			}
		})
	}
	begun.Wait()
	assert.Equal(t, 1, superstep.Followed(rt))
	close(let)
	done.Wait()
	for i := range readers {
		assert.Len(t, parts[i], 2)
		assert.Equal(t, parts[0], parts[i])
	}
	assert.Equal(t, 0, superstep.Followed(rt))
}

// TestReadersBeyondTheTails look once a second instead.
func TestReadersBeyondTheTails(t *testing.T) {
	let := make(chan struct{})
	g := heldGraph("beyond_tails", let)
	th := g.Thread(graphtest.Temporal(t, g), graphtest.ThreadID(t))
	defer superstep.OccupyTails()()
	require.NoError(t, th.Start(t.Context(), rig.Counter{}))
	var modes []string
	for p, err := range th.Stream(t.Context(), superstep.StreamTasks, superstep.StreamUpdates) {
		require.NoError(t, err)
		if len(modes) == 0 {
			close(let)
		}
		modes = append(modes, string(p.Mode))
	}
	assert.Equal(t, []string{"tasks", "updates", "tasks"}, modes)
}

// TestACancellationSaysWhatItWaitsFor: a call that was under way when its run was cancelled may still arrive, at a target
// that can only be asked. Whoever looks at the thread reads which call is waited for, and until when, and reads it no more
// once the target is asked again.
func TestACancellationSaysWhatItWaitsFor(t *testing.T) {
	const settled = 4 * time.Second // call timeout and settle time
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	pay.Target = superstep.TargetLookupOnly
	var mu sync.Mutex
	var called, asked, answer chan struct{}
	finds := 0
	pay.Do = func(ctx context.Context, _ string, _ rig.Transfer) (rig.Slip, error) {
		close(called)
		<-ctx.Done() // nothing has arrived by then
		return rig.Slip{}, context.Cause(ctx)
	}
	find := pay.Lookup
	pay.Lookup = func(ctx context.Context, key string, p rig.Transfer) (superstep.Finding[rig.Slip], error) {
		mu.Lock()
		finds++
		again := finds == 2
		mu.Unlock()
		if again { // behind the wait
			close(asked)
			<-answer
		}
		return find(ctx, key, p)
	}
	g := superstep.NewStateGraph[rig.Payment]("cancel-waits")
	g.AddEffect(pay)
	g.AddNode("pay", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		_, err := pay.Call(ctx, rig.Transfer{To: "ann", Amount: 1}, superstep.WithCallTimeout(settled-time.Second), superstep.WithSettleTime(time.Second))
		return s, err
	})
	g.AddEdge(superstep.Start, "pay")
	graph := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		mu.Lock()
		finds, called, asked, answer = 0, make(chan struct{}), make(chan struct{}), make(chan struct{})
		mu.Unlock()
		th := graph.Thread(rt, graphtest.ThreadID(t))
		cancelled := func() *superstep.CancelView {
			var view superstep.ThreadView
			var err error
			if m, ok := rt.(*superstep.Memory); ok {
				view, err = superstep.ShowIn(m, graph, th.ID())
			} else {
				view, err = rt.(*superstep.Client).Show(t.Context(), th.ID())
			}
			require.NoError(t, err)
			return view.Cancel
		}
		waits := func() *superstep.SettleView {
			if c := cancelled(); c != nil {
				return c.Waits
			}
			return nil
		}
		require.NoError(t, th.Start(t.Context(), rig.Payment{}))
		<-called
		ended := make(chan error, 1)
		go func() { ended <- th.Cancel(t.Context(), "ordered twice", superstep.CancelCompensate) }()

		var waiting *superstep.SettleView
		require.Eventually(t, func() bool { waiting = waits(); return waiting != nil }, time.Minute, 5*time.Millisecond, "it never said that it waits")
		assert.WithinRange(t, waiting.Until, time.Now(), time.Now().Add(settled))
		assert.Equal(t, "bank.pay", waiting.Effect)
		effects, err := th.Effects(t.Context())
		require.NoError(t, err)
		require.Len(t, effects.Effects, 1)
		assert.Equal(t, effects.Effects[0].Key, waiting.Key)

		<-asked
		assert.False(t, time.Now().Before(waiting.Until), "the target was asked before that")
		require.Eventually(t, func() bool { return waits() == nil }, time.Minute, 5*time.Millisecond, "it waits no more")
		close(answer)
		require.NoError(t, <-ended)
		_, err = th.Wait(t.Context())
		require.ErrorContains(t, err, "ordered twice")
		done := cancelled()
		require.NotNil(t, done)
		assert.Nil(t, done.Waits)
		assert.Equal(t, 1, done.Undone, "it was never made")
		assert.Empty(t, done.Left)
		assert.Equal(t, []string{"pay 1 failed"}, rig.EffectsOf(t, th))
	}, graph)
}
