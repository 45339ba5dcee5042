package main

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Updates of a state that come at once are all taken, one after the other.
func TestUpdatesAtOnce(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": object{}}, nil))
	const atOnce = 8
	var all sync.WaitGroup
	var statuses [atOnce]int
	var want []string
	for n := range atOnce {
		line := fmt.Sprint("update ", n)
		want = append(want, line)
		all.Go(func() {
			statuses[n] = w.ask("POST", "/threads/"+id+"/state", object{"values": object{"log": []string{line}}, "as_node": "c"}, nil)
		})
	}
	all.Wait()
	for _, status := range statuses {
		require.Equal(t, 200, status, "%v", statuses)
	}
	log := w.log(id)[3:]
	slices.Sort(log)
	require.Equal(t, want, log)
}

// A run that somebody pauses outside ends with an error that says so, and so does one that comes then. When it is unpaused it goes on, and the
// thread takes runs again.
func TestAThreadThatIsPaused(t *testing.T) {
	w := newWorld(t)
	s := newSpeaker(w)
	id := w.thread()
	run := w.run(id, object{"assistant_id": "tells", "input": s.input(1)})
	w.eventually("it runs", func() bool { return w.statuses(id)[0] == "running" })
	w.superstep("pause", id, "--reason", "the books are closed")
	s.upto(2)
	var out struct {
		Error struct{ Error, Message string } `json:"__error__"`
	}
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/runs/"+run+"/join", nil, &out))
	require.Equal(t, "ThreadPaused", out.Error.Error)
	require.Contains(t, out.Error.Message, "(the books are closed)")
	next := object{"assistant_id": "tells", "input": s.input(1)}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", next, &out))
	require.Equal(t, "ThreadPaused", out.Error.Error)
	require.Contains(t, out.Error.Message, "takes no run until it is unpaused")
	require.Equal(t, []string{"error", "error"}, w.statuses(id))
	require.Equal(t, "error", w.status(id))

	w.superstep("unpause", id)
	w.eventually("it goes on to its end", func() bool {
		var state struct {
			Next []string `json:"next"`
		}
		return w.ask("GET", "/threads/"+id+"/state", nil, &state) == 200 && len(state.Next) == 0
	})
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", next, nil))
	require.Equal(t, []string{"success", "error", "error"}, w.statuses(id))
}
