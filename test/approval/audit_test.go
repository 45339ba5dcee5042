package approval_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/graphtest"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// named are ids, which differ from thread to thread.
var named = regexp.MustCompile(`q-[0-9a-f]{8}|[0-9T:-]{19}Z`)

// traceOf is a thread's audit without what differs from run to run: times, hashes and ids. Its chain holds.
func traceOf[Out any](t *testing.T, th *superstep.Thread[Out]) []string {
	t.Helper()
	entries, chain, err := th.Audit(t.Context())
	require.NoError(t, err)
	end, err := approval.VerifyEntries(approval.Chain{}, entries)
	require.NoError(t, err)
	require.Equal(t, chain, end)
	out := make([]string, len(entries))
	for i, e := range entries {
		require.Equal(t, th.ID(), e.Thread)
		require.False(t, e.At.IsZero())
		line := string(e.Kind)
		for _, part := range []struct{ name, value string }{
			{"who", e.Who}, {"claimed", e.Claimed}, {"verdict", string(e.Verdict)}, {"mode", e.Mode}, {"state", e.State}, {"node", e.Node},
			{"effect", e.Effect}, {"event", e.Event}, {"code", string(e.Code)}, {"why", named.ReplaceAllString(e.Reason, "…")},
		} {
			if part.value != "" {
				line += fmt.Sprintf(" %s=%s", part.name, part.value)
			}
		}
		out[i] = line
	}
	return out
}

// TestAuditOfControlIsTheSameOnBothRuntimes: who pauses, answers, cancels, retries, updates, forks and drains a run is in its
// audit, in the same words whatever the run runs on.
func TestAuditOfControlIsTheSameOnBothRuntimes(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		ctx, th := t.Context(), r.Waits(t, rt)
		require.NoError(t, th.Pause(ctx, "lunch", superstep.AskedBy("ann")))
		require.NoError(t, th.Pause(ctx, "lunch again", superstep.AskedBy("bob")), "it is paused: nothing happens")
		require.NoError(t, th.Unpause(ctx, superstep.AskedBy("bob"), superstep.WithReason("back")))
		require.NoError(t, th.Cancel(ctx, "ordered twice", superstep.AskedBy("ann")))
		_, err := th.Retry(ctx, superstep.AskedBy("cid"), superstep.WithReason("was not"))
		require.NoError(t, err)
		state, err := th.State(ctx)
		require.NoError(t, err)
		var more rig.Payment
		more.Log.Append("by hand")
		_, err = th.Update(ctx, more, superstep.AsNode("second"), superstep.AskedBy("dora"), superstep.WithReason("forgot"))
		require.NoError(t, err)
		_, err = th.Fork(ctx, state.Checkpoint, "", superstep.AskedBy("eve"))
		require.NoError(t, err)
		got, err := th.Wait(ctx)
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		_, err = th.Resume(ctx, true, superstep.AskedBy("fay"))
		require.NoError(t, err)
		assert.Equal(t, []string{
			"paused claimed=ann why=lunch",
			"unpaused claimed=bob why=back",
			"cancelled claimed=ann mode=keep why=ordered twice",
			"retried claimed=cid why=was not",
			"updated claimed=dora node=second why=wrote log: forgot",
			"forked claimed=eve",
			"answered claimed=fay",
		}, traceOf(t, th))
		as, err := th.Fork(ctx, state.Checkpoint, th.ID()+"-b", superstep.AskedBy("eve"), superstep.WithReason("to look"))
		require.NoError(t, err)
		_, err = as.Wait(ctx)
		require.NoError(t, err)
		entries, _, err := as.Audit(ctx)
		require.NoError(t, err)
		require.Equal(t, th.ID(), entries[0].From)
		require.Equal(t, state.Checkpoint, entries[0].Checkpoint)
		assert.Equal(t, []string{"forked claimed=eve why=to look"}, traceOf(t, as))
	}, r.Graph)
}

// TestAuditOfCompensationIsTheSameOnBothRuntimes: what was taken back, what could not be, what a person said about that, and
// what was left.
func TestAuditOfCompensationIsTheSameOnBothRuntimes(t *testing.T) {
	r := rig.NewUndoable(true)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		th := r.Waits(t, rt)
		require.NoError(t, th.Cancel(t.Context(), "ordered twice", superstep.WithMode(thread.CancelCompensate), superstep.AskedBy("ann")))
		_, err := th.Wait(t.Context())
		require.NoError(t, err)
		_, err = th.Resume(t.Context(), "leave", superstep.AskedBy("bob"))
		require.Error(t, err)
		got := traceOf(t, th)
		for i, line := range got {
			got[i], _, _ = strings.Cut(line, " why=")
		}
		assert.Equal(t, []string{
			"cancelled claimed=ann mode=compensate",
			"undone state=compensated node=third effect=bank.pay",
			"unclear node=second effect=bank.fixed",
			"undone state=compensated node=first effect=bank.pay",
			"undone state=compensated node=first effect=bank.pay",
			"ruled claimed=bob verdict=leave effect=bank.fixed",
			"left node=second effect=bank.fixed",
		}, got)
		assert.Equal(t, "left node=second effect=bank.fixed why=left, says bob", traceOf(t, th)[6])
	}, r.Graph)
}

// TestAuditOfSilenceIsTheSameOnBothRuntimes: an approval that nobody answers in time.
func TestAuditOfSilenceIsTheSameOnBothRuntimes(t *testing.T) {
	for name, c := range map[string]struct {
		silence approval.Silence
		want    []string
	}{
		"deny": {approval.SilenceDeny, []string{"expired verdict=expired why=nobody decided in time"}},
		"escalate": {approval.SilenceEscalate, []string{"escalated why=nobody decided in time",
			"warned why=nobody has decided, and the time is over at …", "expired verdict=expired why=nobody decided in time"}},
		"pause": {approval.SilencePause, []string{"expired why=nobody decided in time: the run is paused, and the question stays open"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice()
			o.shape = func(a *approval.Action) { // the question is there before the first of these times is over
				a.Within, a.Warn, a.Silence = 10_000, 5_000, c.silence
				if c.silence == approval.SilenceEscalate {
					a.Escalate = []string{"boss"}
				}
			}
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				t.Parallel()
				th := o.graph.Thread(rt, graphtest.ThreadID(t))
				got, err := th.Invoke(t.Context(), claimFor(250))
				require.NoError(t, err)
				want := append([]string{"asked why=Pay 250", "warned why=nobody has decided, and the time is over at …"}, c.want...)
				require.Eventually(t, func() bool {
					entries, _, err := th.Audit(t.Context())
					return err == nil && len(entries) >= len(want)
				}, 2*time.Minute, 50*time.Millisecond)
				assert.Equal(t, want, traceOf(t, th))
				if c.silence != approval.SilencePause {
					return
				}
				paused, err := th.Wait(t.Context())
				require.NoError(t, err)
				require.Equal(t, thread.StatusPaused, paused.Status)
				by, reason := pausedBy(t, th)
				assert.Equal(t, "superstep", by)
				assert.Equal(t, fmt.Sprintf("nobody decided on the approval %s in time", got.Questions[0].ID), reason)
			}, o.graph)
		})
	}
}

// pausedBy is who paused a run, and why.
func pausedBy[Out any](t *testing.T, th *superstep.Thread[Out]) (by, reason string) {
	t.Helper()
	result, err := th.Wait(t.Context())
	require.NoError(t, err)
	require.NotNil(t, result.Paused)
	return result.Paused.By, result.Paused.Reason
}

// TestAuditOfUnclearWritesIsTheSameOnBothRuntimes: a write that the target has although its call failed, and one of which
// nobody can tell, so that a person does.
func TestAuditOfUnclearWritesIsTheSameOnBothRuntimes(t *testing.T) {
	var calls atomic.Int32
	lost := errors.New("the line was cut")
	kept := &superstep.Effect[string, string]{Name: "bank.kept", Target: superstep.TargetKeyed,
		Do: func(context.Context, string, string) (string, error) { return "", lost },
		Lookup: func(context.Context, string, string) (superstep.Finding[string], error) {
			return superstep.Finding[string]{Status: superstep.FindingCommitted, Receipt: "r-1"}, nil
		}}
	blind := &superstep.Effect[string, string]{Name: "bank.blind", Target: superstep.TargetNone,
		Do: func(context.Context, string, string) (string, error) {
			if calls.Add(1) == 1 {
				return "", lost
			}
			return "r-2", nil
		}}
	g := superstep.NewStateGraph[rig.Payment]("unclear")
	g.AddEffect(kept, blind)
	again := superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 3, InitialInterval: time.Millisecond, RetryOn: func(error) bool { return true }})
	g.AddNode("kept", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		r, err := kept.Call(ctx, "ann")
		s.Log.Append(r)
		return s, err
	}, again)
	g.AddNode("blind", func(ctx context.Context, s rig.Payment) (rig.Payment, error) {
		r, err := blind.Call(ctx, "bob")
		s.Log.Append(r)
		return s, err
	}, again)
	g.AddEdge(superstep.Start, "kept")
	g.AddEdge("kept", "blind")
	graph := g.MustCompile()
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		calls.Store(0)
		th := graph.Thread(rt, graphtest.ThreadID(t))
		got, err := th.Invoke(t.Context(), rig.Payment{})
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		got, err = th.Resume(t.Context(), map[string]string{"action": "repeat"}, superstep.AskedBy("cid"))
		require.NoError(t, err)
		require.Equal(t, []string{"r-1", "r-2"}, got.Output.Log.Get())
		assert.Equal(t, []string{
			"reconciled state=committed node=kept effect=bank.kept why=lookup after crash",
			"unclear state=unknown node=blind effect=bank.blind why=the effect has no Lookup",
			"ruled claimed=cid verdict=repeat effect=bank.blind why=the effect has no Lookup",
			"reconciled state=committed node=blind effect=bank.blind why=call 2 under its key, after the outside was asked",
		}, traceOf(t, th))
	}, graph)
}

// TestRunThatJustRunsHasNoAudit: an audit is of what is done to a run, not of a run.
func TestRunThatJustRunsHasNoAudit(t *testing.T) {
	r := rig.NewUndoable(false)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		require.Empty(t, traceOf(t, r.Waits(t, rt)))
	}, r.Graph)
}

// TestExportedAuditIsSignedOnBothRuntimes: what is exported is proven with a worker's public key, also when the thread has
// gone on in other runs, and what one worker signs without a key is not.
func TestExportedAuditIsSignedOnBothRuntimes(t *testing.T) {
	private, _, err := token.Generate(approval.Owner{Worker: "till"}, "w-1")
	require.NoError(t, err)
	signer, err := token.ParseSigner(private)
	require.NoError(t, err)
	keys, err := token.New(signer.Key())
	require.NoError(t, err)
	r := rig.NewUndoable(false)
	for name, runtime := range map[string]func(t *testing.T) superstep.Runtime{
		"memory": func(*testing.T) superstep.Runtime { return superstep.NewMemory(superstep.WithAuditSigner(signer)) },
		"temporal": func(t *testing.T) superstep.Runtime {
			s := rig.NewServer(t)
			s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{r.Graph}, AuditSigner: signer})
			return s.Client
		},
	} {
		t.Run(name, func(t *testing.T) {
			th := r.Waits(t, runtime(t))
			require.NoError(t, th.Pause(t.Context(), "lunch"))
			require.NoError(t, th.Unpause(t.Context()))
			x, err := th.AuditExport(t.Context())
			require.NoError(t, err)
			require.Len(t, x.Entries, 2)
			_, err = x.Verify(keys, 1)
			require.NoError(t, err)
			require.NoError(t, th.Cancel(t.Context(), "later"))
			_, err = th.Retry(t.Context())
			require.NoError(t, err)
			later, err := th.AuditExport(t.Context())
			require.NoError(t, err)
			require.Len(t, later.Entries, 4)
			head, err := later.Verify(keys, 1)
			require.NoError(t, err)
			require.Equal(t, "till", head.Worker)
			require.Equal(t, x.Entries, later.Entries[:2])
			later.Signed = x.Signed
			_, err = later.Verify(keys, 1)
			require.Error(t, err, "an older head does not prove what came later")
		})
	}
	t.Run("without a key", func(t *testing.T) {
		th := r.Waits(t, superstep.NewMemory())
		require.NoError(t, th.Pause(t.Context(), "lunch"))
		x, err := th.AuditExport(t.Context())
		require.NoError(t, err)
		_, err = x.Verify(keys, 1)
		var unsigned *approval.UnsignedError
		require.ErrorAs(t, err, &unsigned)
	})
}
