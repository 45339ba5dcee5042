package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// Every exit code once, from the real binary. What went wrong is one line on stderr.
func TestExitCodes(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	r.put("go")
	r.put("broken")
	steered := string(encode(t, r.steered()))

	t.Log("0: done")
	r.exits(0, r.superstep("run", "adds", "--input", `{"note":"a"}`, "--follow"))
	r.exits(0, r.superstep("list"))
	r.exits(0, r.superstep("graph", "adds"))
	r.exits(0, r.superstep("version"))

	t.Log("1: the run failed")
	failed := testserver.Queue(t)
	out := r.exits(1, r.superstep("run", "pair", "--thread", failed, "--input", steered, "--follow"))
	require.Contains(t, out.stdout, "it is broken")
	require.Contains(t, out.stdout, "superstep retry "+failed)

	t.Log("2: usage or bad input")
	done := testserver.Queue(t)
	r.exits(0, r.superstep("run", "adds", "--thread", done, "--input", `{"note":"a"}`, "--follow"))
	for _, args := range [][]string{
		{"run"},
		{"run", "adds", "--input", "{"},
		{"run", "adds", "--input", `{"note":7}`},
		{"run", "adds", "--input", `{"notes":"a"}`},
		{"run", "adds", "--durability", "never"},
		{"runn", "adds"},
		{"retry", done},
		{"run", "pair", "--thread", done, "--input", steered}, // it is another graph's thread
	} {
		out := r.exits(2, r.superstep(args...))
		require.NotEmpty(t, out.stderr, "%q", args)
	}

	t.Log("3: the run waits")
	asking := testserver.Queue(t)
	r.exits(3, r.superstep("run", "asks", "--thread", asking, "--input", "{}", "--follow"))

	t.Log("4: not found")
	r.exits(4, r.superstep("show", "no-such-thread"))
	r.exits(4, r.superstep("resume", asking, "q-none", "--value", "1"))

	t.Log("5: the answer is refused")
	for _, q := range r.wait(asking, thread.StatusWaiting).Questions {
		answer := map[string]string{"colour": `"blue"`, "number": "3"}[q.Node]
		r.exits(0, r.superstep("resume", asking, q.ID, "--value", answer))
		r.exits(5, r.superstep("resume", asking, q.ID, "--value", answer))
	}

	t.Log("6: no worker with that graph")
	out = r.exits(6, r.superstep("run", "nothing"))
	require.Contains(t, out.stderr, "adds")

	t.Log("7: cancelled; 130: Ctrl-C")
	r.remove("go")
	cancelled := testserver.Queue(t)
	follower := r.begun("run", "slow", "--thread", cancelled, "--input", steered, "--follow")
	r.until("the node runs", func() bool { return r.ran("slow") == 1 })
	leaving := r.begun("run", "slow", "--input", steered, "--follow")
	leaver := ""
	r.until("the other one follows", func() bool { // it says so before, as the thread's name is new
		if said := strings.Fields(leaving.stdout.String()); len(said) > 1 {
			leaver = said[1]
		}
		return leaver != ""
	})
	r.until("the other node runs", func() bool { return r.ran("slow") == 2 })
	r.exits(0, r.superstep("cancel", cancelled))
	r.exits(7, follower.end())
	leaving.interrupt()
	out = r.exits(130, leaving.end())
	require.Contains(t, out.stderr, "goes on")
	r.put("go")
	r.wait(leaver, thread.StatusFinished)
}

func TestNobodyThere(t *testing.T) {
	r := newRig(t)
	out := r.exits(6, r.superstep("run", "refund", "--input", `{"order_id":"o-7"}`))
	require.Contains(t, out.stderr, "no worker")
	require.Contains(t, out.stderr, r.queue)

	address := testserver.FreeAddress()
	out = r.exits(6, r.begunWith("run", "refund", "--address", address).end())
	require.Contains(t, out.stderr, address)
	out = r.exits(6, r.begunWith("list", "--address", address, "-o", "json").end())
	var told struct {
		Error struct {
			Kind string `json:"kind"`
			Exit int    `json:"exit"`
		} `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(out.stderr), &told))
	require.Equal(t, "no_server", told.Error.Kind)
	require.Equal(t, 6, told.Error.Exit)
}

// What does not fit the server is refused in one line that says how much is too much, and nothing hangs of it.
func TestOversized(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	big := strings.Repeat("x", 2<<20)
	r.putText("big.json", `{"note":"`+big+`"}`)
	out := r.exits(2, r.superstep("run", "adds", "--input", "@"+r.dir+"/big.json"))
	require.Contains(t, out.stderr, "1 MiB")
	_, err := r.client.Start(t.Context(), thread.StartRequest{Graph: "adds", Thread: testserver.Queue(t),
		Input: encode(t, map[string]string{"note": big})})
	require.ErrorIs(t, err, thread.ErrBadInput)

	threadID := testserver.Queue(t)
	out = r.exits(1, r.superstep("run", "large", "--thread", threadID, "--input", `{"size":2500000}`, "--follow"))
	require.Contains(t, out.stdout, "at most")
	require.Contains(t, r.wait(threadID, thread.StatusFailed).Error, "2500")

	// Each node's result fits, and so does what each reads; together they are too much for a next run of the thread.
	piled := r.begin("piles", map[string]int{"size": 1_200_000})
	r.wait(piled, thread.StatusFinished)
	_, err = r.client.Start(t.Context(), thread.StartRequest{Graph: "piles", Thread: piled, Input: encode(t, map[string]int{"size": 1})})
	require.ErrorContains(t, err, "the thread's state has 3600")

	asking := r.begin("asks", map[string]string{})
	for _, q := range r.wait(asking, thread.StatusWaiting).Questions {
		if q.Node == "colour" {
			_, err := r.answer(asking, q.ID, big[:300<<10])
			require.ErrorIs(t, err, thread.ErrBadInput)
		}
	}
	require.Len(t, r.wait(asking, thread.StatusWaiting).Questions, 2)
}

// Up to the limit values are kept whole, and beyond it the run says what is too large.
func TestNearTheLimit(t *testing.T) {
	r := newRig(t)
	r.graphsWorker("worker")
	for _, size := range []int{500_000, 950_000, 1_200_000, 1_850_000} {
		threadID := r.begin("large", map[string]int{"size": size})
		view := r.settled(threadID)
		if view.Status == thread.StatusFinished {
			require.Len(t, value[string](r, threadID, "note"), size)
			continue
		}
		require.Equal(t, thread.StatusFailed, view.Status, "size %d", size)
		require.Contains(t, view.Error, "bytes", "size %d", size)
		require.Greater(t, size, 900_000)
	}
}
