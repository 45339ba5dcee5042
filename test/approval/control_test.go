package approval_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/approval/rules"
	"superstep.dev/approval/token"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// controlled is a graph whose runs are under rules for control: those of ops may, with the permission.
type controlled struct {
	rig.Undoable
	gate   *approval.Gate
	staff  staff
	signer *token.Signer
}

func newControlled(t *testing.T) *controlled {
	t.Helper()
	book, err := rules.Parse("rules.yaml", []byte("groups: {ops: {}}\ncontrol:\n  - allow: operators\n    by: [group:ops]\n    permissions: [run.control]\n"))
	require.NoError(t, err)
	private, _, err := token.Generate(approval.Owner{Issuer: "sso"}, "sso")
	require.NoError(t, err)
	c := &controlled{Undoable: rig.NewUndoable(false), staff: staff{}}
	c.signer, err = token.ParseSigner(private)
	require.NoError(t, err)
	keys, err := token.New(c.signer.Key())
	require.NoError(t, err)
	c.hire()
	c.staff["zoe"] = approval.Person{Name: "zoe", Permissions: []string{"run.control"}}
	c.gate = &approval.Gate{Keys: keys, Policy: book, Directory: c.staff}
	return c
}

func (c *controlled) hire() {
	c.staff["ann"] = approval.Person{Name: "ann", Groups: []string{"ops"}, Permissions: []string{"run.control"}}
}

// on runs body on both runtimes.
func (c *controlled) on(t *testing.T, body func(t *testing.T, rt superstep.Runtime)) {
	t.Run("memory", func(t *testing.T) { body(t, superstep.NewMemory(superstep.WithGate(c.gate))) })
	t.Run("temporal", func(t *testing.T) {
		s := rig.NewServer(t)
		s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{c.Graph}, Gate: c.gate})
		body(t, s.Client)
	})
}

// by is a token for that.
func (c *controlled) by(t *testing.T, who, thread string, op approval.Op, on string) superstep.RequestOption {
	t.Helper()
	signed, err := c.signer.Sign(approval.Control{Op: op, On: on}.Claims(thread, who))
	require.NoError(t, err)
	return superstep.WithToken(signed)
}

func refusedAs(t *testing.T, code approval.Code, err error) {
	t.Helper()
	require.ErrorIs(t, err, thread.ErrAnswerRefused)
	require.Equal(t, code, refusedFor(err), "%v", err)
}

// TestPauseEndsWithATokenAndAFreshCheck: who ends a pause proves who they are, for this pause, and may still do so now.
func TestPauseEndsWithATokenAndAFreshCheck(t *testing.T) {
	c := newControlled(t)
	c.on(t, func(t *testing.T, rt superstep.Runtime) {
		ctx, th := t.Context(), c.Waits(t, rt)
		id := th.ID()
		refusedAs(t, approval.CodeUnsigned, th.Pause(ctx, "lunch", superstep.AskedBy("ann")))
		got, err := th.Wait(ctx)
		require.NoError(t, err)
		require.Nil(t, got.Paused, "nothing was paused")
		require.NoError(t, th.Pause(ctx, "lunch", c.by(t, "ann", id, approval.OpPause, "")))
		got, err = th.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, "ann", got.Paused.By)
		this := approval.PausedAt(got.Paused.At)

		refusedAs(t, approval.CodeUnsigned, th.Unpause(ctx))
		refusedAs(t, approval.CodeNotYours, th.Unpause(ctx, c.by(t, "zoe", id, approval.OpUnpause, this)))
		refusedAs(t, approval.CodeUnknown, th.Unpause(ctx, c.by(t, "nobody", id, approval.OpUnpause, this)))
		refusedAs(t, approval.CodeWrongRun, th.Unpause(ctx, c.by(t, "ann", id, approval.OpPause, "")))
		refusedAs(t, approval.CodeWrongRun, th.Unpause(ctx, c.by(t, "ann", id, approval.OpUnpause, approval.PausedAt(got.Paused.At.Add(-time.Hour)))))
		refusedAs(t, approval.CodeWrongThread, th.Unpause(ctx, c.by(t, "ann", id+"-other", approval.OpUnpause, this)))
		refusedAs(t, approval.CodeWrongPerson, th.Unpause(ctx, c.by(t, "ann", id, approval.OpUnpause, this), superstep.AskedBy("zoe")))
		refusedAs(t, approval.CodeMalformed, th.Unpause(ctx, superstep.WithToken("ann may")))
		c.staff["ann"] = approval.Person{Name: "ann", Groups: []string{"ops"}}
		refusedAs(t, approval.CodePermission, th.Unpause(ctx, c.by(t, "ann", id, approval.OpUnpause, this)))
		c.hire()
		good := c.by(t, "ann", id, approval.OpUnpause, this)
		require.NoError(t, th.Unpause(ctx, good, superstep.WithReason("back")))

		require.NoError(t, th.Pause(ctx, "supper", c.by(t, "ann", id, approval.OpPause, "")))
		refusedAs(t, approval.CodeWrongRun, th.Unpause(ctx, good))
		entries, _, err := th.Audit(ctx)
		require.NoError(t, err)
		var who []string
		for _, e := range entries {
			if e.Kind != approval.KindDenied {
				who = append(who, string(e.Kind)+" "+e.Who+" "+e.KeyID)
				require.Empty(t, e.Claimed)
				require.NotEmpty(t, e.Token)
			}
		}
		require.Equal(t, []string{"paused ann sso", "unpaused ann sso", "paused ann sso"}, who)
		require.Contains(t, traceOf(t, th), `denied who=ann code=permission why=ann does not have the permission "run.control" now (rule "operators")`)
	})
}

// TestEverythingThatIsDoneToARunTakesAToken: none of it happens without one, and all of it does with one.
func TestEverythingThatIsDoneToARunTakesAToken(t *testing.T) {
	c := newControlled(t)
	c.on(t, func(t *testing.T, rt superstep.Runtime) {
		ctx, th := t.Context(), c.Waits(t, rt)
		id := th.ID()
		state, err := th.State(ctx)
		require.NoError(t, err)
		q := state.Questions[0].ID
		var more rig.Payment
		more.Log.Append("by hand")

		_, err = th.Resume(ctx, true, superstep.AskedBy("ann"))
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.AnswerByID(ctx, map[string]any{q: true}, superstep.AskedBy("ann"))
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.SendEvent(ctx, "go", nil)
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Update(ctx, more, superstep.AsNode("second"))
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Fork(ctx, state.Checkpoint, "")
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Fork(ctx, state.Checkpoint, id+"-b")
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Command(ctx, superstep.Command[rig.Payment]{Update: more})
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Invoke(ctx, nil, superstep.WithAnswers(map[string]any{q: true}))
		refusedAs(t, approval.CodeUnsigned, err)
		refusedAs(t, approval.CodeUnsigned, th.Cancel(ctx, "enough"))
		refusedAs(t, approval.CodeUnsigned, th.Cancel(ctx, "enough", superstep.WithMode(thread.CancelCompensate)))
		got, err := th.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, got.Status, "nothing has happened")
		require.Equal(t, q, got.Questions[0].ID)
		require.Equal(t, []string{"ann", "bob", "cid", "dan"}, c.Bank.Paid())

		_, err = th.SendEvent(ctx, "go", nil, c.by(t, "ann", id, approval.OpEvent, "go"))
		require.NoError(t, err)
		refusedAs(t, approval.CodeWrongRun, th.Cancel(ctx, "enough", superstep.WithMode(thread.CancelCompensate), c.by(t, "ann", id, approval.OpCancel, "keep")))
		require.NoError(t, th.Cancel(ctx, "enough", c.by(t, "ann", id, approval.OpCancel, "keep")))
		_, err = th.Retry(ctx)
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Invoke(ctx, nil)
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Retry(ctx, c.by(t, "zoe", id, approval.OpRetry, ""))
		refusedAs(t, approval.CodeNotYours, err)
		once := c.by(t, "ann", id, approval.OpRetry, "")
		got, err = th.Retry(ctx, once)
		require.NoError(t, err)
		require.Len(t, got.Questions, 1)
		require.NoError(t, th.Cancel(ctx, "enough", c.by(t, "ann", id, approval.OpCancel, "keep")))
		_, err = th.Retry(ctx, once)
		require.Error(t, err, "a token counts once")
		got, err = th.Retry(ctx, c.by(t, "ann", id, approval.OpRetry, ""))
		require.NoError(t, err)

		_, err = th.Update(ctx, more, superstep.AsNode("second"), c.by(t, "ann", id, approval.OpUpdate, ""))
		require.NoError(t, err)
		_, err = th.Fork(ctx, state.Checkpoint, "", c.by(t, "ann", id, approval.OpFork, state.Checkpoint))
		require.NoError(t, err)
		got, err = th.Wait(ctx)
		require.NoError(t, err)
		_, err = th.Resume(ctx, true, c.by(t, "ann", id, approval.OpResume, got.Questions[0].ID))
		require.NoError(t, err)
		as, err := th.Fork(ctx, state.Checkpoint, id+"-b", c.by(t, "ann", id+"-b", approval.OpFork, state.Checkpoint))
		require.NoError(t, err)
		_, err = as.Wait(ctx)
		require.NoError(t, err)
		_, err = th.Invoke(ctx, rig.Payment{})
		require.NoError(t, err, "new input is nobody's control")
	})
}

// TestToGoOnBehindACompensationTakesAToken as behind any run that was cancelled, and is on record.
func TestToGoOnBehindACompensationTakesAToken(t *testing.T) {
	c := newControlled(t)
	c.on(t, func(t *testing.T, rt superstep.Runtime) {
		ctx, th := t.Context(), c.Waits(t, rt)
		id := th.ID()
		require.NoError(t, th.Cancel(ctx, "enough", superstep.WithMode(thread.CancelCompensate), c.by(t, "ann", id, approval.OpCancel, "compensate")))
		require.Empty(t, c.Bank.Paid())
		_, err := th.Invoke(ctx, nil)
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Retry(ctx)
		refusedAs(t, approval.CodeUnsigned, err)
		require.Empty(t, c.Bank.Paid())
		_, err = th.Retry(ctx, c.by(t, "ann", id, approval.OpRetry, ""))
		require.NoError(t, err)
		require.Contains(t, traceOf(t, th), "retried who=ann")
	})
}

// TestSeveralAnswersTakeOneToken: it is for all of them, and not for one question.
func TestSeveralAnswersTakeOneToken(t *testing.T) {
	c := newControlled(t)
	c.on(t, func(t *testing.T, rt superstep.Runtime) {
		ctx, th := t.Context(), c.Waits(t, rt)
		state, err := th.State(ctx)
		require.NoError(t, err)
		q := state.Questions[0].ID
		answers := map[string]any{q: true}
		_, err = th.AnswerByID(ctx, answers, c.by(t, "zoe", th.ID(), approval.OpResume, ""))
		refusedAs(t, approval.CodeNotYours, err)
		_, err = th.AnswerByID(ctx, answers, c.by(t, "ann", th.ID(), approval.OpResume, q))
		refusedAs(t, approval.CodeWrongRun, err)
		reply, err := th.AnswerByID(ctx, answers, c.by(t, "ann", th.ID(), approval.OpResume, ""))
		require.NoError(t, err)
		require.True(t, reply.Accepted)
		require.Equal(t, []string{q}, reply.Questions)
		got, err := th.Wait(ctx)
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, got.Status)
		require.Contains(t, traceOf(t, th), "answered who=ann")
	})
}

// TestSignalsTakeTokensToo: what is stored for a run, and passes no validator, is held to the same rules.
func TestSignalsTakeTokensToo(t *testing.T) {
	c := newControlled(t)
	s := rig.NewServer(t)
	s.WorkWith(superstep.WorkerConfig{Graphs: []superstep.Runnable{c.Graph}, Gate: c.gate})
	th := c.Waits(t, s.Client)
	state, err := th.State(t.Context())
	require.NoError(t, err)
	for name, arg := range map[string]any{
		protocol.SignalPause:  protocol.PauseRequest{ID: "p", By: "ann"},
		protocol.SignalCancel: protocol.CancelRequest{ID: "c", By: "ann", Mode: protocol.CancelKeep},
		protocol.SignalEvent:  protocol.EventRequest{ID: "e", By: "ann", Name: "go"},
		protocol.SignalResume: protocol.ResumeRequest{ID: "r", By: "ann", Question: state.Questions[0].ID, Value: []byte("true")},
	} {
		require.NoError(t, s.Temporal.SignalWorkflow(t.Context(), th.ID(), "", name, arg))
	}
	require.Eventually(t, func() bool {
		entries, _, err := th.Audit(t.Context())
		denied := 0
		for _, e := range entries {
			if e.Kind == approval.KindDenied && e.Code == approval.CodeUnsigned && e.Claimed == "ann" {
				denied++
			}
		}
		return err == nil && denied == 4
	}, 2*time.Minute, 50*time.Millisecond)
	got, err := th.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, thread.StatusWaiting, got.Status)
	require.Nil(t, got.Paused)
	require.Len(t, got.Questions, 1)
}

// TestWithoutRulesForControl: everybody may, and a token that is good proves who it was.
func TestWithoutRulesForControl(t *testing.T) {
	c := newControlled(t)
	c.gate.Policy = nil
	c.on(t, func(t *testing.T, rt superstep.Runtime) {
		th := c.Waits(t, rt)
		require.NoError(t, th.Pause(t.Context(), "lunch", superstep.AskedBy("zoe")))
		require.NoError(t, th.Unpause(t.Context(), superstep.WithToken("nonsense"), superstep.AskedBy("zoe")))
		require.NoError(t, th.Pause(t.Context(), "supper", c.by(t, "ann", th.ID(), approval.OpPause, "")))
		require.Equal(t, []string{"paused claimed=zoe why=lunch", "unpaused claimed=zoe", "paused who=ann why=supper"}, traceOf(t, th))
	})
}

// TestMoreOfABudgetTakesAToken, be it given as an answer or with a run: a new thread's budget takes none.
func TestMoreOfABudgetTakesAToken(t *testing.T) {
	c := newControlled(t)
	c.on(t, func(t *testing.T, rt superstep.Runtime) {
		ctx, th := t.Context(), c.Graph.Thread(rt, testserver.Queue(t))
		got, err := th.Invoke(ctx, rig.Payment{}, superstep.WithBudget(superstep.Budget{Supersteps: 1}))
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, got.Status)
		q := got.Questions[0]
		require.Equal(t, "budget", q.Node)

		much := superstep.WithBudget(superstep.Budget{Supersteps: 100})
		_, err = th.Resume(ctx, map[string]int{"supersteps": 100}, superstep.AskedBy("ann"))
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Invoke(ctx, nil, much)
		refusedAs(t, approval.CodeUnsigned, err)
		_, err = th.Invoke(ctx, rig.Payment{}, much)
		refusedAs(t, approval.CodeUnsigned, err)
		view, err := th.Show(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(1), view.Budget.Limit.Supersteps)
		require.Equal(t, q.ID, view.Questions[0].ID)

		got, err = th.Resume(ctx, map[string]int{"supersteps": 100}, c.by(t, "ann", th.ID(), approval.OpResume, q.ID))
		require.NoError(t, err)
		view, err = th.Show(ctx)
		require.NoError(t, err)
		require.Equal(t, int64(101), view.Budget.Limit.Supersteps)
		require.NotEqual(t, "budget", append(got.Questions, thread.Question{})[0].Node)
	})
}
