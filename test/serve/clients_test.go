package main

import (
	"fmt"
	"slices"
	"testing"

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
