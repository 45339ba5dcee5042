package graph_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// What a node is given back is for what it asks, wherever in the node it asks it.

type asked struct {
	Out superstep.List[string] `json:"out"`
}

var items = []string{"a", "b", "c"}

// inOrder calls do for each item, on a goroutine of its own, in the order of the execution: another one when the node runs again.
func inOrder(runs *atomic.Int32, do func(item string) error) error {
	order := [][]int{{0, 1, 2}, {2, 0, 1}}[min(runs.Add(1), 2)-1]
	var all error
	for _, i := range order {
		done := make(chan error)
		go func() { done <- do(items[i]) }()
		all = errors.Join(all, <-done)
	}
	return all
}

// oneNode is a graph of one node.
func oneNode(name string, node func(context.Context, asked) (asked, error)) *superstep.Graph[asked] {
	g := superstep.NewStateGraph[asked](name)
	g.AddNode("n", node)
	g.AddEdge(superstep.Start, "n")
	return g.MustCompile()
}

// answerAll answers each open question with "for" and its text.
func answerAll(t *testing.T, th *superstep.Thread[asked], r superstep.Result[asked]) superstep.Result[asked] {
	t.Helper()
	answers := map[string]any{}
	for _, q := range r.Questions {
		answers[q.ID] = "for " + q.Text()
	}
	r, err := th.ResumeByID(t.Context(), answers)
	require.NoError(t, err)
	return r
}

func TestAnswersGoToTheGoroutineThatAsked(t *testing.T) {
	var runs atomic.Int32
	for name, opts := range map[string][]superstep.CallOption{"by text": nil, "by key": {superstep.WithKey("one key")}} {
		g := oneNode("goroutines-ask", func(ctx context.Context, s asked) (asked, error) {
			said := map[string]string{}
			err := inOrder(&runs, func(item string) (err error) {
				said[item], err = superstep.Interrupt[string](ctx, item, opts...)
				return err
			})
			for _, item := range items {
				s.Out.Append(item + " " + said[item])
			}
			return s, err
		})
		t.Run(name, func(t *testing.T) {
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				runs.Store(0)
				th := g.Thread(rt, graphtest.ThreadID(t))
				r, err := th.Invoke(t.Context(), asked{})
				require.NoError(t, err)
				require.Len(t, r.Questions, 3)
				assert.Equal(t, []string{"a for a", "b for b", "c for c"}, answerAll(t, th, r).Output.Out.Get())
			}, g)
		})
	}
}

// TestAQuestionThatIsNewIsAsked: a deploy puts a question before an answered one, rewords one, or wants another kind of answer.
func TestAQuestionThatIsNewIsAsked(t *testing.T) {
	type ask func(ctx context.Context) (any, error)
	text := func(question string, opts ...superstep.CallOption) ask {
		return func(ctx context.Context) (any, error) { return superstep.Interrupt[string](ctx, question, opts...) }
	}
	key := superstep.WithKey("k")
	tests := map[string]struct {
		before, after []ask
		asks          string
	}{
		"before":     {[]ask{text("copy?")}, []ask{text("backup?"), text("copy?")}, "backup?"},
		"reworded":   {[]ask{text("copy?")}, []ask{text("delete?")}, "delete?"},
		"with a key": {[]ask{text("copy?", key)}, []ask{text("delete?", key)}, "delete?"},
		"schema": {[]ask{text("copy?")}, []ask{func(ctx context.Context) (any, error) {
			return superstep.Interrupt[any](ctx, "copy?")
		}}, "copy?"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var runs atomic.Int32
			g := oneNode("new-question", func(ctx context.Context, s asked) (asked, error) {
				asks := test.before
				if runs.Add(1) > 1 {
					asks = test.after
				}
				for _, ask := range asks {
					v, err := ask(ctx)
					if err != nil {
						return s, err
					}
					s.Out.Append(fmt.Sprint(v))
				}
				return s, nil
			})
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				runs.Store(0)
				th := g.Thread(rt, graphtest.ThreadID(t))
				first, err := th.Invoke(t.Context(), asked{})
				require.NoError(t, err)
				r, err := th.Resume(t.Context(), "yes, the copy")
				require.NoError(t, err)
				require.Len(t, r.Questions, 1)
				assert.Equal(t, test.asks, r.Questions[0].Text())
				assert.NotEqual(t, first.Questions[0].ID, r.Questions[0].ID)
				r, err = th.Resume(t.Context(), "another")
				require.NoError(t, err)
				want := []string{"another"}
				if len(test.after) > 1 {
					want = append(want, "yes, the copy")
				}
				assert.Equal(t, want, r.Output.Out.Get())
			}, g)
		})
	}
}

func TestACalledGraphsResultIsThatOfItsInput(t *testing.T) {
	type work struct {
		In  superstep.Value[string] `json:"in"`
		Out superstep.Value[string] `json:"out"`
	}
	for name, asks := range map[string]bool{"finished": false, "waiting": true} {
		sub := superstep.NewStateGraph[work]("agent")
		sub.AddNode("n", func(ctx context.Context, s work) (work, error) {
			said := ""
			if asks {
				var err error
				if said, err = superstep.Interrupt[string](ctx, "go on?"); err != nil {
					return s, err
				}
				said = ", " + said
			}
			s.Out.Set("of " + s.In.Get() + said)
			return s, nil
		})
		sub.AddEdge(superstep.Start, "n")
		agent := sub.MustCompile()
		var runs atomic.Int32
		g := oneNode("calls-graphs", func(ctx context.Context, s asked) (asked, error) {
			got := map[string]string{}
			err := inOrder(&runs, func(item string) error {
				r, err := agent.Invoke(ctx, map[string]any{"in": item})
				got[item] = r.Output.Out.Get()
				return err
			})
			if err != nil {
				return s, err
			}
			if _, err := superstep.Interrupt[string](ctx, "done?"); err != nil {
				return s, err
			}
			for _, item := range items {
				s.Out.Append(item + " " + got[item])
			}
			return s, nil
		})
		t.Run(name, func(t *testing.T) {
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				runs.Store(0)
				th := g.Thread(rt, graphtest.ThreadID(t))
				r, err := th.Invoke(t.Context(), asked{})
				require.NoError(t, err)
				want := []string{"a of a", "b of b", "c of c"}
				if asks {
					require.Len(t, r.Questions, 3)
					r = answerAll(t, th, r)
					want = []string{"a of a, for go on?", "b of b, for go on?", "c of c, for go on?"}
				}
				assert.Equal(t, want, answerAll(t, th, r).Output.Out.Get())
			}, g)
		})
	}
}

// TestATasksResultIsItsOwn: the order of goroutines does not say which call is which, so a Task without a key is made again there.
func TestATasksResultIsItsOwn(t *testing.T) {
	task := func(ctx context.Context, item string, opts ...superstep.CallOption) (string, error) {
		return superstep.Task(ctx, "fetch", func(context.Context) (string, error) { return "of " + item, nil }, opts...)
	}
	within := func(ctx context.Context, item string, _ ...superstep.CallOption) (string, error) {
		return superstep.Task(ctx, "outer", func(ctx context.Context) (string, error) { return task(ctx, item) })
	}
	for name, call := range map[string]func(context.Context, string, ...superstep.CallOption) (string, error){
		"a task": task, "one within another": within,
		"with a key": func(ctx context.Context, item string, _ ...superstep.CallOption) (string, error) {
			return task(ctx, item, superstep.WithKey(item))
		},
		"of the node, in a Go": func(ctx context.Context, item string, _ ...superstep.CallOption) (string, error) {
			return superstep.Go(ctx, "go", func(context.Context) (string, error) { return task(ctx, item) }, superstep.WithKey(item)).Get(ctx)
		},
	} {
		var runs atomic.Int32
		g := oneNode("goroutines-call", func(ctx context.Context, s asked) (asked, error) {
			got := map[string]string{}
			err := inOrder(&runs, func(item string) (err error) {
				got[item], err = call(ctx, item)
				return err
			})
			if err != nil {
				return s, err
			}
			if _, err := superstep.Interrupt[string](ctx, "done?"); err != nil {
				return s, err
			}
			for _, item := range items {
				s.Out.Append(item + " " + got[item])
			}
			return s, nil
		})
		t.Run(name, func(t *testing.T) {
			graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
				runs.Store(0)
				th := g.Thread(rt, graphtest.ThreadID(t))
				r, err := th.Invoke(t.Context(), asked{})
				require.NoError(t, err)
				assert.Equal(t, []string{"a of a", "b of b", "c of c"}, answerAll(t, th, r).Output.Out.Get())
			}, g)
		})
	}
}

// TestAnEventIsForItsWait: the node waits for another event when it runs with the one that came.
func TestAnEventIsForItsWait(t *testing.T) {
	var runs atomic.Int32
	g := oneNode("other-event", func(ctx context.Context, s asked) (asked, error) {
		events := []string{"packed"}
		if runs.Add(1) > 1 {
			events = []string{"paid", "packed"}
		}
		for _, name := range events {
			v, err := superstep.WaitEvent[string](ctx, name, 0)
			if err != nil {
				return s, err
			}
			s.Out.Append(name + " " + v)
		}
		return s, nil
	})
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		runs.Store(0)
		th := g.Thread(rt, graphtest.ThreadID(t))
		_, err := th.Invoke(t.Context(), asked{})
		require.NoError(t, err)
		_, err = th.SendEvent(t.Context(), "packed", "box 7")
		require.NoError(t, err)
		r, err := th.Wait(t.Context())
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaitingEvent, r.Status, "nobody has paid: %v", r.Output.Out.Get())
		_, err = th.SendEvent(t.Context(), "paid", "10.00")
		require.NoError(t, err)
		r, err = th.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []string{"paid 10.00", "packed box 7"}, r.Output.Out.Get())
	}, g)
}

// TestAnApprovalIsForItsAction: goroutines ask for approvals in another order, and nothing has drifted.
func TestAnApprovalIsForItsAction(t *testing.T) {
	var runs atomic.Int32
	g := oneNode("goroutines-approve", func(ctx context.Context, s asked) (asked, error) {
		got := map[string]string{}
		err := inOrder(&runs, func(item string) error {
			d, err := superstep.Approve(ctx, approval.Action{Tool: "delete", Summary: "delete " + item, Params: json.RawMessage(`"` + item + `"`),
				Drift: approval.DriftStop})
			got[item] = string(d.Verdict)
			return err
		})
		if err != nil {
			return s, err
		}
		for _, item := range items {
			s.Out.Append(item + " " + got[item])
		}
		return s, nil
	})
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		runs.Store(0)
		th := g.Thread(rt, graphtest.ThreadID(t))
		r, err := th.Invoke(t.Context(), asked{})
		require.NoError(t, err)
		require.Len(t, r.Questions, 3)
		for _, q := range r.Questions {
			reply := th.Approve
			if q.Approval.Summary == "delete b" {
				reply = th.Reject
			}
			r, err = reply(t.Context(), q.ID, superstep.WithToken(graphtest.Token(th.ID(), q, "ann")))
			require.NoError(t, err)
		}
		assert.Equal(t, []string{"a approve", "b reject", "c approve"}, r.Output.Out.Get())
	}, g)
}
