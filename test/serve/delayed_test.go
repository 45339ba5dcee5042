package main

import (
	"net/http"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run that is put off holds up none of those that are asked for meanwhile. It runs on what they have led to.
func TestARunThatIsPutOffLetsOthersGoFirst(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	at := "/threads/" + id
	step := func(note string, more object) object {
		body := object{"assistant_id": "steps", "input": object{"note": note}}
		for k, v := range more {
			body[k] = v
		}
		return body
	}
	later := w.run(id, step("later", object{"after_seconds": 3600}))
	soon := w.run(id, step("soon", object{"after_seconds": 2}))
	now := w.run(id, step("now", object{"stream_mode": []string{"updates"}}))
	require.Equal(t, 200, w.ask("GET", at+"/runs/"+now+"/join", nil, nil))
	require.Equal(t, []string{"a:now", "b:now", "c:now"}, w.log(id)[:3])
	w.eventually("the run that comes due", func() bool { return len(w.log(id)) == 6 })
	require.Equal(t, []string{"a:soon", "b:soon", "c:soon"}, w.log(id)[3:])

	type of struct {
		ID     string `json:"run_id"`
		Status string
	}
	var runs []of
	require.Equal(t, 200, w.ask("GET", at+"/runs", nil, &runs))
	require.Equal(t, []of{{now, "success"}, {soon, "success"}, {later, "pending"}}, runs, "newest first")
	var past []struct{ Metadata object }
	require.Equal(t, 200, w.ask("POST", at+"/history", object{"limit": 100}, &past))
	var made []string
	for _, s := range slices.Backward(past) {
		made = append(made, s.Metadata["run_id"].(string))
	}
	require.Equal(t, []string{now, soon}, slices.Compact(made), "each checkpoint is of the run that has made it")
	require.Equal(t, 202, w.ask("POST", at+"/runs/"+later+"/cancel", nil, nil))
	w.eventually("the end", func() bool {
		var one of
		return w.ask("GET", at+"/runs/"+later, nil, &one) == 200 && one.Status == "interrupted"
	})
}

// Who follows a thread sees a run that goes before one that is put off.
func TestAThreadsStreamPassesOverARunThatIsPutOff(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	w.run(id, object{"assistant_id": "steps", "input": object{"note": "later"}, "after_seconds": 3600})
	stream, err := http.DefaultClient.Do(w.request("GET", "/threads/"+id+"/stream", nil))
	require.NoError(t, err)
	defer func() { require.NoError(t, stream.Body.Close()) }()
	w.run(id, object{"assistant_id": "steps", "input": object{"note": "now"}, "stream_mode": []string{"updates"}})
	var seen []string
	events(t, stream.Body, func(e sent) bool {
		seen = append(seen, e.Event)
		return len(seen) == 5
	})
	require.Equal(t, []string{"metadata", "updates", "updates", "updates", "metadata"}, seen)
}
