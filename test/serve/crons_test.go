package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/internal/testserver"
)

// madeCron is a cron as tests look at it.
type madeCron struct {
	ID        string  `json:"cron_id"`
	Assistant string  `json:"assistant_id"`
	Thread    *string `json:"thread_id"`
	Schedule  string  `json:"schedule"`
	EndTime   *string `json:"end_time"`
	Payload   object  `json:"payload"`
	Metadata  object  `json:"metadata"`
	Enabled   bool    `json:"enabled"`
	Next      *string `json:"next_run_date"`
}

func (w *world) cron(method, path string, body object) (c madeCron) {
	w.Helper()
	require.Equal(w, 200, w.ask(method, path, body, &c))
	return c
}

func (w *world) crons(search object) (ids []string) {
	var all []madeCron
	require.Equal(w, 200, w.ask("POST", "/runs/crons/search", search, &all))
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids
}

// due makes a cron come due now, whatever its schedule says, once it asks for no run any more: what comes due while it does is left out.
func (w *world) due(cron string) {
	w.schedule(cron, func(h client.ScheduleHandle) {
		w.asks(h, 0)
		require.NoError(w, h.Trigger(w.Context(), client.ScheduleTriggerOptions{}))
	})
}

// schedule hands the schedule of a cron to a function.
func (w *world) schedule(cron string, do func(client.ScheduleHandle)) {
	w.Helper()
	c, err := client.Dial(client.Options{HostPort: testserver.Address(w.T)})
	require.NoError(w, err)
	defer c.Close()
	do(c.ScheduleClient().GetHandle(w.Context(), "superstep.cron/"+w.queue+".serve/"+cron))
}

// asks waits until a cron asks for so many runs.
func (w *world) asks(h client.ScheduleHandle, runs int) {
	w.Helper()
	w.eventually("the cron asks", func() bool {
		d, err := h.Describe(w.Context())
		require.NoError(w, err)
		return len(d.Info.RunningWorkflows) == runs
	})
}

// threadsOf are the threads with a run that a cron asked for.
func (w *world) threadsOf(cron string) (ids []string) {
	var all []struct {
		ID string `json:"thread_id"`
	}
	require.Equal(w, 200, w.ask("POST", "/threads/search", object{"metadata": object{"graph_id": "steps"}, "limit": 100}, &all))
	for _, t := range all {
		var runs []struct {
			Metadata object `json:"metadata"`
		}
		if w.ask("GET", "/threads/"+t.ID+"/runs", nil, &runs) == 200 && len(runs) > 0 && runs[0].Metadata["cron_id"] == cron {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// What comes due while no server is there is asked for once when one is. The input is as long as a value that is not kept in histories.
func TestACronOutlivesItsServer(t *testing.T) {
	w := newWorld(t)
	note := strings.Repeat("n", 60_000)
	c := w.cron("POST", "/runs/crons", object{"assistant_id": "steps", "schedule": "0 3 1 1 *", "timezone": "Europe/Berlin",
		"input": object{"note": note}, "metadata": object{"m": 1}, "on_run_completed": "keep"})
	require.True(t, strings.HasSuffix(*c.Next, "-01-01T02:00:00Z"), *c.Next)
	require.Equal(t, c.Assistant, c.Payload["assistant_id"], "whichever way it was named")
	require.NoError(t, w.serve.Kill())
	w.schedule(c.ID, func(h client.ScheduleHandle) {
		require.NoError(t, h.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
		w.asks(h, 1)
		require.NoError(t, h.Trigger(t.Context(), client.ScheduleTriggerOptions{}))
	})
	w.startServe()
	require.Equal(t, c, w.cron("GET", "/runs/crons/"+c.ID, nil))
	var threads []string
	w.eventually("a run", func() bool { threads = w.threadsOf(c.ID); return len(threads) > 0 })
	w.eventually("its end", func() bool { return slices.Equal([]string{"success"}, w.statuses(threads[0])) })
	require.Equal(t, []string{"a:" + note, "b:" + note, "c:" + note}, w.log(threads[0]))
	require.Len(t, w.threadsOf(c.ID), 1)
	var found []object
	require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": object{"m": 1, "cron_id": c.ID}}, &found))
	require.Len(t, found, 1, "the thread has the cron's metadata")
	w.due(c.ID)
	w.eventually("another run", func() bool { return len(w.threadsOf(c.ID)) == 2 })
}

// Two servers have the same crons. One is changed, switched off, and ended, as is one whose assistant is deleted.
func TestCronsAtTwoServers(t *testing.T) {
	w := newWorld(t)
	a := w.assistant("POST", "", object{"graph_id": "steps"})
	body := object{"assistant_id": a.ID, "schedule": "0 3 * * *", "input": object{"note": "x"}, "metadata": object{"m": 1}, "end_time": "2099-01-01T00:00:00"}
	first, second := w.cron("POST", "/runs/crons", body), w.cron("POST", "/runs/crons", body)
	require.Equal(t, "2099-01-01T00:00:00Z", *first.EndTime)
	one := w.base
	w.startServe()
	w.eventually("both", func() bool { return len(w.crons(object{"assistant_id": a.ID})) == 2 })
	got := w.cron("PATCH", "/runs/crons/"+first.ID, object{"enabled": false, "schedule": "30 4 * * *", "end_time": nil, "metadata": object{"n": 2}, "input": object{"note": "y"}})
	require.NotNil(t, got.Next, "when it would come due")
	require.Nil(t, got.EndTime)
	require.False(t, got.Enabled)
	require.Equal(t, "30 4 * * *", got.Schedule)
	require.Equal(t, object{"assistant_id": a.ID, "input": object{"note": "y"}, "metadata": object{"m": 1.0, "n": 2.0}}, got.Payload)
	w.base = one
	require.Equal(t, got, w.cron("GET", "/runs/crons/"+first.ID, nil))
	w.eventually("the list of the other", func() bool { return slices.Equal([]string{second.ID}, w.crons(object{"enabled": true})) })
	require.Equal(t, []string{first.ID}, w.crons(object{"metadata": object{"n": 2}}))
	require.Equal(t, []string{first.ID, second.ID}, w.crons(object{"sort_by": "created_at", "sort_order": "asc"}))
	require.True(t, strings.Contains(*w.cron("PATCH", "/runs/crons/"+first.ID, object{"enabled": true}).Next, "T04:30:00Z"))
	require.Equal(t, 204, w.ask("DELETE", "/runs/crons/"+first.ID, nil, nil))
	require.Equal(t, 404, w.ask("DELETE", "/runs/crons/"+first.ID, nil, nil))
	require.Equal(t, []string{second.ID}, w.crons(object{}))
	require.Equal(t, 204, w.ask("DELETE", "/assistants/"+a.ID, nil, nil))
	require.Equal(t, 404, w.ask("GET", "/runs/crons/"+second.ID, nil, nil))
	require.Empty(t, w.crons(object{}))
}

// A cron on a thread runs there, turn after turn. It ends when it comes due and its thread is gone.
func TestACronOnAThread(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	c := w.cron("POST", "/threads/"+id+"/runs/crons", object{"assistant_id": "steps", "schedule": "0 3 * * *", "input": object{"note": "t"}})
	require.Equal(t, id, *c.Thread)
	require.Equal(t, []string{c.ID}, w.crons(object{"thread_id": id}))
	w.due(c.ID)
	w.eventually("the first run", func() bool { return slices.Equal([]string{"success"}, w.statuses(id)) })
	w.due(c.ID)
	w.eventually("the second run", func() bool { return slices.Equal([]string{"success", "success"}, w.statuses(id)) })
	require.Len(t, w.log(id), 6)
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+id, nil, nil))
	w.due(c.ID)
	w.eventually("the cron's end", func() bool { return w.ask("GET", "/runs/crons/"+c.ID, nil, nil) == 404 })
	require.Equal(t, 404, w.ask("GET", "/threads/"+id, nil, nil))
}

// The thread of a run is deleted behind it unless it is to be kept.
func TestACronsOwnThreadsAreDeleted(t *testing.T) {
	w := newWorld(t)
	s := newSpeaker(w)
	c := w.cron("POST", "/runs/crons", object{"assistant_id": "tells", "schedule": "0 3 * * *", "input": s.input(1)})
	var found []struct {
		ID string `json:"thread_id"`
	}
	search := func() int {
		require.Equal(t, 200, w.ask("POST", "/threads/search", object{"metadata": object{"assistant_id": c.Assistant}, "status": "busy"}, &found))
		return len(found)
	}
	w.due(c.ID)
	w.eventually("the run", func() bool { return search() == 1 })
	thread := found[0].ID
	s.upto(2)
	w.eventually("its end", func() bool { return w.ask("GET", "/threads/"+thread, nil, nil) == 404 })
	require.Zero(t, search())
}

// What does not fit is refused, and makes nothing.
func TestBadCrons(t *testing.T) {
	w := newWorld(t)
	with := func(name string, v any) object {
		body := object{"assistant_id": "steps", "schedule": "0 3 * * *", "input": object{}}
		body[name] = v
		return body
	}
	for _, bad := range []object{
		with("schedule", "nonsense"), with("schedule", "61 3 * * *"), with("schedule", "0 0 31 2 *"), with("schedule", ""), with("schedule", 7),
		with("timezone", "Mars/Base"), with("end_time", "soon"), with("end_time", "2001-01-01"), with("on_run_completed", "burn"), with("enabled", "yes"),
		with("assistant_id", "nope"), with("assistant_id", nil), with("stream_mode", "x"), with("webhook", "ftp://x"), with("metadata", 7),
		with("input", object{"note": strings.Repeat("x", 300_000)}),
	} {
		var said struct {
			Detail string `json:"detail"`
		}
		require.Equal(t, 422, w.ask("POST", "/runs/crons", bad, &said), "%.200v", bad)
		require.NotEmpty(t, said.Detail)
	}
	require.Empty(t, w.crons(object{}))
	require.Equal(t, 404, w.ask("POST", "/runs/crons", with("assistant_id", uuid.NewString()), nil))
	require.Equal(t, 404, w.ask("POST", "/threads/"+uuid.NewString()+"/runs/crons", with("x", 1), nil))
	require.Equal(t, 404, w.ask("GET", "/runs/crons/"+uuid.NewString(), nil, nil))
	require.Equal(t, 422, w.ask("GET", "/runs/crons/nope", nil, nil))
	require.Equal(t, 404, w.ask("PATCH", "/runs/crons/"+uuid.NewString(), object{"enabled": false}, nil))
	c := w.cron("POST", "/runs/crons", with("x", 1))
	require.Equal(t, 422, w.ask("PATCH", "/runs/crons/"+c.ID, object{"schedule": "61 3 * * *"}, nil))
	require.Equal(t, 422, w.ask("PATCH", "/runs/crons/"+c.ID, object{"stream_mode": "x"}, nil))
	require.Equal(t, c, w.cron("GET", "/runs/crons/"+c.ID, nil))
}
