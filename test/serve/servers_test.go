package main

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// Two servers stand in front of one cluster: what is begun at one is streamed, waited for, answered and cancelled at the other, and each
// knows at once what the other has changed of a thread.
func TestTwoServers(t *testing.T) {
	w := newWorld(t)
	other := *w
	other.startServe()
	require.NotEqual(t, w.base, other.base)
	slow := func(steps int) object {
		return object{"assistant_id": "slow", "input": object{"steps": steps, "delay_ms": 150}, "stream_mode": []string{"updates"}, "stream_resumable": true}
	}
	id := w.thread()
	run := w.run(id, slow(6))
	at := "/threads/" + id + "/runs/" + run
	req := other.request("GET", at+"/stream", nil)
	req.Header.Set("Last-Event-ID", "-1")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var values struct{ Log []string }
	require.Equal(t, 200, other.ask("GET", at+"/join", nil, &values))
	require.Len(t, values.Log, 6)
	require.Len(t, events(t, resp.Body, func(sent) bool { return false }), 1+6)
	require.Equal(t, []string{"success"}, w.statuses(id))

	next := other.run(id, slow(3000))
	waiting := other.run(id, slow(10))
	w.eventually("both are there at the other", func() bool { return slices.Equal([]string{"pending", "running", "success"}, w.statuses(id)) })
	require.Equal(t, 409, w.ask("POST", "/threads/"+id+"/runs", object{"assistant_id": "slow", "multitask_strategy": "reject"}, nil))
	ended := make(chan int, 1)
	go func() { ended <- other.ask("GET", "/threads/"+id+"/runs/"+next+"/join", nil, nil) }()
	require.Equal(t, 202, w.ask("POST", "/threads/"+id+"/runs/"+waiting+"/cancel", nil, nil))
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/"+next+"/cancel?wait=1", nil, nil))
	require.Equal(t, 200, <-ended, "who waits at the other server is answered")
	require.Equal(t, []string{"interrupted", "interrupted", "success"}, other.statuses(id))

	asks := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+asks+"/runs/wait", object{"assistant_id": "refund", "input": object{"order_id": "o-2"}}, nil))
	var paid object
	require.Equal(t, 200, other.ask("POST", "/threads/"+asks+"/runs/wait", object{"assistant_id": "refund", "command": object{"resume": true}}, &paid))
	require.Equal(t, true, paid["approved"])
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+asks, nil, nil))
	require.Equal(t, 404, other.ask("GET", "/threads/"+asks, nil, nil))
}

// newNamespace makes another namespace, with the search attributes of the usual one.
func newNamespace(w *world) string {
	c, err := client.Dial(client.Options{HostPort: w.address})
	require.NoError(w, err)
	defer c.Close()
	name := "other-" + uuid.NewString()
	_, err = c.WorkflowService().RegisterNamespace(w.Context(), &workflowservice.RegisterNamespaceRequest{Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
	require.NoError(w, err)
	usual, err := c.OperatorService().ListSearchAttributes(w.Context(), &operatorservice.ListSearchAttributesRequest{Namespace: client.DefaultNamespace})
	require.NoError(w, err)
	w.eventually("the namespace has its search attributes", func() bool {
		_, err := c.OperatorService().AddSearchAttributes(w.Context(), &operatorservice.AddSearchAttributesRequest{Namespace: name, SearchAttributes: usual.GetCustomAttributes()})
		return err == nil
	})
	return name
}

// The threads of another namespace are not there: at no path, in no list, and whatever is sent to them changes nothing.
func TestThreadsOfAnotherNamespace(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	run := w.run(id, object{"assistant_id": "steps", "input": object{"note": "ours"}})
	w.eventually("the run", func() bool { return slices.Equal([]string{"success"}, w.statuses(id)) })
	cron := w.cron("POST", "/runs/crons", object{"assistant_id": "steps", "schedule": "0 3 * * *", "input": object{}})
	assistant := w.assistant("POST", "", object{"graph_id": "steps", "name": "ours"})
	before := w.snapshot(id, assistant.ID, cron.ID)

	other := *w
	other.flags = append(slices.Clone(w.flags), "--namespace", newNamespace(w))
	other.startWorker()
	other.startServe()
	body := anyBody(id, run)
	delete(body, "if_not_exists")
	for _, c := range []struct{ method, path string }{
		{"GET", ""}, {"PATCH", ""}, {"DELETE", ""}, {"POST", "/copy"}, {"GET", "/state"}, {"POST", "/state"}, {"GET", "/history"}, {"POST", "/history"},
		{"GET", "/runs"}, {"POST", "/runs"}, {"POST", "/runs/wait"}, {"POST", "/runs/stream"}, {"GET", "/stream"}, {"POST", "/runs/crons"},
		{"GET", "/runs/" + run}, {"DELETE", "/runs/" + run}, {"GET", "/runs/" + run + "/join"}, {"GET", "/runs/" + run + "/stream"}, {"POST", "/runs/" + run + "/cancel"},
	} {
		require.Equal(t, 404, other.ask(c.method, "/threads/"+id+c.path, body, nil), "%s %s", c.method, c.path)
	}
	early := other.follow(id, object{"channels": everything}, over) // it waits for a thread of that id there
	require.Equal(t, 404, other.ask("GET", "/assistants/"+assistant.ID, nil, nil))
	require.Equal(t, 404, other.ask("GET", "/runs/crons/"+cron.ID, nil, nil))
	for _, list := range []string{"/threads", "/runs/crons"} {
		var found []any
		require.Equal(t, 200, other.ask("POST", list+"/search", object{"ids": []string{id}}, &found), list)
		require.Empty(t, found, list)
	}
	require.NotContains(t, other.assistants(), assistant.ID)
	require.Equal(t, before, w.snapshot(id, assistant.ID, cron.ID))

	// The same id may be another thread there.
	require.Equal(t, 200, other.ask("POST", "/threads", object{"thread_id": id, "metadata": object{"of": "other"}}, nil))
	require.Equal(t, 200, other.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "steps", "input": object{"note": "theirs"}}, nil))
	other.command(id, "run.start", object{"assistant_id": "steps", "input": object{"note": "theirs"}})
	require.NotContains(t, fmt.Sprint(<-early), "ours")
	require.Equal(t, before, w.snapshot(id, assistant.ID, cron.ID))
}
