package thread_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// lap is the state of a loop that counts, and keeps what it was answered.
type lap struct {
	At      superstep.Value[int]   `json:"at"`
	Answers superstep.List[string] `json:"answers"`
}

// loop is the life of one long thread.
type loop struct {
	steps, asks int // it asks that many questions within so many supersteps
	senders     int
	workerLife  time.Duration // how long a worker lives at least before it is lost: then it is as soon as the thread has moved since
	moved       *atomic.Int64 // how often the node ran
	at          protocol.ContinueAt
}

func (l loop) graph() *superstep.Graph[lap] {
	every := l.steps / l.asks
	g := superstep.NewStateGraph[lap]("loop")
	g.AddNode("step", func(ctx context.Context, s lap) (lap, error) {
		l.moved.Add(1)
		n := s.At.Get() + 1
		if n%every == 0 {
			answer, err := superstep.Interrupt[string](ctx, n)
			if err != nil {
				return s, err
			}
			s.Answers.Append(answer)
		}
		s.At.Set(n)
		return s, nil
	})
	g.AddEdge(superstep.Start, "step")
	g.AddConditionalEdges("step", func(_ context.Context, s lap) ([]superstep.Target, error) {
		if s.At.Get() < l.steps {
			return superstep.To("step"), nil
		}
		return superstep.To(superstep.End), nil
	}, "step", superstep.End)
	return g.MustCompile()
}

// answer answers what the thread asks until it is over: by update or signal, some of it twice, with what the question
// says and who answers.
func (l loop) answer(ctx context.Context, s *rig.Server, threadID, sender string) error {
	for ctx.Err() == nil {
		v, err := s.Show(ctx, threadID)
		if errors.Is(err, thread.ErrNoWorker) && ctx.Err() == nil {
			continue // both are lost at the moment: who gave up here would leave the thread without answers
		}
		if err != nil || !v.Closed.IsZero() {
			return err
		}
		for _, q := range v.Questions {
			req := thread.ResumeRequest{Thread: threadID, Question: q.ID, Value: []byte(fmt.Sprintf(`"%s by %s"`, q.Value, sender)),
				ID: sender + "-" + q.ID, By: sender, Signal: rand.IntN(2) == 0}
			for range 1 + rand.IntN(2) {
				_, err := s.Resume(ctx, req)
				late := errors.Is(err, thread.ErrAnswerRefused) || errors.Is(err, thread.ErrNotFound) || errors.Is(err, thread.ErrNoWorker)
				if err != nil && !late && ctx.Err() == nil {
					return err
				}
			}
		}
	}
	return nil
}

// churn runs two workers, each of which is lost with what it has under way after some time.
func (l loop) churn(ctx context.Context, s *rig.Server, g superstep.Runnable) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			life := l.workerLife * time.Duration(2+i) / 2
			for ctx.Err() == nil {
				w, err := superstep.NewWorker(s.Temporal, superstep.WorkerConfig{Graphs: []superstep.Runnable{g}, TaskQueue: s.Queue,
					Options: worker.Options{WorkerStopTimeout: time.Millisecond}})
				if !assert.NoError(s.T, err) {
					return
				}
				living, stop := context.WithCancel(ctx)
				go func() {
					defer stop()
					<-time.After(life)
					// Where a start takes as long as a life, none would come to do anything.
					for before := l.moved.Load(); living.Err() == nil && l.moved.Load() == before; {
						<-time.After(10 * time.Millisecond)
					}
				}()
				assert.NoError(s.T, w.Run(living))
				stop()
			}
		})
	}
	return &all
}

// run runs the thread to its end, and checks that it got every answer once.
func (l loop) run(t *testing.T) {
	s := rig.NewServerThatContinues(t, l.at)
	g := l.graph()
	ctx, cancel := context.WithCancel(t.Context())
	workers := l.churn(ctx, s, g)
	defer workers.Wait()
	defer cancel()
	began := time.Now()
	th := g.Thread(s.Client, s.Queue)
	require.Eventually(t, func() bool {
		return th.Start(t.Context(), map[string]any{"at": 0}, superstep.WithRecursionLimit(l.steps+10)) == nil
	}, 2*time.Minute, 50*time.Millisecond)
	var senders sync.WaitGroup
	for i := range l.senders {
		senders.Go(func() { assert.NoError(t, l.answer(ctx, s, th.ID(), fmt.Sprintf("sender-%d", i))) })
	}
	senders.Wait()
	result, err := th.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	assert.Equal(t, l.steps, result.Output.At.Get())
	answers := result.Output.Answers.Get()
	require.Len(t, answers, l.asks)
	for i, a := range answers {
		var n int
		var by string
		_, err := fmt.Sscanf(a, "%d by %s", &n, &by)
		assert.NoError(t, err, a)
		assert.Equal(t, (i+1)*(l.steps/l.asks), n, "answer %d", i)
	}
	continued := s.Continued(th.ID())
	assert.Positive(t, continued)
	t.Logf("%d supersteps, %d questions, %d continue-as-news in %v", l.steps, l.asks, continued, time.Since(began).Round(time.Millisecond))
	history, err := th.History(t.Context())
	require.NoError(t, err)
	assert.Len(t, history, l.steps+2, "checkpoints")
	seen := map[string]bool{}
	for _, c := range history {
		assert.False(t, seen[c.Checkpoint], "checkpoint %s comes twice", c.Checkpoint)
		seen[c.Checkpoint] = true
	}
	steps := 0
	for _, p := range rig.StreamOf(t, th, thread.StreamUpdates) {
		var update map[string]json.RawMessage
		if json.Unmarshal(p.Data, &update) == nil && update["step"] != nil {
			steps++
		}
	}
	assert.Equal(t, l.steps, steps, "updates in the stream")
}

// TestAThreadOfManySupersteps asks many questions, and is continued as a new run again and again while its workers are
// lost: every answer counts once, and everything that it did can be read. With -short it has half of them.
func TestAThreadOfManySupersteps(t *testing.T) {
	t.Parallel()
	l := loop{steps: 150, asks: 10, senders: 6, workerLife: 2 * time.Second, moved: &atomic.Int64{}, at: protocol.ContinueAt{Events: 150, Life: 1}}
	if testing.Short() {
		l.steps, l.asks = l.steps/2, l.asks/2
	}
	l.run(t)
}
