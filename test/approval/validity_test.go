package approval_test

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
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// dated is a thread of an office behind a gate whose clock the test moves.
type dated struct {
	*gated
	t      *testing.T
	thread *superstep.Thread[claims]
	later  atomic.Int64 // how much, in nanoseconds
}

// onBothDated runs one test on both runtimes, with an office that pays at a high risk.
func onBothDated(t *testing.T, body func(d *dated)) {
	for name, runtime := range gatedRuntimes {
		t.Run(name, func(t *testing.T) {
			d := &dated{gated: newGated(t), t: t}
			shape := d.shape
			d.shape = func(a *approval.Action) { shape(a); a.Risk = approval.RiskHigh }
			d.gate.Now = func() time.Time { return time.Now().Add(time.Duration(d.later.Load())) }
			d.thread = d.graph.Thread(runtime(t, d.gated), testserver.Queue(t))
			body(d)
		})
	}
}

// pass lets time pass.
func (d *dated) pass(time time.Duration) { d.later.Add(int64(time)) }

// asks begins, and returns what is asked.
func (d *dated) asks() thread.Question {
	d.t.Helper()
	result, err := d.thread.Invoke(d.t.Context(), claimFor(250), superstep.WithRequester("rita"))
	require.NoError(d.t, err)
	require.Len(d.t, result.Questions, 1)
	return result.Questions[0]
}

// votes has somebody approve what the thread asks now.
func (d *dated) votes(q thread.Question, by string) (superstep.Result[claims], error) {
	d.t.Helper()
	return d.thread.Approve(d.t.Context(), q.ID, d.token(d.t, q, by, func(c *approval.Claims) {
		c.Thread, c.IssuedAt, c.ExpiresAt = d.thread.ID(), d.gate.Now(), d.gate.Now().Add(time.Minute)
	}))
}

// TestLapsedApprovalIsAskedForAnew when what was approved is to be done, which a pause has put off.
func TestLapsedApprovalIsAskedForAnew(t *testing.T) {
	onBothDated(t, func(d *dated) {
		q := d.asks()
		require.Equal(d.t, approval.DefaultValidity.Milliseconds(), q.Approval.ValidFor, "people see for how long")
		require.NoError(d.t, d.thread.Pause(d.t.Context(), "a long lunch"))
		_, err := d.votes(q, "ann")
		require.NoError(d.t, err)
		d.pass(approval.DefaultValidity)
		require.NoError(d.t, d.thread.Unpause(d.t.Context()))
		result, err := d.thread.Wait(d.t.Context())
		require.NoError(d.t, err)
		require.Equal(d.t, thread.StatusWaiting, result.Status)
		require.Empty(d.t, d.paid)
		again := result.Questions[0]
		require.NotEqual(d.t, q.ID, again.ID)
		require.Equal(d.t, q.ID, again.Approval.Before.Question)
		require.Equal(d.t, []string{"approval"}, again.Approval.Before.Changed)
		require.Equal(d.t, q.Approval.Digest, again.Approval.Digest, "it is the same action")
		_, err = d.votes(q, "bob")
		require.ErrorIs(d.t, err, thread.ErrAnswerRefused, "the question before is answered")
		result, err = d.votes(again, "ann")
		require.NoError(d.t, err)
		require.Equal(d.t, thread.StatusFinished, result.Status)
		require.Len(d.t, d.paid, 1)
		require.Equal(d.t, []approval.Kind{approval.KindAsked, approval.KindPaused, approval.KindAnswered, approval.KindUnpaused,
			approval.KindNotUsed, approval.KindAsked, approval.KindAnswered, approval.KindUsed}, audited(d.t, d.thread))
	})
}

// TestLapsedApprovalAfterARetry: what was refused at its use, and could be done again, is not done on the old approval.
func TestLapsedApprovalAfterARetry(t *testing.T) {
	for name, passes := range map[string]time.Duration{"in time": time.Hour, "too late": 30 * 24 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			onBothDated(t, func(d *dated) {
				q := d.asks()
				require.NoError(d.t, d.thread.Pause(d.t.Context(), "lunch"))
				_, err := d.votes(q, "ann")
				require.NoError(d.t, err)
				ann := d.staff["ann"]
				d.staff["ann"] = approval.Person{Name: "ann", Groups: ann.Groups}
				require.NoError(d.t, d.thread.Unpause(d.t.Context()))
				_, err = d.thread.Wait(d.t.Context())
				require.True(d.t, failedAs(err, "NotAllowed"), "%v", err)
				d.staff["ann"] = ann
				d.pass(passes)
				result, err := d.thread.Retry(d.t.Context())
				require.NoError(d.t, err)
				if passes > approval.DefaultValidity {
					require.Empty(d.t, d.paid)
					require.Equal(d.t, thread.StatusWaiting, result.Status)
					result, err = d.votes(result.Questions[0], "bob")
					require.NoError(d.t, err)
				}
				require.Equal(d.t, thread.StatusFinished, result.Status)
				require.Len(d.t, d.paid, 1)
			})
		})
	}
}

// TestForkUsesNoLapsedApproval: a branch from before the write asks anew, on its own thread and on another.
func TestForkUsesNoLapsedApproval(t *testing.T) {
	for name, suffix := range map[string]string{"a branch": "", "another thread": "-fork"} {
		t.Run(name, func(t *testing.T) { onBothDated(t, func(d *dated) { forkLapsed(d, suffix) }) })
	}
}

func forkLapsed(d *dated, suffix string) {
	shape := d.shape
	d.shape = func(a *approval.Action) { shape(a); a.Permissions = nil } // a branch is nobody's in particular
	q := d.asks()
	require.NoError(d.t, d.thread.Pause(d.t.Context(), "lunch"))
	_, err := d.votes(q, "ann")
	require.NoError(d.t, err)
	ann := d.staff["ann"]
	d.staff["ann"] = approval.Person{Name: "ann"}
	require.NoError(d.t, d.thread.Unpause(d.t.Context()))
	_, err = d.thread.Wait(d.t.Context())
	require.True(d.t, failedAs(err, "NotAllowed"), "%v", err)
	d.staff["ann"] = ann
	d.pass(30 * 24 * time.Hour)
	history, err := d.thread.History(d.t.Context())
	require.NoError(d.t, err)
	as := ""
	if suffix != "" {
		as = d.thread.ID() + suffix
	}
	d.thread, err = d.thread.Fork(d.t.Context(), history[0].Checkpoint, as)
	require.NoError(d.t, err)
	result, err := d.thread.Wait(d.t.Context())
	require.NoError(d.t, err)
	require.Equal(d.t, thread.StatusWaiting, result.Status)
	require.Empty(d.t, d.paid)
	require.NotEqual(d.t, q.ID, result.Questions[0].ID)
	_, err = d.votes(result.Questions[0], "bob")
	require.NoError(d.t, err)
	require.Len(d.t, d.paid, 1)
}

// TestVotesLapseWhileTheyAreTooFew: an old vote makes no quorum with a fresh one, and may be given again.
func TestVotesLapseWhileTheyAreTooFew(t *testing.T) {
	onBothDated(t, func(d *dated) {
		shape := d.shape
		d.shape = func(a *approval.Action) { shape(a); a.Quorum, a.ValidFor = 2, time.Hour.Milliseconds() }
		d.asksAgainBehind(func() { d.pass(time.Hour) })
	})
}

// asksAgainBehind has two people approve, after something that takes the first one's vote: the second makes no quorum, and the first may vote
// again.
func (d *dated) asksAgainBehind(something func()) {
	d.t.Helper()
	q := d.asks()
	_, err := d.votes(q, "ann")
	require.NoError(d.t, err)
	something()
	result, err := d.votes(q, "bob")
	require.NoError(d.t, err)
	require.Equal(d.t, thread.StatusWaiting, result.Status)
	require.Equal(d.t, q.ID, result.Questions[0].ID)
	require.Len(d.t, result.Questions[0].Approval.Votes, 1)
	result, err = d.votes(q, "ann")
	require.NoError(d.t, err)
	require.Equal(d.t, thread.StatusFinished, result.Status)
	require.Equal(d.t, []approval.Kind{approval.KindAsked, approval.KindVoted, approval.KindLapsed, approval.KindVoted,
		approval.KindAnswered, approval.KindUsed}, audited(d.t, d.thread))
}

// stolen are keys of which one was stolen up to a moment, once it is known: what was signed before does not count.
type stolen struct {
	approval.Keys
	until atomic.Pointer[time.Time]
}

// Owner implements [approval.Keys].
func (s *stolen) Owner(keyID string, at time.Time) (approval.Owner, error) {
	if until := s.until.Load(); until != nil && at.Before(*until) {
		return approval.Owner{}, &approval.TokenError{Code: approval.CodeRetiredKey, Key: keyID, Reason: "it was stolen"}
	}
	return s.Keys.Owner(keyID, at)
}

// TestVotesOfAStolenKeyWhileTheyAreTooFew: they make no quorum with a good one, and nobody is told that they do.
func TestVotesOfAStolenKeyWhileTheyAreTooFew(t *testing.T) {
	onBothDated(t, func(d *dated) {
		keys := &stolen{Keys: d.gate.Keys}
		d.gate.Keys = keys
		shape := d.shape
		d.shape = func(a *approval.Action) { shape(a); a.Quorum = 2 }
		d.asksAgainBehind(func() {
			d.pass(time.Minute)
			known := d.gate.Now()
			keys.until.Store(&known)
		})
	})
}

// TestVotesOfSomebodyWhoMayNotAnyMore: a voter who lost the permission, or is asked no more, makes no quorum, and the run waits on.
func TestVotesOfSomebodyWhoMayNotAnyMore(t *testing.T) {
	for name, as := range map[string]approval.Person{
		"without the permission": {Name: "ann", Groups: []string{"finance"}},
		"out of the group":       {Name: "ann", Permissions: []string{"refund.write"}},
	} {
		t.Run(name, func(t *testing.T) {
			onBothDated(t, func(d *dated) {
				shape := d.shape
				d.shape = func(a *approval.Action) { shape(a); a.Quorum = 2 }
				q := d.asks()
				_, err := d.votes(q, "ann")
				require.NoError(d.t, err)
				ann := d.staff["ann"]
				d.staff["ann"] = as
				result, err := d.votes(q, "bob")
				require.NoError(d.t, err)
				require.Equal(d.t, thread.StatusWaiting, result.Status)
				require.Equal(d.t, q.ID, result.Questions[0].ID, "the question stays")
				require.Len(d.t, result.Questions[0].Approval.Votes, 1)
				d.staff["ann"] = ann
				result, err = d.votes(q, "ann")
				require.NoError(d.t, err)
				require.Equal(d.t, thread.StatusFinished, result.Status)
				require.Len(d.t, d.paid, 1)
				require.Contains(d.t, audited(d.t, d.thread), approval.KindLapsed)
			})
		})
	}
}

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
				th := g.Thread(rt, graphtest.ThreadID(t))
				result, err := th.Invoke(t.Context(), quoteState{})
				require.NoError(t, err)
				first := result.Questions[0]
				price.Store("12")
				result, err = th.Approve(t.Context(), first.ID, superstep.WithToken(graphtest.Token(th.ID(), first, "ann")))
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
					_, err = th.Approve(t.Context(), first.ID, superstep.WithToken(graphtest.Token(th.ID(), first, "bob")))
					require.ErrorIs(t, err, thread.ErrAnswerRefused, "the old question is answered")
					result, err = th.Approve(t.Context(), second.ID, superstep.WithToken(graphtest.Token(th.ID(), second, "bob")))
					require.NoError(t, err)
				}
				require.Equal(t, thread.StatusFinished, result.Status)
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
		require.Eventually(t, func() bool { _, err := g.book.Version(t.Context()); return err != nil }, time.Minute, 20*time.Millisecond)
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
	require.Equal(t, thread.StatusWaiting, result.Status, "one was enough when it was asked, and two are now")
	require.Empty(t, g.paid)
	result, err = vote("bob")
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	require.Len(t, g.paid, 1)
	require.Equal(t, []approval.Code{approval.CodeUnavailable, approval.CodeUnavailable}, g.refused())
}
