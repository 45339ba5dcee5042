package main

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// A checkpoint that only the configuration names counts: programs name it there, and so does the second version's hook when somebody
// edits what was said.
func TestACheckpointOfTheConfiguration(t *testing.T) {
	w := newWorld(t)
	at := func(id string) object { // behind the first run
		all := w.history(id)
		slices.Reverse(all)
		for _, s := range all {
			if fmt.Sprint(s.Values["log"]) == "[a:one b:one c:one]" {
				return object{"configurable": object{"checkpoint_id": s.At.Checkpoint}}
			}
		}
		require.Fail(t, "the first run has left no checkpoint")
		return nil
	}
	wanted := []string{"a:one", "b:one", "c:one", "a:three", "b:three", "c:three"}
	for _, how := range []string{"run", "command"} {
		id := w.thread()
		for _, note := range []string{"one", "two"} {
			require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": object{"note": note}}, nil))
		}
		body := object{"assistant_id": "steps", "input": object{"note": "three"}, "config": at(id)}
		if how == "run" {
			require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", body, nil))
		} else {
			w.command(id, "run.start", body)
			w.eventually("the run", func() bool { return w.statuses(id)[0] == "success" })
		}
		require.Equal(t, wanted, w.log(id), how)
	}
}

// Who answers one of two questions is told last of the values with what the answer led to, and the run has what came with the answer.
func TestValuesBehindAPartOfTheAnswers(t *testing.T) {
	w := newWorld(t)
	id := uuid.NewString()
	w.command(id, "run.start", object{"assistant_id": "panel", "input": object{"subject": "s"}})
	var legal string
	for _, e := range w.eventsOf(id, object{"channels": everything}, over) {
		if e.Method == "input.requested" && strings.Contains(fmt.Sprint(e.Params.Data["payload"]), "legal") {
			legal, _ = e.Params.Data["interrupt_id"].(string)
		}
	}
	through := w.command(id, "input.respond", object{"namespace": []string{}, "interrupt_id": legal, "response": "yes", "metadata": object{"by": "ann"}})
	w.eventually("the second run", func() bool { return slices.Equal([]string{"success", "success"}, w.statuses(id)) })
	values := 0
	var last any
	w.eventsOf(id, object{"channels": everything, "since": through}, func(e told) bool {
		if e.Method == "values" {
			values, last = values+1, e.Params.Data["votes"]
		}
		return values == 3
	})
	require.Equal(t, []any{"legal: yes"}, last)
	var runs []struct {
		Metadata object `json:"metadata"`
	}
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/runs", nil, &runs))
	require.Equal(t, "ann", runs[0].Metadata["by"])
}

// Clients ask for the events of a thread before their first command makes it, also at another server: nothing of its runs is missed.
func TestEventsOfAThreadThatIsNotThereYet(t *testing.T) {
	w := newWorld(t)
	other := *w
	other.startServe()
	id := uuid.NewString()
	here, there := w.follow(id, object{"channels": everything}, over), other.follow(id, object{"channels": everything}, over)
	w.command(id, "run.start", object{"assistant_id": "steps", "input": object{"note": "x"}})
	all := <-here
	require.True(t, all[0].is("running"))
	require.True(t, all[len(all)-1].is("completed"))
	require.Equal(t, all, <-there)
}

// Nobody gets the events of a thread that somebody else makes, however early they ask for them.
func TestEventsOfAThreadThatSomebodyElseMakes(t *testing.T) {
	w, _, _, bob, _ := keyed(t)
	id := uuid.NewString()
	req := w.as(bob).request("POST", "/threads/"+id+"/stream/events", strings.NewReader(`{"channels": ["values", "lifecycle"]}`))
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	w.command(id, "run.start", object{"assistant_id": "steps", "input": object{"note": "x"}})
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Empty(t, strings.ReplaceAll(strings.TrimSpace(string(text)), ": heartbeat", ""))
	require.Equal(t, 404, w.as(bob).ask("POST", "/threads/"+id+"/stream/events", object{"channels": everything}, nil))
}

// Metadata that a thread cannot keep is refused, at once or piece by piece, and the thread goes on as it was: it can be read, found and
// deleted.
func TestMetadataThatIsTooLarge(t *testing.T) {
	w := newWorld(t)
	large := func(n int) object { return object{fmt.Sprint("k", n): strings.Repeat("x", 20_000)} }
	require.Equal(t, 422, w.ask("POST", "/threads", object{"metadata": object{"k": strings.Repeat("x", 3<<20)}}, nil))
	id := w.thread()
	for n := range 3 {
		require.Equal(t, 200, w.ask("PATCH", "/threads/"+id, object{"metadata": large(n)}, nil))
	}
	require.Equal(t, 422, w.ask("PATCH", "/threads/"+id, object{"metadata": large(3)}, nil))
	require.Equal(t, 200, w.ask("PATCH", "/threads/"+id, object{"metadata": large(2)}, nil), "the same again is not more")
	for _, body := range []object{{"metadata": object{"k": strings.Repeat("x", 70_000)}}, {"config": object{"metadata": object{"k": strings.Repeat("x", 70_000)}}}} {
		body["assistant_id"], body["input"] = "steps", object{"note": "x"}
		require.Equal(t, 422, w.ask("POST", "/threads/"+id+"/runs", body, nil))
		require.Equal(t, 422, w.ask("POST", "/runs/wait", body, nil))
	}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": object{"note": "x"}, "metadata": large(4)}, nil))
	var found []struct {
		ID string `json:"thread_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": large(1)}, &found))
	require.Len(t, found, 1)
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+id, nil, nil))
	require.Equal(t, 404, w.ask("GET", "/threads/"+id, nil, nil))
}
