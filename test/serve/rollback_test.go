package main

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"superstep.dev"
)

type shopState struct {
	DelayMS superstep.Value[int]   `json:"delay_ms"`
	Log     superstep.List[string] `json:"log"`
}

// shop pays, asks, and ships, which takes as long as the state says. With final the payment cannot be undone, and comes last.
func shop(name string, final bool) superstep.Runnable {
	pay := &superstep.Effect[string, string]{Name: "pay-" + name, Target: superstep.TargetKeyed,
		Do: func(context.Context, string, string) (string, error) { return "receipt", nil }}
	if !final {
		pay.Compensate = func(context.Context, string, string, string) error { return nil }
	}
	g := superstep.NewStateGraph[shopState](name)
	g.AddEffect(pay)
	pays := func(ctx context.Context, s shopState) (shopState, error) {
		_, err := pay.Call(ctx, "o-1")
		s.Log.Append("paid in " + superstep.Info(ctx).Thread)
		return s, err
	}
	g.AddNode("pay", pays)
	g.AddNode("ask", func(ctx context.Context, s shopState) (shopState, error) {
		word, err := superstep.Interrupt[string](ctx, "ship?")
		s.Log.Append("ship " + word)
		return s, err
	})
	g.AddNode("work", func(ctx context.Context, s shopState) (shopState, error) {
		if err := superstep.Emit(ctx, "works"); err != nil {
			return s, err
		}
		select {
		case <-time.After(time.Duration(s.DelayMS.Get()) * time.Millisecond):
			return s, nil
		case <-ctx.Done():
			return s, context.Cause(ctx)
		}
	})
	order := []string{"pay", "ask", "work"}
	if final {
		order = []string{"ask", "pay", "work"}
	}
	chain(g, order...)
	return g.MustCompile()
}

// asked is what a thread asks, as inboxes read it, and its status.
func (w *world) asked(id string) (status string, asks []any) {
	var out struct {
		Status     string                      `json:"status"`
		Interrupts map[string][]map[string]any `json:"interrupts"`
	}
	require.Equal(w, 200, w.ask("GET", "/threads/"+id, nil, &out))
	for _, of := range out.Interrupts {
		for _, one := range of {
			asks = append(asks, one["value"])
		}
	}
	return out.Status, asks
}

// A rollback takes back its run and nothing else: the thread stands as before, what it asked can be answered, and its id stays.
func TestRollbackTakesBackItsRunAlone(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "shop", "input": object{"delay_ms": 60000}}, nil))
	paid := "paid in " + id
	for range 2 {
		run := w.run(id, object{"assistant_id": "shop", "command": object{"resume": "wrong"}})
		w.eventually("the answer", func() bool { return slices.Equal(w.log(id), []string{paid, "ship wrong"}) })
		require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/"+run+"/cancel?wait=1&action=rollback", nil, nil))
		require.Equal(t, 404, w.ask("GET", "/threads/"+id+"/runs/"+run, nil, nil), "the run is gone")
		require.Equal(t, []string{paid}, w.log(id))
		status, asks := w.asked(id)
		require.Equal(t, "interrupted", status)
		require.Equal(t, []any{"ship?"}, asks)
	}
	var out struct{ Log []string }
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "shop",
		"command": object{"resume": "right", "update": object{"delay_ms": 0}}}, &out))
	require.Equal(t, []string{paid, "ship right"}, out.Log)

	id = w.thread() // the first run of a thread
	run := w.run(id, object{"assistant_id": "slow", "input": object{"steps": 3000, "delay_ms": 100}})
	w.eventually("a tick", func() bool { return len(w.log(id)) > 0 })
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/"+run+"/cancel?wait=1&action=rollback", nil, nil))
	status, _ := w.asked(id)
	require.Equal(t, "idle", status)
	require.Empty(t, w.log(id))
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "slow", "input": object{"steps": 1}}, &out))
	require.Equal(t, []string{"tick 1"}, out.Log)
}

// What cannot be undone is the run's error, and the thread takes runs.
func TestARollbackThatCannotBeIsTheRunsError(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "final", "input": object{"delay_ms": 60000}}, nil))
	run := w.run(id, object{"assistant_id": "final", "command": object{"resume": "yes"}})
	w.eventually("the payment", func() bool { return len(w.log(id)) == 2 })
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/"+run+"/cancel?wait=1&action=rollback", nil, nil))
	var out map[string]any
	require.Equal(t, 200, w.ask("GET", "/threads/"+id+"/runs/"+run+"/join", nil, &out))
	require.Contains(t, fmt.Sprint(out["__error__"]), "RollbackRefused")
	require.Equal(t, []string{"error"}, w.statuses(id)[:1])
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", object{"assistant_id": "final", "input": object{"delay_ms": 0}}, nil))
	status, asks := w.asked(id)
	require.Equal(t, "interrupted", status)
	require.Equal(t, []any{"ship?"}, asks)
}

// A thread that is deleted and made again has its own id in its nodes too.
func TestAThreadThatIsMadeAgainKeepsItsID(t *testing.T) {
	w := newWorld(t)
	id := w.thread()
	body := object{"assistant_id": "shop", "input": object{}}
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", body, nil))
	require.Equal(t, 204, w.ask("DELETE", "/threads/"+id, object{}, nil))
	require.Equal(t, 200, w.ask("POST", "/threads", object{"thread_id": id}, nil))
	require.Empty(t, w.log(id))
	require.Equal(t, 200, w.ask("POST", "/threads/"+id+"/runs/wait", body, nil))
	require.Equal(t, []string{"paid in " + id}, w.log(id))
}
