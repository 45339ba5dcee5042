package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told is an event of the protocol's second version, without its time.
type told struct {
	ID     string `json:"event_id"`
	Seq    int64  `json:"seq"`
	Method string `json:"method"`
	Params struct {
		Namespace []string `json:"namespace"`
		Data      object   `json:"data"`
	} `json:"params"`
}

// is reports whether a told is the root's lifecycle event of one of these names.
func (e told) is(names ...string) bool {
	event, _ := e.Params.Data["event"].(string)
	return e.Method == "lifecycle" && len(e.Params.Namespace) == 0 && slices.Contains(names, event)
}

func over(e told) bool { return e.is("completed", "failed", "interrupted") }

// everything are all channels that carry something.
var everything = []string{"values", "updates", "messages", "custom", "lifecycle", "input"}

// eventsOf opens a stream of events, and reads until enough says so.
func (w *world) eventsOf(thread string, body object, enough func(told) bool) []told {
	w.Helper()
	return <-w.follow(thread, body, enough)
}

// follow opens a stream of events, and reads on its own until enough says so.
func (w *world) follow(thread string, body object, enough func(told) bool) <-chan []told {
	w.Helper()
	text, err := json.Marshal(body)
	require.NoError(w, err)
	resp, err := http.Post(w.base+"/threads/"+thread+"/stream/events", "application/json", bytes.NewReader(text))
	require.NoError(w, err)
	require.Equal(w, 200, resp.StatusCode)
	all := make(chan []told, 1)
	go func() {
		defer resp.Body.Close()
		var out []told
		events(w.T, resp.Body, func(e sent) bool {
			var t told
			assert.NoError(w, json.Unmarshal([]byte(e.Data), &t))
			assert.Equal(w, e.Event, t.Method)
			out = append(out, t)
			return enough(t)
		})
		all <- out
	}()
	return all
}

func (w *world) command(thread, method string, params object) (through int64) {
	w.Helper()
	var a struct {
		Type string `json:"type"`
		Meta struct {
			Through int64 `json:"applied_through_seq"`
		} `json:"meta"`
	}
	require.Equal(w, 200, w.ask("POST", "/threads/"+thread+"/commands", object{"id": 1, "method": method, "params": params}, &a))
	require.Equal(w, "success", a.Type)
	return a.Meta.Through
}

// A client that reconnects with the number of the last event that it has gets each event once, in order: at the same server in
// mid-run, at another one when the server was killed, and with the worker killed too. Who reads all of it later reads the same.
func TestEventsGoOnBehindTheLastOne(t *testing.T) {
	for _, durability := range []string{"async", "sync"} {
		t.Run(durability, func(t *testing.T) {
			const ticks = 60 // in nine seconds at least: the run is under way while the processes are killed
			w := newWorld(t)
			id := uuid.NewString()
			require.Positive(t, w.command(id, "run.start", object{"assistant_id": "slow", "input": object{"steps": ticks, "delay_ms": 150}, "durability": durability}))
			var all []told
			read := func(enough func(told) bool) {
				since := int64(0)
				if len(all) > 0 {
					since = all[len(all)-1].Seq
				}
				all = append(all, w.eventsOf(id, object{"channels": everything, "since": since}, enough)...)
			}
			next := func(e told) bool { return e.Method == "updates" }
			read(next)
			read(next)
			require.NoError(t, w.serve.Kill())
			w.startServe()
			read(next)
			require.NoError(t, w.worker.Kill())
			w.startWorker()
			read(over)
			require.True(t, all[len(all)-1].is("completed"))
			require.Equal(t, w.eventsOf(id, object{"channels": everything}, over), all)
			var updates []told
			for i, e := range all {
				require.True(t, i == 0 || e.Seq > all[i-1].Seq, "%d", i)
				if next(e) {
					updates = append(updates, e)
				}
			}
			require.Len(t, updates, ticks)
			require.Equal(t, updates, w.eventsOf(id, object{"channels": []string{"updates"}}, func(e told) bool { return e.ID == updates[ticks-1].ID }))
		})
	}
}

// Many clients follow one thread at once, over its runs: each is told the same, a question in the namespace that asks it, before
// the end, and what a command brings about behind the number that its answer gave.
func TestEventsOfAQuestion(t *testing.T) {
	w := newWorld(t)
	id := uuid.NewString()
	through := w.command(id, "run.start", object{"assistant_id": "outer", "input": object{"topic": "x"}})
	done := func(e told) bool { return e.is("completed") }
	var followers []<-chan []told
	for range 40 {
		followers = append(followers, w.follow(id, object{"channels": everything}, done))
	}
	// The subgraph's end is told behind that of the run.
	first := w.eventsOf(id, object{"channels": everything, "since": through}, func(e told) bool {
		return e.Method == "lifecycle" && len(e.Params.Namespace) > 0 && e.Params.Data["event"] == "interrupted"
	})
	var question, child string
	for _, e := range first {
		require.Greater(t, e.Seq, through)
		if e.Method == "input.requested" {
			require.Len(t, e.Params.Namespace, 1)
			question, child = e.Params.Data["interrupt_id"].(string), e.Params.Namespace[0]
		}
	}
	require.True(t, strings.HasPrefix(child, "child:"))
	require.Equal(t, []string{"running", "child started", "interrupted", "child interrupted"}, lifecycles(first))
	require.Equal(t, "child", first[len(first)-1].Params.Data["graph_name"])
	var values []string
	for _, e := range first {
		if e.is("interrupted") {
			values = append(values, "interrupted")
		}
		if e.Method == "values" {
			values = append(values, fmt.Sprint(len(e.Params.Namespace), " ", e.Params.Data))
		}
	}
	require.Len(t, values, 7)
	require.Equal(t, []string{"interrupted", values[3], values[1]}, values[4:], "those of each graph are told again, behind the end of the root's")
	through = w.command(id, "input.respond", object{"namespace": []string{child}, "interrupt_id": question, "response": "yes"})
	require.Greater(t, through, first[len(first)-1].Seq)
	second := w.eventsOf(id, object{"channels": everything, "since": through}, over)
	require.Equal(t, []string{"running", "child started", "child completed", "completed"}, lifecycles(second))
	for _, follower := range followers {
		require.Equal(t, append(slices.Clone(first), second...), <-follower)
	}

	for _, e := range w.eventsOf(id, object{"channels": []string{"values", "lifecycle"}, "namespaces": [][]string{{}}, "depth": 0}, done) {
		require.Empty(t, e.Params.Namespace)
	}
	var within []told
	for _, e := range append(first, second...) {
		if len(e.Params.Namespace) > 0 {
			within = append(within, e)
		}
	}
	last := within[len(within)-1].ID
	for _, prefix := range []string{"child", child} {
		require.Equal(t, within, w.eventsOf(id, object{"channels": everything, "namespaces": [][]string{{prefix}}}, func(e told) bool { return e.ID == last }))
	}
}

// lifecycles are the lifecycle events in short, those of subgraphs with their nodes.
func lifecycles(all []told) (out []string) {
	for _, e := range all {
		if e.Method != "lifecycle" {
			continue
		}
		line, _ := e.Params.Data["event"].(string)
		if len(e.Params.Namespace) > 0 {
			node, _, _ := strings.Cut(e.Params.Namespace[0], ":")
			line = node + " " + line
		}
		out = append(out, line)
	}
	return out
}

// A run that was cancelled, one that failed and one that was taken back have an end too.
func TestEventsOfRunsThatEndEarly(t *testing.T) {
	w := newWorld(t)
	id := uuid.NewString()
	w.command(id, "run.start", object{"assistant_id": "slow", "input": object{"steps": 3000, "delay_ms": 100}})
	emitted := func(e told) bool { return e.Method == "custom" }
	streamed := w.follow(id, object{"channels": []string{"custom", "lifecycle"}}, over)
	w.eventsOf(id, object{"channels": []string{"custom"}}, emitted)
	cancelled := func(action string) {
		var runs []struct {
			ID string `json:"run_id"`
		}
		require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/runs", nil, &runs))
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/"+runs[0].ID+"/cancel?wait=1&action="+action, nil, nil))
	}
	cancelled("interrupt")
	got := <-streamed
	require.True(t, got[len(got)-1].is("interrupted"))
	last := got[len(got)-1].Seq
	w.command(id, "run.start", object{"assistant_id": "slow", "input": object{"steps": 3000, "delay_ms": 100}})
	streamed = w.follow(id, object{"channels": []string{"lifecycle"}, "since": last}, over)
	w.eventsOf(id, object{"channels": []string{"custom"}, "since": last}, emitted)
	cancelled("rollback")
	got = <-streamed
	require.Equal(t, []string{"running", "interrupted"}, lifecycles(got))

	id = uuid.NewString()
	w.command(id, "run.start", object{"assistant_id": "fails", "input": object{"word": "bad"}})
	got = w.eventsOf(id, object{"channels": everything}, over)
	require.True(t, got[len(got)-1].is("failed"))
	require.Contains(t, got[len(got)-1].Params.Data["error"], "boom: bad")
}

// What is no request for events is refused; a thread that is deleted ends its streams, and a run of the first version has no events.
func TestEventsThatAreRefused(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	require.Equal(t, 400, w.ask("POST", "/threads/"+uuid.NewString()+"/stream/events", object{"channels": []string{}}, nil))
	for _, body := range []object{
		{}, {"channels": []string{}}, {"channels": "values"}, {"channels": []string{"bogus"}}, {"channels": []string{"custom:"}},
		{"channels": everything, "since": -1}, {"channels": everything, "since": 1 << 60}, {"channels": everything, "since": "1"},
		{"channels": everything, "depth": -1}, {"channels": everything, "namespaces": []string{"child"}},
		{"channels": slices.Repeat(everything, 100)}, {"channels": everything, "namespaces": slices.Repeat([][]string{{"child"}}, 1000)},
		{"channels": everything, "namespaces": [][]string{{strings.Repeat("x", 10000)}}},
	} {
		var refused struct {
			Detail string `json:"detail"`
		}
		require.Equal(t, 400, w.ask("POST", "/threads/"+id+"/stream/events", body, &refused), "%v", body)
		require.NotEmpty(t, refused.Detail)
		require.Less(t, len(refused.Detail), 500)
	}
	w.run(id, object{"assistant_id": "steps", "input": object{"note": "first"}})
	w.command(id, "run.start", object{"assistant_id": "steps", "input": object{"note": "second"}})
	got := w.eventsOf(id, object{"channels": everything}, over)
	require.Equal(t, "second", got[1].Params.Data["note"])
	gone := w.follow(id, object{"channels": everything, "since": got[len(got)-1].Seq}, over)
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+id, nil, nil))
	require.Empty(t, <-gone)
}
