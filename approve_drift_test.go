package superstep_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphtest"
)

// quoteState is what a buyer knows.
type quoteState struct {
	Did superstep.List[string] `json:"did"`
}

// buyer is a graph that buys at a price which it watches, and plans anew when it has changed since it was approved.
func buyer(price *atomic.Value, drift approval.Drift) *superstep.Graph[quoteState] {
	g := superstep.NewStateGraph[quoteState]("buyer")
	g.AddCommandNode("buy", func(ctx context.Context, s quoteState) (superstep.Command[quoteState], error) {
		now := price.Load().(string)
		d, err := superstep.Approve(ctx, approval.Action{Tool: "buy", Summary: "Buy a ton.", Params: json.RawMessage(`{}`),
			Watch: map[string]string{"price": now}, Drift: drift})
		var drifted *superstep.DriftError
		switch {
		case errors.As(err, &drifted) && drift == approval.DriftReplan:
			return superstep.Command[quoteState]{Update: did("planned anew: " + drifted.Changed[0]), Goto: superstep.To("wait")}, nil
		case err != nil:
			return superstep.Command[quoteState]{}, err
		}
		return superstep.Command[quoteState]{Update: did(string(d.Verdict) + " at " + now)}, nil
	})
	g.AddNode("wait", func(_ context.Context, _ quoteState) (quoteState, error) { return did("waits for another day"), nil })
	g.AddEdge(superstep.Start, "buy")
	return g.MustCompile()
}

func did(what string) (s quoteState) {
	s.Did.Append(what)
	return s
}

// TestWhatIsWatchedChangesWhileItWaits: what was approved is not done once the outside has changed. The run asks again,
// plans anew or stops, as its author said.
func TestWhatIsWatchedChangesWhileItWaits(t *testing.T) {
	for drift, want := range map[approval.Drift][]string{
		approval.DriftAsk:    {"approve at 12"},
		approval.DriftReplan: {"planned anew: watch.price", "waits for another day"},
		approval.DriftStop:   nil,
	} {
		t.Run(string(drift), func(t *testing.T) {
			var price atomic.Value
			g := buyer(&price, drift)
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				price.Store("10")
				thread := g.Thread(rt, graphtest.ThreadID(t))
				result, err := thread.Invoke(t.Context(), quoteState{})
				require.NoError(t, err)
				first := result.Questions[0]
				price.Store("12")
				result, err = thread.Approve(t.Context(), first.ID, superstep.WithToken(graphtest.Token(thread.ID(), first, "ann")))
				if drift == approval.DriftStop {
					require.True(t, failedAs(err, "Drift"), "%v", err)
					require.ErrorContains(t, err, "watch.price")
					return
				}
				require.NoError(t, err)
				if drift == approval.DriftAsk {
					second := result.Questions[0]
					require.NotEqual(t, first.ID, second.ID)
					require.Equal(t, []string{"watch.price"}, second.Approval.Before.Changed)
					_, err = thread.Approve(t.Context(), first.ID, superstep.WithToken(graphtest.Token(thread.ID(), first, "bob")))
					require.ErrorIs(t, err, superstep.ErrAnswerRefused, "the old question is answered")
					result, err = thread.Approve(t.Context(), second.ID, superstep.WithToken(graphtest.Token(thread.ID(), second, "bob")))
					require.NoError(t, err)
				}
				require.Equal(t, superstep.StatusFinished, result.Status)
				require.Equal(t, want, result.Output.Did.Get())
			}, g)
		})
	}
}

// TestPolicyDriftsWhileItWaits: votes count under the policy of now, also one that was given before it changed, and a
// policy that cannot be read lets nothing through.
func TestPolicyDriftsWhileItWaits(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	vote := func(by string) (superstep.Result[claims], error) {
		return g.thread.Approve(t.Context(), g.q.ID, superstep.WithToken(g.token(g.signer, func(c *approval.Claims) { c.Approver = by })))
	}
	unreadable := func() {
		require.Eventually(t, func() bool { _, err := g.book.Version(t.Context()); return err != nil }, 10*time.Second, 20*time.Millisecond)
	}
	require.NoError(t, os.Rename(g.file, g.file+".gone"))
	unreadable()
	_, err := vote("ann")
	require.Equal(t, approval.CodeUnavailable, refusedFor(err), "the rules have vanished: %v", err)
	require.NotContains(t, err.Error(), g.file)

	g.rules("people: {ann: {}}\nrules:\n  - allow: [")
	unreadable()
	_, err = vote("ann")
	require.Equal(t, approval.CodeUnavailable, refusedFor(err), "the rules are broken: %v", err)

	g.change("tool: bank.pay\n", "tool: bank.pay\n    need: 2\n")
	result, err := vote("ann")
	require.NoError(t, err)
	require.Equal(t, superstep.StatusWaiting, result.Status, "one was enough when it was asked, and two are now")
	require.Empty(t, g.paid)
	result, err = vote("bob")
	require.NoError(t, err)
	require.Equal(t, superstep.StatusFinished, result.Status)
	require.Len(t, g.paid, 1)
	require.Equal(t, []approval.Code{approval.CodeUnavailable, approval.CodeUnavailable}, g.refused())
}
