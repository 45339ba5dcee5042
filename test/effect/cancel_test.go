package effect_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	temporal "go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

func TestCancelKeepsByDefault(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		require.NoError(t, th.Cancel(t.Context(), "later"))
		assert.Empty(t, r.Bank.TakenBack())
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Questions, 1, "the question is asked again")
		got, err = th.Resume(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Equal(t, []string{"ann", "bob", "cid", "dan"}, r.Bank.Paid())
	}, r.Graph)
}

// What the superstep under way did is forgotten, but not what it did outside: a retry finds it there.
func TestCancelDrops(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		require.NoError(t, th.Cancel(t.Context(), "start over", superstep.WithMode(thread.CancelDrop)))
		_, err := th.Wait(t.Context())
		require.ErrorContains(t, err, "start over")
		assert.Empty(t, r.Bank.TakenBack())
		assert.Equal(t, []string{"first 1 committed", "first 1 committed", "second 2 committed", "third 3 committed"}, rig.EffectsOf(t, th))
		state, err := th.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"third"}, state.Next)
		assert.Empty(t, state.Questions)
		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		_, err = th.Resume(t.Context(), true)
		require.NoError(t, err)
		paid := slices.DeleteFunc(r.Bank.Asked(), func(call string) bool { return call != "pay dan" })
		if _, ok := rt.(*superstep.Client); ok {
			assert.Len(t, paid, 1, "it is looked up, not paid again")
		}
		assert.Equal(t, []string{"ann", "bob", "cid", "dan"}, r.Bank.Paid())
	}, r.Graph)
}

// All effects are undone, the newest first; what is done again after that is another write.
func TestCancelCompensates(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		require.NoError(t, th.Cancel(t.Context(), "ordered twice", superstep.WithMode(thread.CancelCompensate)))
		_, err := th.Wait(t.Context())
		require.ErrorContains(t, err, "ordered twice")
		assert.Equal(t, []string{"dan", "cid", "bob", "ann"}, r.Bank.TakenBack())
		assert.Empty(t, r.Bank.Paid())
		assert.Equal(t, []string{"first 1 compensated", "first 1 compensated", "second 2 compensated", "third 3 compensated"}, rig.EffectsOf(t, th))

		state, err := th.State(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"first"}, state.Next, "it stands before the oldest write that was undone")
		assert.JSONEq(t, "[]", string(state.Values["log"]))
		history, err := th.History(t.Context())
		require.NoError(t, err)
		assert.Equal(t, "fork", history[0].Source)
		assert.Equal(t, []string{"third"}, history[1].Next, "what was before stays in the history")

		got, err := th.Retry(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		all := []string{"ann", "bob", "cid", "dan"}
		assert.Equal(t, all, r.Bank.Paid(), "the retry pays anew, under keys of its own")
		undone := []string{"first 1 compensated", "first 1 compensated", "second 2 compensated", "third 3 compensated"}
		made := []string{"first 1 committed", "first 1 committed", "second 2 committed", "third 3 committed"}
		assert.Equal(t, slices.Concat(undone, made), rig.EffectsOf(t, th))
		require.NoError(t, th.Cancel(t.Context(), "again", superstep.WithMode(thread.CancelCompensate)))
		assert.Empty(t, r.Bank.Paid())
		back := []string{"dan", "cid", "bob", "ann"}
		assert.Equal(t, slices.Concat(back, back), r.Bank.TakenBack(), "nothing is undone twice")

		got, err = th.Retry(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		got, err = th.Resume(t.Context(), true)
		require.NoError(t, err)
		assert.Equal(t, thread.StatusFinished, got.Status)
		assert.Equal(t, all, r.Bank.Paid())
		assert.Equal(t, slices.Concat(undone, undone, made), rig.EffectsOf(t, th))
		assert.Equal(t, []string{"paid ann", "paid bob", "paid cid", "paid dan"}, got.Output.Log.Get())
	}, r.Graph)
}

// What no program can undo waits for people; a second cancellation ends the waiting.
func TestWhatCannotBeUndoneIsAskedAbout(t *testing.T) {
	r := rig.NewUndoable(true)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		for _, answer := range []string{"leave", "done", "repeat", "keep"} {
			th := r.Waits(t, rt)
			require.NoError(t, th.Cancel(t.Context(), "ordered twice", superstep.WithMode(thread.CancelCompensate)))
			got, err := th.Wait(t.Context())
			require.NoError(t, err)
			require.Equal(t, thread.StatusWaiting, got.Status)
			require.Len(t, got.Questions, 1)
			assert.Equal(t, "second", got.Questions[0].Node)
			var asked struct{ Kind, Effect, Reason string }
			require.NoError(t, json.Unmarshal(got.Questions[0].Value, &asked))
			assert.Equal(t, "compensate", asked.Kind)
			assert.Equal(t, "bank.fixed", asked.Effect)
			assert.Contains(t, asked.Reason, "no Compensate")
			assert.Equal(t, []string{"cid"}, r.Bank.Paid())
			_, err = th.Resume(t.Context(), "something else")
			require.ErrorIs(t, err, thread.ErrBadInput)
			require.ErrorIs(t, th.Start(t.Context(), rig.Payment{}), thread.ErrRunning)
			want := "second 2 committed"
			switch answer {
			case "keep":
				require.ErrorIs(t, th.Cancel(t.Context(), "no", superstep.WithMode(thread.CancelDrop)), thread.ErrRunning)
				require.NoError(t, th.Cancel(t.Context(), "enough"))
			case "repeat":
				got, err = th.Resume(t.Context(), "repeat")
				require.NoError(t, err)
				require.Equal(t, thread.StatusWaiting, got.Status, "it still cannot be undone")
				require.NotEqual(t, got.Questions[0].ID, "")
				_, err = th.Resume(t.Context(), "leave")
				require.Error(t, err)
			case "done":
				want = "second 2 compensated"
				_, err = th.Resume(t.Context(), answer)
				require.Error(t, err)
			default:
				_, err = th.Resume(t.Context(), answer)
				require.Error(t, err)
			}
			_, err = th.Wait(t.Context())
			require.ErrorContains(t, err, "ordered twice")
			assert.Contains(t, rig.EffectsOf(t, th), want, answer)
		}
	}, r.Graph)
}

// A run that failed is cleaned up behind.
func TestCancelCompensatesBehindAFailure(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		_, err := th.Resume(t.Context(), false)
		require.Error(t, err)
		require.NoError(t, th.Cancel(t.Context(), "it failed", superstep.WithMode(thread.CancelCompensate)))
		assert.Empty(t, r.Bank.Paid())
		assert.Equal(t, []string{"dan", "cid", "bob", "ann"}, r.Bank.TakenBack())
		_, err = th.Wait(t.Context())
		require.ErrorContains(t, err, "it failed")
	}, r.Graph)
}

// What an invocation did that finished is not undone with what came after it.
func TestOnlyWhatIsNotFinishedIsUndone(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		_, err := th.Resume(t.Context(), true)
		require.NoError(t, err)
		_, err = th.Invoke(t.Context(), rig.Payment{})
		require.NoError(t, err)
		require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
		assert.Equal(t, []string{"ann", "bob", "cid", "dan"}, r.Bank.Paid())
		assert.Equal(t, []string{"dan", "cid", "bob", "ann"}, r.Bank.TakenBack())
	}, r.Graph)
}

// A call to undo that fails is looked up and made again under the same key; one that fails for good is a person's.
func TestFailingCompensations(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		var mu sync.Mutex
		failed := 0
		r.Bank.Failing(func(call string) error {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case call == "take back bob":
				return superstep.Permanent(errors.New("the account is closed"))
			case call == "take back dan" && failed < 2:
				failed++
				return errors.New("busy")
			}
			return nil
		}, func(call string) error {
			if call == "take back cid" {
				return errors.New("the line went dead") // after it was taken back
			}
			return nil
		})
		require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
		got, err := th.Wait(t.Context())
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		assert.Contains(t, string(got.Questions[0].Value), "the account is closed")
		assert.Equal(t, []string{"dan", "dan", "dan", "cid", "bob", "ann"}, r.Bank.TakenBack())
		assert.Equal(t, []string{"bob"}, r.Bank.Paid())
		r.Bank.Failing(nil, nil)
		_, err = th.Resume(t.Context(), "repeat")
		require.Error(t, err)
		assert.Empty(t, r.Bank.Paid())
		view, err := th.Effects(t.Context())
		require.NoError(t, err)
		for _, e := range view.Effects {
			assert.Equal(t, "compensated", e.State)
		}
		assert.Contains(t, view.Effects[2].Evidence, "has it no more")
	}, r.Graph)
}

// A write under a thread-wide key that was undone is not taken for made: it is made anew, once, as another write.
func TestUndoneThreadKeysAreMadeAnew(t *testing.T) {
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	g := superstep.NewStateGraph[rig.Payment]("keyed")
	g.AddEffect(pay)
	g.AddNode("pay", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		if _, err := pay.Call(ctx, rig.Transfer{To: "ann", Amount: 1}, superstep.WithThreadKey("order-7")); err != nil {
			return s, err
		}
		_, err := superstep.Interrupt[bool](ctx, "go on?")
		return s, err
	})
	g.AddEdge(superstep.Start, "pay")
	r := rig.Undoable{Graph: g.MustCompile(), Bank: b}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		b.Empty()
		th := r.Graph.Thread(rt, graphtest.ThreadID(t))
		got, err := th.Invoke(t.Context(), rig.Payment{})
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		require.Equal(t, []string{"ann"}, b.Paid())
		require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
		require.Empty(t, b.Paid())
		for range 2 {
			got, err = th.Retry(t.Context())
			require.NoError(t, err)
			require.Len(t, got.Questions, 1)
			assert.Equal(t, []string{"ann"}, b.Paid())
			require.NoError(t, th.Cancel(t.Context(), "", superstep.WithMode(thread.CancelCompensate)))
			assert.Empty(t, b.Paid())
		}
		_, err = th.Invoke(t.Context(), rig.Payment{})
		require.NoError(t, err)
		assert.Equal(t, []string{"ann"}, b.Paid(), "new input is another intent, and the key is the thread's")
		assert.Equal(t, []string{"pay 1 compensated", "pay 1 compensated", "pay 1 compensated", "pay 3 committed"}, rig.EffectsOf(t, th))
	}, r.Graph)
}

// Of several cancellations before a run begins to end the strongest counts, in whichever order they come; one that comes
// twice counts once; afterwards it is too late for another way.
func TestTheStrongestCancellationCounts(t *testing.T) {
	b := rig.NewBank()
	pay := b.Effect("bank.pay")
	var release chan struct{}
	g := superstep.NewStateGraph[rig.Payment]("holding")
	g.AddEffect(pay)
	g.AddNode("hold", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		if _, err := pay.Call(ctx, rig.Transfer{To: "ann", Amount: 1}); err != nil {
			return s, err
		}
		<-release // whatever is said
		return s, nil
	})
	g.AddNode("never", rig.Paying(pay, "bob"))
	g.AddEdge(superstep.Start, "hold")
	g.AddEdge("hold", "never")
	graph := g.MustCompile()
	client := graphtest.Temporal(t, graph)
	server, err := temporal.Dial(temporal.Options{HostPort: testserver.Address(t)})
	require.NoError(t, err)
	defer server.Close()
	for name, modes := range map[string][]thread.CancelMode{
		"weakest first":   {thread.CancelKeep, thread.CancelDrop, thread.CancelCompensate},
		"strongest first": {thread.CancelCompensate, thread.CancelCompensate, thread.CancelDrop, thread.CancelKeep},
	} {
		t.Run(name, func(t *testing.T) {
			b.Empty()
			release = make(chan struct{})
			th := graph.Thread(client, graphtest.ThreadID(t))
			require.NoError(t, th.Start(t.Context(), rig.Payment{}))
			require.Eventually(t, func() bool { return len(b.Paid()) == 1 }, 2*time.Minute, time.Millisecond)
			done := make(chan error, len(modes))
			for i, mode := range modes {
				go func() {
					_, err := client.Cancel(t.Context(), thread.CancelRequest{Thread: th.ID(), Mode: mode, ID: string(mode), Reason: string(mode), By: "ann"})
					done <- err
				}()
				require.Eventually(t, func() bool { return signals(t, server, th.ID()) == i+1 }, 2*time.Minute, 10*time.Millisecond)
			}
			close(release)
			for range modes {
				if err := <-done; err != nil {
					require.ErrorIs(t, err, thread.ErrRunning, "it came too late to be what was done")
				}
			}
			_, err := th.Wait(t.Context())
			require.ErrorContains(t, err, "compensate")
			assert.Empty(t, b.Paid())
			assert.Equal(t, []string{"ann"}, b.TakenBack())
			view, err := client.Show(t.Context(), th.ID())
			require.NoError(t, err)
			require.NotNil(t, view.Cancel)
			assert.Equal(t, &thread.CancelView{Mode: thread.CancelCompensate, Reason: "compensate", By: "ann", Undone: 1}, view.Cancel,
				"hold was under way, so its superstep is dropped and the thread stands before it")
		})
	}
}

// signals counts the signals that a thread's run was sent.
func signals(t *testing.T, c temporal.Client, thread string) (n int) {
	t.Helper()
	events := c.GetWorkflowHistory(t.Context(), thread, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		require.NoError(t, err)
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED {
			n++
		}
	}
	return n
}

func TestCancelIsBounded(t *testing.T) {
	rt := superstep.NewMemory()
	r := rig.NewUndoable(false)
	th := r.Waits(t, rt)
	long := strings.Repeat("x", 1001)
	assert.ErrorIs(t, th.Cancel(t.Context(), long), thread.ErrBadInput)
	assert.ErrorIs(t, th.Cancel(t.Context(), "", superstep.WithMode("undo")), thread.ErrBadInput)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	assert.Equal(t, thread.StatusWaiting, state.Status)
}
