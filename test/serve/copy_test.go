package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// copied is what a thread and its copy have in common.
type copied struct {
	Values map[string]any `json:"values"`
	Next   []string       `json:"next"`
	At     struct {
		Checkpoint string `json:"checkpoint_id"`
	} `json:"checkpoint"`
	Metadata map[string]any `json:"metadata"`
	Created  string         `json:"created_at"`
	Tasks    []struct {
		ID         string `json:"id"`
		Name       string `json:"name"`
		Interrupts []struct {
			ID string `json:"id"`
		} `json:"interrupts"`
	} `json:"tasks"`
}

// history is all that a thread has come by, newest first.
func (w *world) history(thread string) (all []copied) {
	require.Equal(w, 200, w.ask("POST", "/threads/"+thread+"/history", object{"limit": 100}, &all))
	for _, c := range all {
		require.Equal(w, thread, c.Metadata["thread_id"])
		delete(c.Metadata, "thread_id")
	}
	return all
}

// copy copies a thread.
func (w *world) copy(thread string) string {
	var made struct {
		ID string `json:"thread_id"`
	}
	require.Equal(w, 200, w.ask("POST", "/threads/"+thread+"/copy", nil, &made))
	require.NotEqual(w, thread, made.ID)
	return made.ID
}

// status is a thread's.
func (w *world) status(thread string) string {
	var t struct{ Status string }
	require.Equal(w, 200, w.ask("GET", "/threads/"+thread, nil, &t))
	return t.Status
}

// A copy has the history of the thread that it was copied from, and goes on by itself: each of the two is answered on its own.
func TestACopyHasTheHistory(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "refund", "input": object{"order_id": "o-2"}}, nil))
	before := w.history(id)
	require.NotEmpty(t, before[0].Tasks[0].Interrupts)
	require.NotEmpty(t, before[0].Metadata["run_id"])

	as := w.copy(id)
	require.Equal(t, before, w.history(as), "the copy has come by the same checkpoints, and asks the same")
	require.Equal(t, "interrupted", w.status(as))

	// The first one goes on. The copy does not see that.
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "refund", "command": object{"resume": true}}, nil))
	require.Equal(t, before, w.history(as))
	var ended object
	require.Equal(t, 200, w.ask("POST", "/threads/"+as+"/runs/wait", object{"assistant_id": "refund", "command": object{"resume": false}}, &ended))
	require.NotContains(t, ended, "__error__")
	after := w.history(as)
	require.Equal(t, before[1:], after[len(after)-len(before)+1:])
	require.Equal(t, false, after[0].Values["approved"])
	require.Equal(t, true, w.history(id)[0].Values["approved"])

	// A copy of a copy has what both have come by; a checkpoint of the first one runs on in it as a branch.
	third := w.copy(as)
	require.Equal(t, after, w.history(third))
	first := after[len(after)-1].At.Checkpoint
	var one copied
	require.Equal(t, 200, w.ask("GET", "/threads/"+third+"/state/"+first, nil, &one))
	require.Equal(t, after[len(after)-1].Values, one.Values)
	require.Equal(t, after[len(after)-1].At, one.At)
	require.Equal(t, 200, w.ask("POST", "/threads/"+third+"/runs/wait", object{"assistant_id": "refund", "input": nil,
		"checkpoint_id": after[len(after)-2].At.Checkpoint}, nil))
	require.Equal(t, "interrupted", w.status(third))

	// What is copied stays when the thread that it was copied from is deleted: the state, and what was made since.
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+id, nil, nil))
	require.Equal(t, after[0].Values, w.history(as)[0].Values)
	require.Equal(t, "idle", w.status(as))
}

// A thread is copied while a run of it is under way too: the copy stands at the newest checkpoint, and nothing runs in it until somebody
// goes on with it.
func TestACopyOfABusyThread(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	run := w.run(id, object{"assistant_id": "slow", "input": object{"steps": 1, "delay_ms": 60000}})
	w.eventually("the run is under way", func() bool {
		all := w.history(id)
		return len(all) > 0 && len(all[0].Next) > 0
	})
	as := w.copy(id)
	all := w.history(as)
	require.Equal(t, w.history(id)[0].Next, all[0].Next)
	var runs []object
	require.Equal(t, 200, w.ask("GET", "/threads/"+as+"/runs", nil, &runs))
	require.Empty(t, runs)
	require.NotEqual(t, "busy", w.status(as))
	require.Equal(t, 202, w.ask("POST", "/threads/"+id+"/runs/"+run+"/cancel", nil, nil))
}

// A thread without a state is copied without one.
func TestACopyOfNothing(t *testing.T) {
	w := newWorld(t)
	as := w.copy(w.thread())
	require.Empty(t, w.history(as))
	require.Equal(t, "idle", w.status(as))
	require.Equal(t, 200, w.ask("POST", "/threads/"+as+"/runs/wait", object{"assistant_id": "refund", "input": object{"order_id": "o-2"}}, nil))
	require.Equal(t, "interrupted", w.status(as))
}

// A server that is killed while it copies has made the copy, or leaves the rest to the next one: what is found stands where the thread stands.
func TestACopyOfAKilledServer(t *testing.T) {
	w := newWorld(t)
	var made struct {
		ID string `json:"thread_id"`
	}
	mark := object{"copied": uuid.NewString()}
	require.Equal(t, 200, w.ask("POST", "/threads", object{"metadata": mark}, &made))
	require.Equal(t, 200, w.ask("POST", "/threads/"+made.ID+"/runs/wait", object{"assistant_id": "refund", "input": object{"order_id": "o-2"}}, nil))
	before := w.history(made.ID)
	for i := range 6 {
		request := w.request("POST", "/threads/"+made.ID+"/copy", nil)
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			if answer, err := http.DefaultClient.Do(request); err == nil {
				_ = answer.Body.Close()
			}
		}()
		select {
		case <-sent:
		case <-time.After(time.Duration(i*i) * time.Millisecond):
		}
		require.NoError(t, w.serve.Kill())
		<-sent
		w.startServe()
	}
	w.eventually("every copy stands", func() bool {
		var found []struct {
			ID     string `json:"thread_id"`
			Status string `json:"status"`
		}
		require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": mark, "limit": 100}, &found))
		for _, f := range found {
			if f.Status != "interrupted" || !assert.ObjectsAreEqual(before, w.history(f.ID)) {
				return false
			}
		}
		t.Log(len(found)-1, "of 6 were copied")
		return true
	})
}
