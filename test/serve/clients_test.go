package main

import (
	"fmt"
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
