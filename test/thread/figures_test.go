package thread_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// tally is a metrics handler that keeps what it is told, of our own figures.
type tally struct {
	tags []string
	kept *kept
}

type kept struct {
	mu     sync.Mutex
	counts map[string]int64
	times  map[string][]time.Duration
}

func newTally() tally {
	return tally{kept: &kept{counts: map[string]int64{}, times: map[string][]time.Duration{}}}
}

// WithTags implements client.MetricsHandler. Temporal's own tags are left out.
func (c tally) WithTags(tags map[string]string) client.MetricsHandler {
	all := slices.Clone(c.tags)
	for name, value := range tags {
		if slices.Contains([]string{"node", "outcome", "status", "about", "verdict", "effect", "how", "limit"}, name) {
			all = append(all, name+"="+value)
		}
	}
	slices.Sort(all)
	return tally{all, c.kept}
}

func (c tally) as(name string) counting {
	return counting{strings.Join(append([]string{name}, c.tags...), " "), c.kept}
}

// Counter implements client.MetricsHandler.
func (c tally) Counter(name string) client.MetricsCounter { return c.as(name) }

// Gauge implements client.MetricsHandler.
func (c tally) Gauge(string) client.MetricsGauge { return client.MetricsNopHandler.Gauge("") }

// Timer implements client.MetricsHandler.
func (c tally) Timer(name string) client.MetricsTimer { return c.as(name) }

type counting struct {
	name string
	*kept
}

// Inc implements client.MetricsCounter.
func (c counting) Inc(n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[c.name] += n
}

// Record implements client.MetricsTimer.
func (c counting) Record(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.times[c.name] = append(c.times[c.name], d)
}

// TestFiguresAreCountedOnce: a run is carried on by one worker after the other, each of which replays all of it; in segments, most
// outcomes are passed over. What they count together is what happened.
func TestFiguresAreCountedOnce(t *testing.T) {
	b := superstep.NewStateGraph[rig.Counter]("counted")
	b.AddNode("first", rig.Appending("first"))
	b.AddNode("asks", rig.Asking("now"))
	b.AddNode("beside", rig.Appending("beside"))
	b.AddNode("fails", func(context.Context, rig.Counter) (rig.Counter, error) {
		return rig.Counter{}, errors.New("the bank is closed")
	})
	b.AddEdge(superstep.Start, "first")
	b.AddEdge("first", "asks")
	b.AddEdge("first", "beside")
	b.AddEdge("asks", "fails")
	g := b.MustCompile()
	for _, c := range []struct {
		name string
		mode []superstep.RunOption
	}{
		{"sync", nil},
		{"fused", []superstep.RunOption{superstep.WithFused()}},
		{"async", []superstep.RunOption{superstep.WithDurability(superstep.DurabilityAsync)}},
		{"exit", []superstep.RunOption{superstep.WithDurability(superstep.DurabilityExit)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			counts := newTally()
			temporal, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: rig.NoLog{}, MetricsHandler: counts})
			require.NoError(t, err)
			defer temporal.Close()
			queue := testserver.Queue(t)
			cl, err := superstep.NewClient(temporal, superstep.ClientConfig{TaskQueue: queue})
			require.NoError(t, err)
			work := func() (stop func()) {
				return rig.RunWorker(t, temporal, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{g}})
			}
			stop := work()
			waits, err := g.Thread(cl, queue).Invoke(t.Context(), rig.Counter{}, c.mode...)
			require.NoError(t, err)
			require.Equal(t, thread.StatusWaiting, waits.Status)
			stop()
			stop = work()
			view, err := cl.Show(t.Context(), queue)
			require.NoError(t, err)
			require.Len(t, view.Questions, 1)
			_, err = cl.Resume(t.Context(), thread.ResumeRequest{Thread: queue, Question: view.Questions[0].ID, Value: []byte("true")})
			require.NoError(t, err)
			view, err = cl.Wait(t.Context(), queue)
			require.NoError(t, err)
			require.Equal(t, thread.StatusFailed, view.Status)
			stop()
			stop = work()
			_, err = cl.State(t.Context(), thread.StateRequest{Thread: queue})
			require.NoError(t, err)
			stop()

			counts.kept.mu.Lock()
			defer counts.kept.mu.Unlock()
			got := counts.kept.counts
			for name, want := range map[string]int64{
				"superstep_runs_begun":                      1,
				"superstep_runs_ended status=failed":        1,
				"superstep_supersteps":                      2,
				"superstep_tasks node=first outcome=done":   1,
				"superstep_tasks node=beside outcome=done":  1,
				"superstep_tasks node=asks outcome=asked":   1,
				"superstep_tasks node=asks outcome=done":    1,
				"superstep_tasks node=fails outcome=failed": 1,
				"superstep_questions_asked about=question":  1,
				"superstep_recoveries_begun":                0,
				"superstep_effects_unknown":                 0,
			} {
				assert.Equal(t, want, got[name], "%s of %v", name, got)
			}
			assert.Len(t, counts.kept.times["superstep_question_age about=question"], 1)
			assert.Positive(t, got["superstep_history_events"])
			assert.Positive(t, got["superstep_history_bytes"])
		})
	}
}

// TestFiguresOfALongSegment: outcomes behind which a run goes on at once are counted too.
func TestFiguresOfALongSegment(t *testing.T) {
	const rounds = 300
	b := superstep.NewStateGraph[rig.Counter]("long")
	b.AddNode("again", func(_ context.Context, s rig.Counter) (rig.Counter, error) {
		s.N.Set(s.N.Get() + 1)
		return s, nil
	})
	b.AddEdge(superstep.Start, "again")
	b.AddConditionalEdges("again", func(_ context.Context, s rig.Counter) ([]superstep.Target, error) {
		if s.N.Get() < rounds {
			return superstep.To("again"), nil
		}
		return superstep.To(superstep.End), nil
	}, "again", superstep.End)
	g := b.MustCompile()
	counts := newTally()
	temporal, err := client.Dial(client.Options{HostPort: testserver.Address(t), Logger: rig.NoLog{}, MetricsHandler: counts})
	require.NoError(t, err)
	defer temporal.Close()
	queue := testserver.Queue(t)
	cl, err := superstep.NewClient(temporal, superstep.ClientConfig{TaskQueue: queue})
	require.NoError(t, err)
	defer rig.RunWorker(t, temporal, superstep.WorkerConfig{TaskQueue: queue, Graphs: []superstep.Runnable{g}})()
	_, err = g.Thread(cl, queue).Invoke(t.Context(), rig.Counter{}, superstep.WithDurability(superstep.DurabilityAsync),
		superstep.WithRecursionLimit(2*rounds))
	require.NoError(t, err)
	counts.kept.mu.Lock()
	defer counts.kept.mu.Unlock()
	assert.EqualValues(t, rounds, counts.kept.counts["superstep_supersteps"])
	assert.EqualValues(t, rounds, counts.kept.counts["superstep_tasks node=* outcome=done"]+counts.kept.counts["superstep_tasks node=again outcome=done"])
}
