package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// TestReconciliationAsAUserSeesIt: a worker is killed with a call under way. What the outside says then decides what is
// done, and whoever looks sees it in show and in effects, with what to do next.
func TestReconciliationAsAUserSeesIt(t *testing.T) {
	const person = "resume"
	for _, c := range []struct {
		name, effect, says string
		cancelled          bool
		status             thread.Status
		state              string
		calls, undone      int
		evidence, next     string
	}{
		{"committed", "keyed", "committed", false, thread.StatusFinished, "committed", 1, 0, "lookup after crash", ""},
		{"not found, keyed", "keyed", "not_found", false, thread.StatusFinished, "committed", 2, 0, "", ""},
		{"not found, lookup only", "lookup_only", "not_found", false, thread.StatusFinished, "committed", 2, 0, "", ""},
		{"not found, no guarantee", "none", "not_found", false, thread.StatusWaiting, "unknown", 1, 0, "does not make repeating safe", person},
		{"partial", "keyed", "partial", false, thread.StatusWaiting, "unknown", 1, 0, "half of it", person},
		{"no clear answer", "keyed", "unknown", false, thread.StatusWaiting, "unknown", 1, 0, "who knows", person},
		{"no lookup", "blind", "", false, thread.StatusWaiting, "unknown", 1, 0, "no Lookup", person},
		{"committed, cancelled", "keyed", "committed", true, thread.StatusCancelled, "compensated", 1, 1, "", "retry"},
		{"partial, cancelled", "keyed", "partial", true, thread.StatusWaiting, "", 1, 0, "half of it", person}, // unknown, if it ran again before
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			r.put("hang")
			r.putText("effect", c.effect)
			r.putText("says", c.says)
			first := r.graphsWorker("worker-1")
			threadID := testserver.Queue(t)
			r.again("reconciles", threadID, r.steered())
			r.until("the call is under way", func() bool { return r.ran("did") == 1 })
			r.kill(first)
			r.remove("hang")
			if c.cancelled {
				require.NoError(t, <-r.cancelBehind(threadID))
			}
			r.graphsWorker("worker-2")
			r.wait(threadID, c.status)
			require.Equal(t, []int{c.calls, c.undone}, []int{r.ran("did"), r.ran("undid")})

			shown, listed := r.exits(0, r.own("show", threadID).end()).stdout, r.exits(0, r.own("effects", threadID).end()).stdout
			require.Contains(t, listed, c.state)
			require.Contains(t, listed, c.evidence)
			if c.status == thread.StatusWaiting { // show lists what is under way
				require.Contains(t, shown, c.evidence)
			}
			require.Contains(t, shown, c.next)
			var view thread.View
			var effects thread.EffectsView
			require.NoError(t, json.Unmarshal([]byte(r.exits(0, r.own("show", threadID, "-o", "json").end()).stdout), &view))
			require.NoError(t, json.Unmarshal([]byte(r.exits(0, r.own("effects", threadID, "-o", "json").end()).stdout), &effects))
			require.Equal(t, c.status, view.Status)
			require.Len(t, effects.Effects, 1)
			require.Contains(t, effects.Effects[0].State, c.state)
			require.Contains(t, effects.Effects[0].Evidence, c.evidence)
			require.Equal(t, c.next == person, len(view.Questions) == 1)
			if c.next == person {
				require.Contains(t, shown, view.Questions[0].ID)
				require.True(t, strings.Contains(shown, "resume "+threadID), shown)
			}
		})
	}
}

// TestAPartialWriteIsUndone by a person's decision; the worker that undoes it is killed behind the call. Another one asks the
// outside, does not undo it a second time, and fails the node. A retry makes another write.
func TestAPartialWriteIsUndone(t *testing.T) {
	for _, mode := range []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit} {
		t.Run(string(mode), func(t *testing.T) {
			r := newRig(t)
			r.put("hang")
			r.put("hang-undo")
			r.putText("effect", "keyed")
			r.putText("says", "partial")
			r.putText("undone-says", "not_found")
			first := r.graphsWorker("worker-1")
			threadID := testserver.Queue(t)
			r.again("reconciles", threadID, r.steered(), mode)
			r.until("the call is under way", func() bool { return r.ran("did") == 1 })
			r.kill(first)
			r.remove("hang")
			second := r.graphsWorker("worker-2")
			q := r.asked(threadID)
			require.Contains(t, string(q.Schema), `"undo"`)
			_, err := r.answer(threadID, q.ID, map[string]string{"action": "undo"})
			require.NoError(t, err)
			r.until("it is being undone", func() bool { return r.ran("undid") == 1 })
			r.kill(second)
			r.remove("hang-undo")
			r.graphsWorker("worker-3")
			view := r.wait(threadID, thread.StatusFailed)
			require.Contains(t, view.Error, "undone, says ann")
			require.Equal(t, []int{1, 1}, []int{r.ran("did"), r.ran("undid")})
			require.Contains(t, r.exits(0, r.own("effects", threadID).end()).stdout, "compensated")
			_, err = r.client.Retry(t.Context(), thread.RetryRequest{Thread: threadID})
			require.NoError(t, err)
			r.wait(threadID, thread.StatusFinished)
			require.Equal(t, []int{2, 1}, []int{r.ran("did"), r.ran("undid")})
			var effects thread.EffectsView
			require.NoError(t, json.Unmarshal([]byte(r.exits(0, r.own("effects", threadID, "-o", "json").end()).stdout), &effects))
			require.Len(t, effects.Effects, 2)
			require.Equal(t, []string{"compensated", "committed"}, []string{effects.Effects[0].State, effects.Effects[1].State})
		})
	}
}

// TestWhatCouldNotBeAskedIsOnRecord: a worker is killed with a call under way whose trace is stored nowhere, and then the
// outside cannot be asked. The run fails; effects lists the key, and a cancellation looks it up and undoes it.
func TestWhatCouldNotBeAskedIsOnRecord(t *testing.T) {
	r := newRig(t)
	r.put("hang")
	r.putText("effect", "keyed")
	first := r.graphsWorker("worker-1")
	threadID := testserver.Queue(t)
	r.again("reconciles", threadID, r.steered(), superstep.DurabilityExit)
	r.until("the call is under way", func() bool { return r.ran("did") == 1 })
	r.kill(first)
	r.remove("hang")
	r.graphsWorker("worker-2") // there is no file "says": the look-up fails
	r.wait(threadID, thread.StatusFailed)
	listed := r.exits(0, r.own("effects", threadID).end()).stdout
	require.Contains(t, listed, "unknown")
	require.Contains(t, listed, "no such file")
	r.putText("says", "committed")
	require.NoError(t, <-r.cancelBehind(threadID))
	view := r.wait(threadID, thread.StatusCancelled)
	require.Equal(t, 1, view.Cancel.Undone)
	require.Equal(t, []int{1, 1}, []int{r.ran("did"), r.ran("undid")})
}

// reconciles calls, in its one node, the effect that the file "effect" names.
func reconciles() *superstep.Graph[work] {
	effects := map[string]*superstep.Effect[string, string]{
		"keyed": steeredEffect("keyed", superstep.TargetKeyed), "lookup_only": steeredEffect("lookup_only", superstep.TargetLookupOnly),
		"none": steeredEffect("none", superstep.TargetNone), "blind": steeredEffect("blind", superstep.TargetNone),
	}
	effects["blind"].Lookup = nil
	g := superstep.NewStateGraph[work]("reconciles")
	for _, name := range slices.Sorted(maps.Keys(effects)) {
		g.AddEffect(effects[name])
	}
	g.AddNode("act", func(ctx context.Context, s work) (work, error) {
		dir, timeout := s.Dir.Get(), time.Second
		if there(dir, "hang") {
			timeout = patience
		}
		name, err := os.ReadFile(filepath.Join(dir, "effect"))
		if err == nil {
			_, err = effects[string(name)].Call(ctx, dir, superstep.WithCallTimeout(timeout), superstep.WithSettleTime(time.Second))
		}
		return s, err
	})
	g.AddEdge(superstep.Start, "act")
	return g.MustCompile()
}

// steeredEffect hangs while there is a file "hang", and is found as the file "says" says until it was undone.
func steeredEffect(name string, target superstep.EffectTarget) *superstep.Effect[string, string] {
	return &superstep.Effect[string, string]{
		Name: name, Target: target,
		Do: func(ctx context.Context, key, dir string) (string, error) {
			carried := propagation.MapCarrier{}
			otel.GetTextMapPropagator().Inject(ctx, carried)
			err := errors.Join(os.WriteFile(filepath.Join(dir, "traceparent"), []byte(carried["traceparent"]), 0o644), noted(dir, "did"))
			if err == nil {
				err = awaitUntil(ctx, func() bool { return !there(dir, "hang") })
			}
			return key, err
		},
		Lookup: func(_ context.Context, key, dir string) (superstep.Finding[string], error) {
			says, err := os.ReadFile(filepath.Join(dir, "says"))
			notes := map[string]string{"partial": "half of it", "unknown": "who knows"}
			return superstep.Finding[string]{Status: superstep.FindingStatus(says), Receipt: key, Note: notes[string(says)]}, err
		},
		Compensate: func(ctx context.Context, _, dir, _ string) error {
			err := noted(dir, "undid")
			if now, read := os.ReadFile(filepath.Join(dir, "undone-says")); err == nil && read == nil {
				err = os.WriteFile(filepath.Join(dir, "says"), now, 0o644)
			}
			if err != nil {
				return err
			}
			return awaitUntil(ctx, func() bool { return !there(dir, "hang-undo") })
		},
	}
}
