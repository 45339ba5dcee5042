package e2e_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/testserver"
	"superstep.dev/thread"
)

// spends is an agent that never ends by itself: each superstep calls a model, which costs 100 tokens, and writes a file. Its
// second call hangs behind what it notes, until there is the file "go".
func spends() *superstep.Graph[course] {
	outside := fileEffect()
	g := superstep.NewStateGraph[course]("spends")
	g.AddEffect(outside)
	g.AddNode("agent", func(ctx context.Context, s course) (course, error) {
		dir := s.Dir.Get()
		_, err := superstep.Task(ctx, "model", func(ctx context.Context) (bool, error) {
			err := noted(dir, "called")
			if err == nil {
				err = superstep.Spend(ctx, superstep.Usage{Tokens: 100})
			}
			if err == nil {
				err = noted(dir, "spent")
			}
			if err == nil && len(s.Log.Get()) == 1 {
				err = awaitUntil(ctx, func() bool { return there(dir, "go") })
			}
			return true, err
		})
		if err == nil {
			_, err = outside.Call(ctx, dir)
		}
		s.Log.Append("turn")
		return s, err
	})
	g.AddEdge(superstep.Start, "agent")
	g.AddEdge("agent", "agent")
	return g.MustCompile()
}

// A worker is killed right behind what a model call spent. The call is made again, and both count; what it writes counts once.
// The run asks for more within a superstep of its budget, goes on with that, and ends when there is no more: all by commands.
func TestABudgetSurvivesItsWorker(t *testing.T) {
	for mode, flags := range modeFlags {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t)
			worker := r.graphsWorker("worker-1")
			threadID := testserver.Queue(t)
			r.putText("order.json", string(encode(t, r.steered())))
			run := []string{"run", "spends", "--thread", threadID, "--input", "@" + r.dir + "/order.json"}
			out := r.exits(2, r.superstep(append(run, "--budget", "tokens=-1")...))
			require.Contains(t, out.stderr, `"-1" is not a whole number from 1 to`)
			r.exits(0, r.superstep(append(append(run, flags...), "--budget", "tokens=400,money=2.5USD,writes=30,time=10m,supersteps=100")...))
			r.until("the second call has spent", func() bool { return r.ran("spent") == 2 })
			r.kill(worker)
			r.graphsWorker("worker-2")
			r.until("the call is made again", func() bool { return r.ran("spent") > 2 })
			r.put("go")

			q := r.asked(threadID)
			require.Equal(t, "budget", q.Node)
			b := *shown[thread.View](r, "show", threadID).Budget
			if mode == "sync" || mode == "fused" { // in the others a lost worker takes along what it had not stored
				require.Equal(t, int64(100*r.ran("spent")), b.Spent.Tokens)
				require.Equal(t, int64(400), b.Spent.Tokens)
			}
			writes := len(value[[]string](r, threadID, "log"))
			require.Equal(t, []int64{int64(writes), int64(writes)}, []int64{b.Spent.Writes, b.Spent.Supersteps})
			require.Positive(t, b.Spent.Time)
			r.shows(threadID, "waiting", "tokens 400 / 400", "usd 0.00 / 2.50", "supersteps", "/ 100", "superstep resume "+threadID+" "+q.ID)

			r.exits(0, r.superstep("resume", threadID, q.ID, "--value", `{"tokens": 200}`))
			r.until("it asks again", func() bool {
				view := r.settled(threadID)
				return view.Status == thread.StatusWaiting && len(view.Questions) == 1 && view.Questions[0].ID != q.ID
			})
			require.Len(t, value[[]string](r, threadID, "log"), writes+2)
			require.Equal(t, int64(600), shown[thread.View](r, "show", threadID).Budget.Spent.Tokens)
			r.exits(0, r.superstep("resume", threadID, r.asked(threadID).ID, "--value", `{"stop": true}`))
			r.wait(threadID, thread.StatusOutOfBudget)
			r.shows(threadID, "out_of_budget", "600 of 600 tokens", "tokens 600 / 600")

			r.exits(0, r.superstep("run", "spends", "--thread", threadID, "--budget", "supersteps=1"))
			require.Equal(t, "budget", r.asked(threadID).Node)
			require.Len(t, value[[]string](r, threadID, "log"), writes+2)
		})
	}
}
