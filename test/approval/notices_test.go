package approval_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/webhook"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

const noticeSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// listener is a receiver of notices.
type listener struct {
	t      *testing.T
	web    *httptest.Server
	mu     sync.Mutex
	fails  int // so many of the next requests are answered with 503
	asked  int // requests
	told   []approval.Notice
	bodies []string
	news   chan struct{} // gets a value after each request, if there is room
}

// down is how many failures are for ever.
const down = 1 << 30

func listen(t *testing.T, fails int) *listener {
	l := &listener{t: t, fails: fails, news: make(chan struct{}, 1)}
	l.web = httptest.NewServer(l)
	t.Cleanup(l.web.Close)
	return l
}

func (l *listener) notifier() approval.Notifier {
	l.t.Helper()
	n, err := webhook.New(webhook.Config{URLs: []string{l.web.URL}, Secret: noticeSecret})
	require.NoError(l.t, err)
	return n
}

// ServeHTTP implements http.Handler.
func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	n, err := webhook.Verify(noticeSecret, r.Header, body)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	switch {
	case err != nil:
		w.WriteHeader(http.StatusUnauthorized)
	case l.fails > 0:
		l.fails--
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		l.told, l.bodies = append(l.told, n), append(l.bodies, string(body))
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *listener) set(fails int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = fails
}

// await waits until that is so of the requests, and returns what was told.
func (l *listener) await(so func(requests int, told []approval.Notice) bool) []approval.Notice {
	l.t.Helper()
	late := time.After(2 * time.Minute) // the waits between attempts grow
	for {
		l.mu.Lock()
		told, done := slices.Clone(l.told), so(l.asked, l.told)
		l.mu.Unlock()
		if done {
			return told
		}
		select {
		case <-l.news:
		case <-late:
			require.FailNow(l.t, "nobody was told", "told so far: %v", told)
		}
	}
}

func someTold(n int) func(int, []approval.Notice) bool {
	return func(_ int, told []approval.Notice) bool { return len(told) >= n }
}

func someTried(n int) func(int, []approval.Notice) bool {
	return func(requests int, _ []approval.Notice) bool { return requests >= n }
}

// kindsTold are what was told, each thing once however often a receiver got it.
func kindsTold(told []approval.Notice) (out []approval.Kind) {
	seen := map[string]bool{}
	for _, n := range told {
		if !seen[n.ID] {
			seen[n.ID] = true
			out = append(out, n.Kind)
		}
	}
	return out
}

type telling struct {
	Said superstep.Value[string] `json:"said"`
}

// questioning is a graph that asks, and then asks for an approval that expires at once.
func questioning(within time.Duration) *superstep.Graph[telling] {
	g := superstep.NewStateGraph[telling]("asking")
	g.AddNode("ask", func(ctx context.Context, s telling) (telling, error) {
		yes, err := superstep.Interrupt[bool](ctx, "Refund 250.00 to order o-7?")
		if err != nil {
			return s, err
		}
		s.Said.Set(map[bool]string{true: "yes", false: "no"}[yes])
		return s, nil
	})
	g.AddEdge(superstep.Start, "ask")
	if within > 0 {
		g.AddNode("approve", func(ctx context.Context, s telling) (telling, error) {
			d, err := superstep.Approve(ctx, approval.Action{Tool: "refund", Summary: "Refund 250.00", Risk: approval.RiskHigh,
				Params: json.RawMessage(`{"card": "4111"}`), Within: within.Milliseconds(), Approvers: []string{"ann"}})
			if err != nil {
				return s, err
			}
			s.Said.Set(string(d.Verdict))
			return s, nil
		})
		g.AddEdge("ask", "approve")
	}
	return g.MustCompile()
}

// TestAQuestionIsTold once, by a receiver that fails first, and so is its answer. A worker that tells nobody has no event
// for it.
func TestAQuestionIsTold(t *testing.T) {
	t.Parallel()
	s, l := rig.NewServer(t), listen(t, 3)
	g := questioning(0)
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Notify: l.notifier()})
	thread := g.Thread(s.Client, s.Queue)
	result, err := thread.Invoke(t.Context(), telling{})
	require.NoError(t, err)
	told := l.await(someTold(1))
	require.Equal(t, approval.Notice{ID: told[0].ID, Kind: approval.KindAsked, At: told[0].At, Thread: s.Queue, Graph: "asking", Node: "ask",
		Question: result.Questions[0].ID, Summary: "Refund 250.00 to order o-7?"}, told[0])

	_, err = thread.Resume(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindAnswered}, kindsTold(l.await(someTold(2))))

	quiet := rig.NewServer(t)
	quiet.Work(g)
	_, err = g.Thread(quiet.Client, quiet.Queue).Invoke(t.Context(), telling{})
	require.NoError(t, err)
	require.Zero(t, quiet.Activities(quiet.Queue, "superstep.notify"))
}

// TestAnotherWorkerTells what the first one could not.
func TestAnotherWorkerTells(t *testing.T) {
	t.Parallel()
	s, l := rig.NewServer(t), listen(t, down)
	g := questioning(0)
	serves := superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Notify: l.notifier()}
	stop := s.WorkWith(serves)
	_, err := g.Thread(s.Client, s.Queue).Invoke(t.Context(), telling{})
	require.NoError(t, err)
	l.await(someTried(1))
	stop()
	l.set(0)
	s.WorkWith(serves)
	require.Equal(t, []approval.Kind{approval.KindAsked}, kindsTold(l.await(someTold(1))))
}

// TestNobodyWaitsForAReceiver: a run whose receiver is down for all its life goes through as any other. What is still news
// then is told behind it; that somebody should answer is none.
func TestNobodyWaitsForAReceiver(t *testing.T) {
	t.Parallel()
	s, l := rig.NewServer(t), listen(t, down)
	g := questioning(200 * time.Millisecond)
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Notify: l.notifier()})
	th := g.Thread(s.Client, s.Queue)
	_, err := th.Invoke(t.Context(), telling{})
	require.NoError(t, err)
	_, err = th.Resume(t.Context(), true)
	require.NoError(t, err)
	for result := (superstep.Result[telling]{}); result.Status != thread.StatusFinished; {
		result, err = th.Wait(t.Context()) // until the approval has expired
		require.NoError(t, err)
		if result.Status == thread.StatusFinished {
			require.Equal(t, "expired", result.Output.Said.Get())
		}
	}
	l.set(0)
	told := l.await(someTold(2))
	require.ElementsMatch(t, []approval.Kind{approval.KindAnswered, approval.KindExpired}, kindsTold(told))
	at := slices.IndexFunc(told, func(n approval.Notice) bool { return n.Kind == approval.KindExpired })
	require.Equal(t, "Refund 250.00", told[at].Summary)
	require.Equal(t, approval.RiskHigh, told[at].Risk)
	require.NotContains(t, strings.Join(l.bodies, ""), "4111", "parameters stay here")
}

// TestNoticesGoOnInTheNextRun: a run that is continued as a new one takes along what it has not told.
func TestNoticesGoOnInTheNextRun(t *testing.T) {
	t.Parallel()
	s, l := rig.NewServerThatContinues(t, protocol.ContinueAt{Events: 1, Life: 1}), listen(t, down)
	g := questioning(0)
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, Notify: l.notifier()})
	th := g.Thread(s.Client, s.Queue)
	_, err := th.Invoke(t.Context(), telling{})
	require.NoError(t, err)
	l.await(someTried(1))
	for n := 0; s.Continued(s.Queue) == 0; n++ {
		require.Less(t, n, 50, "it is not continued")
		_, err = s.Pause(t.Context(), thread.PauseRequest{Thread: s.Queue, Reason: "to make events"})
		require.NoError(t, err)
		_, err = s.Unpause(t.Context(), thread.PauseRequest{Thread: s.Queue})
		require.NoError(t, err)
	}
	l.set(0)
	require.Equal(t, []approval.Kind{approval.KindAsked}, kindsTold(l.await(someTold(1))))
	result, err := th.Resume(t.Context(), true)
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	require.Equal(t, []approval.Kind{approval.KindAsked, approval.KindAnswered}, kindsTold(l.await(someTold(2))))
}
