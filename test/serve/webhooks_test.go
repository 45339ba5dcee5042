package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// hook is a receiver of webhooks, which takes none as long as it is broken.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	broken bool
	tried  int
	told   []hookTold
}

type hookTold struct {
	Run    string         `json:"run_id"`
	Status string         `json:"status"`
	Values map[string]any `json:"values"`
	Error  struct {
		Type string `json:"error"`
	} `json:"error"`
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		var told hookTold
		if h.tried++; h.broken || json.NewDecoder(r.Body).Decode(&told) != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		h.told = append(h.told, told)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) is(broken bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken = broken
}

func (h *hook) tries() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.tried
}

// of is what was told of a run, nil for nothing.
func (h *hook) of(run string) *hookTold {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range h.told {
		if h.told[i].Run == run {
			return &h.told[i]
		}
	}
	return nil
}

// A receiver that is away holds up no other run of the thread. When it is back it is told what the run had led to, whatever came after
// it, also where the server was killed meanwhile.
func TestAWebhookHoldsUpNoRun(t *testing.T) {
	w, h := newWorld(t, "--webhooks-anywhere"), newHook(t)
	h.is(true)
	id := w.thread()
	first := w.run(id, object{"assistant_id": "steps", "input": object{"note": "x"}, "webhook": h.URL})
	w.eventually("a try", func() bool { return h.tries() > 0 })
	var values struct{ Log []string }
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": object{"note": "y"}}, &values))
	require.Equal(t, []string{"a:x", "b:x", "c:x", "a:y", "b:y", "c:y"}, values.Log)
	require.Less(t, h.tries(), 5, "the second run did not wait until nobody tries any more")
	require.NoError(t, w.serve.Kill())
	h.is(false)
	w.startServe()
	w.eventually("the word", func() bool { return h.of(first) != nil })
	told := h.of(first)
	require.Equal(t, "success", told.Status)
	require.Equal(t, []any{"a:x", "b:x", "c:x"}, told.Values["log"], "not what the run after it has led to")
}

// A thread that is deleted while a webhook is still to be told is gone at once, and its id is free; the webhook is told all the same.
func TestAThreadThatIsDeletedBeforeItsWebhookIsTold(t *testing.T) {
	w, h := newWorld(t, "--webhooks-anywhere"), newHook(t)
	h.is(true)
	id := w.thread()
	run := w.run(id, object{"assistant_id": "steps", "input": object{"note": "x"}, "webhook": h.URL})
	w.eventually("a try", func() bool { return h.tries() > 0 })
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+id, nil, nil))
	require.Equal(t, 200, w.ask("POST", "/threads", object{"thread_id": id}, nil))
	require.Empty(t, w.statuses(id))
	h.is(false)
	w.eventually("the word", func() bool { return h.of(run) != nil })
	require.Equal(t, "success", h.of(run).Status)
}

// A webhook is told of every run that began, also of one that somebody took back, and of one whose thread is its own.
func TestWebhooksOfRunsThatEndEarly(t *testing.T) {
	w, h := newWorld(t, "--webhooks-anywhere"), newHook(t)
	for action, wanted := range map[string][]string{"interrupt": {"interrupted", "UserInterrupt"}, "rollback": {"rollback", "UserRollback"}} {
		id := w.thread()
		run := w.run(id, object{"assistant_id": "slow", "input": object{"steps": 1000, "delay_ms": 50}, "webhook": h.URL})
		w.eventually("a tick", func() bool { return len(w.log(id)) > 0 })
		require.Equal(t, 202, w.ask("POST", "/threads/"+id+"/runs/"+run+"/cancel?action="+action, nil, nil))
		w.eventually("the word of "+action, func() bool { return h.of(run) != nil })
		require.Equal(t, wanted, []string{h.of(run).Status, h.of(run).Error.Type})
		require.Equal(t, action == "rollback", h.of(run).Values == nil)
	}
	var made struct {
		Run    string `json:"run_id"`
		Thread string `json:"thread_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/runs", object{"assistant_id": "fails", "input": object{"word": "bad"}, "webhook": h.URL}, &made))
	w.eventually("the word of a thread of its own", func() bool { return h.of(made.Run) != nil })
	require.Equal(t, []any{"first"}, h.of(made.Run).Values["log"])
	require.Equal(t, "error", h.of(made.Run).Status)
	w.eventually("its end", func() bool { return w.ask("GET", "/threads/"+made.Thread, nil, nil) == 404 })
}

// What a server was at when it was killed another one takes up before long: a run that was just to begin waits no minute.
func TestWhatAKilledServerWasAt(t *testing.T) {
	w := newWorld(t, "--webhooks-anywhere")
	tried, free := make(chan struct{}, 10), make(chan struct{})
	var first sync.Once
	h := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		tried <- struct{}{}
		first.Do(func() {
			select { // the first try is under way when the server is killed
			case <-free:
			case <-r.Context().Done():
			}
		})
	}))
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(free) })
	w.run(w.thread(), object{"assistant_id": "steps", "input": object{"note": "x"}, "webhook": h.URL})
	<-tried
	require.NoError(t, w.serve.Kill())
	began := time.Now()
	w.startServe()
	select {
	case <-tried:
	case <-time.After(2 * time.Minute):
		require.Fail(t, "nobody tries again")
	}
	require.Less(t, time.Since(began), 40*time.Second)
}
