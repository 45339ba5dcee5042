package main

import (
	"fmt"
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
	var made struct {
		Status string
		Values object
	}
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

	require.Equal(t, 200, w.ask("POST", "/threads", object{"metadata": object{"graph_id": "steps"}, "supersteps": []object{
		{"updates": []object{{"values": object{"note": "x"}, "command": nil, "as_node": "__start__"}}},
		{"updates": []object{{"values": object{"log": []string{"one"}}, "command": object{"update": object{"log": []string{"two"}}}, "as_node": "a"}}},
	}}, &made))
	require.Equal(t, []any{"one", "two"}, made.Values["log"], "a command writes too")
	require.Equal(t, 400, w.ask("POST", "/threads", object{"metadata": object{"graph_id": "steps"}, "supersteps": []object{
		{"updates": []object{{"values": nil, "command": object{"goto": "c"}, "as_node": "a"}}},
	}}, nil), "it does not route, and no way is lost")

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
		require.Contains(t, failed.Message, fmt.Sprintf("the recursion limit is %d:", none))
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

// What is no message fails the run, as clients know it, and changes nothing; as an update of a state it is refused.
func TestWhatIsNoMessage(t *testing.T) {
	w := newWorld(t)
	type outcome struct {
		Error    *struct{ Error, Message string } `json:"__error__"`
		Messages []struct{ Type, Content string }
	}
	say := func(thread string, body object) (out outcome) {
		body["assistant_id"] = "chat"
		require.Equal(t, 200, w.ask("POST", "/threads/"+thread+"/runs/wait", body, &out))
		return out
	}
	for _, c := range []struct {
		message    any
		kind, says string
	}{
		{object{"role": "wizard", "content": "x"}, "ValueError", "Unexpected message type: 'wizard'."},
		{object{"type": "HumanMessage", "content": "x"}, "ValueError", "Unexpected message type: 'HumanMessage'."},
		{[]string{"wizard", "x"}, "ValueError", "Unexpected message type: 'wizard'."},
		{object{"content": "x"}, "ValueError", "must contain 'role' and 'content'"},
		{object{"type": "human"}, "ValueError", "must contain 'role' and 'content'"},
		{7, "NotImplementedError", "Unsupported message"},
	} {
		id := w.thread()
		failed := say(id, object{"input": object{"messages": []any{c.message}}}).Error
		require.NotNil(t, failed, "%v", c.message)
		require.Equal(t, c.kind, failed.Error, "%v", c.message)
		require.Contains(t, failed.Message, c.says)
		require.Equal(t, []string{"error"}, w.statuses(id))
		require.Len(t, say(id, object{"input": object{"messages": "hi"}}).Messages, 2, "the thread goes on")
		require.Contains(t, say(id, object{"command": object{"update": object{"messages": []any{c.message}}}}).Error.Message, c.says)
		require.Equal(t, 400, w.ask("POST", "/threads/"+id+"/state", object{"values": object{"messages": []any{c.message}}}, nil))
		require.Equal(t, []string{"error", "success", "error"}, w.statuses(id))
	}
	// JSON of a message in JavaScript is one.
	js := object{"lc": 1, "type": "constructor", "id": []string{"langchain_core", "messages", "HumanMessage"}, "kwargs": object{"content": "hi", "id": "h1"}}
	require.Equal(t, "human", say(w.thread(), object{"input": object{"messages": []any{js}}}).Messages[0].Type)
}

// A message that is not there cannot be removed: the run fails as clients know it, and an update is refused.
func TestAMessageThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	for _, unknown := range []object{{"type": "remove", "id": "no\"pe"}, {"type": "remove", "id": "no\"pe", "content": ""}} {
		id := w.thread()
		run := func(message object) (out struct {
			Error *struct{ Error, Message string } `json:"__error__"`
		}) {
			require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "chat", "input": object{"messages": []object{message}}}, &out))
			return out
		}
		require.Nil(t, run(object{"type": "human", "content": "a", "id": "h1"}).Error)
		failed := run(unknown).Error
		require.NotNil(t, failed)
		require.Equal(t, "ValueError", failed.Error)
		require.Equal(t, `Attempting to delete a message with an ID that doesn't exist ('no"pe')`, failed.Message)
		require.Equal(t, []string{"error", "success"}, w.statuses(id))
		require.Equal(t, 400, w.ask("POST", "/threads/"+id+"/state", object{"values": object{"messages": []object{unknown}}}, nil))
		require.Len(t, w.stand(id).Values["messages"], 2)
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/state", object{"values": object{"messages": []object{{"type": "remove", "id": "h1"}}}}, nil))
		require.Len(t, w.stand(id).Values["messages"], 1)
	}
}

// A run that has nothing to begin with fails under the name that clients know; a run without a thread has no question to answer.
func TestNothingToBeginWith(t *testing.T) {
	w := newWorld(t)
	var out struct {
		Error struct{ Error string } `json:"__error__"`
	}
	for _, path := range []string{"/threads/" + w.thread() + "/runs/wait", "/runs/wait"} {
		require.Equal(t, 200, w.ask("POST", path, object{"assistant_id": "steps", "input": nil}, &out))
		require.Equal(t, "EmptyInputError", out.Error.Error, path)
		out.Error.Error = ""
	}
	for _, path := range []string{"/runs", "/runs/wait", "/runs/stream"} {
		require.Equal(t, 400, w.ask("POST", path, object{"assistant_id": "refund", "command": object{"resume": true}}, nil), path)
	}
	require.Equal(t, 422, w.ask("POST", "/threads/"+w.thread()+"/runs", object{"assistant_id": "steps", "input": object{}, "checkpoint_id": "zz"}, nil))
}

// Threads come in the order of their last change where nothing is said, the newest first.
func TestTheOrderOfThreads(t *testing.T) {
	w := newWorld(t)
	first, second := w.thread(), w.thread()
	search := func(body object) (ids []string) {
		var found []struct {
			ID string `json:"thread_id"`
		}
		body["ids"] = []string{first, second}
		require.Equal(t, 200, w.ask("POST", "/threads/search", body, &found))
		for _, f := range found {
			ids = append(ids, f.ID)
		}
		return ids
	}
	require.Equal(t, []string{second, first}, search(object{}))
	require.Equal(t, 200, w.ask("PATCH", "/threads/"+first, object{"metadata": object{"seen": true}}, nil))
	require.Equal(t, []string{first, second}, search(object{}))
	require.Equal(t, []string{second, first}, search(object{"sort_by": "created_at"}))
}
