package main

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// stand is how a thread stands.
type stand struct {
	Values   object   `json:"values"`
	Next     []string `json:"next"`
	Metadata object   `json:"metadata"`
}

func (w *world) stand(thread string) (s stand) {
	w.Helper()
	require.Equal(w, 200, w.ask("GET", "/threads/"+thread+"/state", nil, &s))
	return s
}

func TestAThreadIsMadeWithAState(t *testing.T) {
	w := newWorld(t)
	id := uuid.NewString()
	body := object{"thread_id": id, "if_exists": "do_nothing", "metadata": object{"graph_id": "steps"}, "supersteps": []object{
		{"updates": []object{{"values": object{"note": "x"}, "as_node": "a"}}},
		{"updates": []object{{"values": object{"log": []string{"made"}}, "as_node": "b"}}},
	}}
	// A server that was killed between the two has left the thread alone: the same request makes its state, once.
	require.Equal(t, 200, w.ask("POST", "/threads", object{"thread_id": id, "metadata": object{"graph_id": "steps"}}, nil))
	var made struct{ Status string }
	for range 2 {
		require.Equal(t, 200, w.ask("POST", "/threads", body, &made))
		require.Equal(t, "interrupted", made.Status)
		require.NoError(t, w.serve.Kill())
		w.startServe()
	}
	s := w.stand(id)
	require.Equal(t, []string{"c"}, s.Next)
	require.Equal(t, object{"note": "x", "log": []any{"made"}}, s.Values)
	var values object
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": nil}, &values))
	require.Equal(t, []any{"made", "c:x"}, values["log"])

	bad := uuid.NewString()
	for status, steps := range map[int]any{400: []object{{"updates": []object{{"values": object{}, "as_node": "nope"}}}}, 422: []object{{}}} {
		require.Equal(t, status, w.ask("POST", "/threads", object{"thread_id": bad, "metadata": object{"graph_id": "steps"}, "supersteps": steps}, nil))
		require.Equal(t, 404, w.ask("GET", "/threads/"+bad, nil, nil), "a thread whose state is refused is not made")
	}
}

func TestLimitsThatAreNone(t *testing.T) {
	w := newWorld(t)
	var made struct {
		ID string `json:"thread_id"`
	}
	for _, ttl := range []any{5, object{"ttl": "5"}, object{"ttl": 5, "strategy": "nope"}} {
		require.Equal(t, 422, w.ask("POST", "/threads", object{"ttl": ttl}, nil), "%v", ttl)
	}
	require.Equal(t, 200, w.ask("POST", "/threads", object{"ttl": object{"ttl": 5, "strategy": "keep_latest"}}, &made))
	require.Equal(t, 422, w.ask("PATCH", "/threads/"+made.ID, object{"ttl": object{"strategy": "nope"}}, nil))
	run := func(limit any) (out struct {
		Error *struct{ Error, Message string } `json:"__error__"`
	}) {
		require.Equal(t, 200, w.ask("POST", "/threads/"+made.ID+"/runs/wait",
			object{"assistant_id": "steps", "input": object{}, "config": object{"recursion_limit": limit}}, &out))
		return out
	}
	for _, none := range []int{0, -1} {
		failed := run(none).Error
		require.NotNil(t, failed, "a run of %d supersteps", none)
		require.Contains(t, failed.Message, "recursion limit")
	}
	require.Nil(t, run(25).Error)
	require.Equal(t, []string{"success", "error", "error"}, w.statuses(made.ID))
}

func TestAStateBeforeTheFirstRun(t *testing.T) {
	w := newWorld(t)
	var made struct {
		ID string `json:"thread_id"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads", object{"metadata": object{"graph_id": "steps"}}, &made))
	require.Equal(t, 200, w.ask("POST", "/threads/"+made.ID+"/state", object{"values": object{"note": "y"}, "as_node": "a"}, nil))
	require.Equal(t, []string{"b"}, w.stand(made.ID).Next)
	require.Equal(t, 400, w.ask("POST", "/threads/"+w.thread()+"/state", object{"values": object{"note": "y"}}, nil), "no graph")
}

func TestSettingsThatAGraphDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	require.Equal(t, 200, w.ask("PATCH", "/threads/"+id, object{"metadata": object{"of": "thread"}}, nil))
	var values object
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "greet", "input": object{"name": "Ann"},
		"metadata": object{"ticket": "7"}, "config": object{"configurable": object{"user": "eve", "page": 3, "list": []int{1}, "OpenAI_API_key": "sk-1"}, "metadata": object{"from": "config"}}}, &values))
	require.Equal(t, "Good day, Ann (from eve)", values["greeting"])
	metadata := w.stand(id).Metadata
	require.Subset(t, metadata, object{"ticket": "7", "from": "config", "of": "thread", "user": "eve", "page": 3.0})
	require.NotContains(t, metadata, "list", "plain values only")
	require.NotContains(t, metadata, "OpenAI_API_key", "whoever reads a state does not read secrets")
	var runs []struct{ Metadata object }
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/runs", nil, &runs))
	require.Subset(t, runs[0].Metadata, object{"ticket": "7", "from": "config", "of": "thread", "graph_id": "greet"})
}

// Threads of a list are deleted; what is not there is passed over, and what is no id deletes none.
func TestPrune(t *testing.T) {
	w := newWorld(t)
	kept, gone := w.thread(), w.thread()
	w.run(gone, object{"assistant_id": "steps", "input": object{"note": "x"}})
	w.eventually("its end", func() bool { return w.statuses(gone)[0] == "success" })
	require.Equal(t, 422, w.ask("POST", "/threads/prune", object{"thread_ids": []string{gone, "x"}}, nil))
	require.Equal(t, 422, w.ask("POST", "/threads/prune", object{"thread_ids": []string{gone}, "strategy": "keep_latest"}, nil))
	require.Equal(t, 200, w.ask("GET", "/threads/"+gone, nil, nil))
	var out struct {
		Count int `json:"pruned_count"`
	}
	require.Equal(t, 200, w.ask("POST", "/threads/prune", object{"thread_ids": []string{gone, uuid.NewString()}, "strategy": "delete"}, &out))
	require.Equal(t, 1, out.Count)
	require.Equal(t, 404, w.ask("GET", "/threads/"+gone, nil, nil))
	require.Equal(t, 200, w.ask("GET", "/threads/"+kept, nil, nil))
}
