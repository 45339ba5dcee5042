package graphtest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// trip is the state of a graph with everything that a crash can hit: parallel tasks, a loop, questions, a subgraph.
type trip struct {
	Cities superstep.List[string]  `json:"cities"`
	Booked superstep.Map[string]   `json:"booked"`
	Paid   superstep.Sum[int64]    `json:"paid"`
	Log    superstep.List[string]  `json:"log"`
	Rounds superstep.Sum[int64]    `json:"rounds"`
	Mood   superstep.Value[string] `json:"mood"`
}

type payment struct {
	City   string `json:"city"`
	Amount int64  `json:"amount"`
}

func payments(target superstep.EffectTarget, name string) *superstep.Effect[payment, string] {
	e := &superstep.Effect[payment, string]{Name: name, Target: target,
		Do: func(_ context.Context, key string, p payment) (string, error) { return "paid " + p.City, nil },
	}
	if target != superstep.TargetNone {
		e.Lookup = func(context.Context, string, payment) (superstep.Finding[string], error) {
			panic("the matrix has its own target")
		}
	}
	return e
}

func travel(target superstep.EffectTarget) *superstep.Graph[trip] {
	pay, tip := payments(target, "bank.pay"), payments(target, "bank.tip")
	type leg struct {
		Booked superstep.Map[string]  `json:"booked"`
		Paid   superstep.Sum[int64]   `json:"paid"`
		Log    superstep.List[string] `json:"log"`
	}
	hotel := superstep.NewStateGraph[leg]("hotel")
	hotel.AddEffect(tip)
	hotel.AddNode("ask", func(ctx context.Context, s leg) (leg, error) {
		yes, err := superstep.Interrupt[bool](ctx, "breakfast?")
		if err == nil {
			s.Log.Append(fmt.Sprint("breakfast ", yes))
		}
		return s, err
	})
	hotel.AddNode("tip", func(ctx context.Context, s leg) (leg, error) {
		_, err := tip.Call(ctx, payment{"hotel", 5})
		return s, err
	})
	hotel.AddEdge(superstep.Start, "ask")
	hotel.AddEdge("ask", "tip")
	g := superstep.NewStateGraph[trip]("travel")
	g.AddEffect(pay)
	g.AddNode("plan", func(ctx context.Context, s trip) (trip, error) {
		var all []*superstep.Future[string]
		for _, c := range []string{"rome", "oslo"} {
			all = append(all, superstep.Go(ctx, "weather", func(context.Context) (string, error) { return c + " sunny", nil }))
		}
		for _, f := range all {
			w, err := f.Get(ctx)
			if err != nil {
				return s, err
			}
			s.Log.Append(w)
		}
		s.Rounds.Add(1)
		return s, nil
	})
	superstep.AddInputNode(g, "book", func(ctx context.Context, city string) (superstep.Command[trip], error) {
		var out superstep.Command[trip]
		quote, err := superstep.Task(ctx, "quote", func(context.Context) (int64, error) { return int64(len(city)) * 10, nil })
		if err != nil {
			return out, err
		}
		receipt, err := pay.Call(ctx, payment{city, quote})
		if err != nil {
			return out, err
		}
		out.Update.Booked.Put(city, receipt)
		out.Update.Paid.Add(quote)
		return out, nil
	})
	g.AddNode("mood", func(ctx context.Context, s trip) (trip, error) {
		mood, err := superstep.Interrupt[string](ctx, "how was it?")
		s.Mood.Set(mood)
		return s, err
	})
	g.AddSubgraph("stay", hotel.MustCompile())
	g.AddEdge(superstep.Start, "plan")
	g.AddConditionalEdges("plan", func(_ context.Context, s trip) ([]superstep.Target, error) {
		return append(superstep.SendEach("book", []string{"rome", "oslo"}), superstep.To("mood", "stay")...), nil
	}, "book", "mood", "stay")
	g.AddEdge("stay", "again")
	g.AddNode("again", func(ctx context.Context, s trip) (trip, error) {
		receipt, err := pay.Call(ctx, payment{"insurance", 7}, superstep.WithThreadKey("insurance"))
		s.Log.Append(receipt)
		return s, err
	})
	g.AddConditionalEdges("again", func(_ context.Context, s trip) ([]superstep.Target, error) {
		if s.Rounds.Get() < 2 {
			return superstep.To("plan"), nil
		}
		return superstep.To(superstep.End), nil
	}, "plan", superstep.End)
	return g.MustCompile()
}

func TestMatrixOfATrip(t *testing.T) {
	for _, target := range []superstep.EffectTarget{superstep.TargetKeyed, superstep.TargetLookupOnly, superstep.TargetNone} {
		t.Run(string(target), func(t *testing.T) {
			graphtest.Matrix(t, travel(target), trip{}, graphtest.Answer("fine"), graphtest.Answer(true),
				graphtest.Answer("better"), graphtest.Answer(false))
		})
	}
}

// one is a graph of one node and an effect of that target.
func one(target superstep.EffectTarget, node func(context.Context, trip, *superstep.Effect[payment, string]) (trip, error)) *superstep.Graph[trip] {
	pay := payments(target, "bank.pay")
	g := superstep.NewStateGraph[trip]("one")
	g.AddEffect(pay)
	g.AddNode("pay", func(ctx context.Context, s trip) (trip, error) { return node(ctx, s, pay) })
	g.AddEdge(superstep.Start, "pay")
	return g.MustCompile()
}

// TestMatrixSeesMistakes holds the matrix to what it is for: a graph that does not survive a crash fails where it does not.
func TestMatrixSeesMistakes(t *testing.T) {
	t.Run("a state that is not the same each time", func(t *testing.T) {
		n := 0
		g := one(superstep.TargetKeyed, func(_ context.Context, s trip, _ *superstep.Effect[payment, string]) (trip, error) {
			n++
			s.Paid.Add(int64(n))
			return s, nil
		})
		failed := graphtest.Failures(t, g, trip{}, graphtest.Modes(graphtest.Sync))
		require.Contains(t, failed["sync/1.pay.end"], `the state's field "paid" is 4, without the crash 1`)
		require.Empty(t, graphtest.Failures(t, g, trip{}, graphtest.Modes(graphtest.Sync), graphtest.Except("paid")))
	})
	t.Run("a key that is not the same each time", func(t *testing.T) {
		n := 0
		failed := graphtest.Failures(t, one(superstep.TargetKeyed, func(ctx context.Context, s trip, pay *superstep.Effect[payment, string]) (trip, error) {
			n++
			_, err := pay.Call(ctx, payment{"rome", 1}, superstep.WithKey(fmt.Sprint(n)))
			return s, err
		}), trip{}, graphtest.Modes(graphtest.Sync))
		require.NotEmpty(t, failed)
		for point, why := range failed {
			require.True(t, strings.Contains(why, "never came to the point") || strings.Contains(why, `one too many: bank.pay {"amount":1,"city":"rome"}`), "%s: %s", point, why)
		}
	})
	t.Run("an outside that does not keep what the effect declares", func(t *testing.T) {
		failed := graphtest.Failures(t, one(superstep.TargetKeyed, nil), trip{}, graphtest.Modes(graphtest.Sync),
			graphtest.EachRun(func(testing.TB) (superstep.Runnable, func() error) {
				paid := 0
				pay := &superstep.Effect[payment, string]{Name: "bank.pay", Target: superstep.TargetKeyed,
					Do: func(context.Context, string, payment) (string, error) { paid++; return "ok", nil },
					Lookup: func(context.Context, string, payment) (superstep.Finding[string], error) {
						return superstep.Finding[string]{Status: superstep.FindingNotFound}, nil
					}}
				g := superstep.NewStateGraph[trip]("one")
				g.AddEffect(pay)
				g.AddNode("pay", func(ctx context.Context, s trip) (trip, error) {
					_, err := pay.Call(ctx, payment{"rome", 1})
					return s, err
				})
				g.AddEdge(superstep.Start, "pay")
				return g.MustCompile(), func() error {
					if paid != 1 {
						return fmt.Errorf("it was paid %d times", paid)
					}
					return nil
				}
			}))
		require.Len(t, failed, 3)
		for point, why := range failed {
			require.Contains(t, why, "it was paid 2 times", point)
		}
	})
	t.Run("no answer", func(t *testing.T) {
		failed := graphtest.Failures(t, travel(superstep.TargetKeyed), trip{}, graphtest.Answer("fine"))
		require.Contains(t, failed["sync"], "give one more graphtest.Answer")
	})
}

// report is an entrypoint that loops over parallel tasks, asks, calls another graph and pays.
func report() *superstep.Graph[[]string] {
	pay := payments(superstep.TargetLookupOnly, "bank.pay")
	inner := one(superstep.TargetKeyed, func(ctx context.Context, s trip, pay *superstep.Effect[payment, string]) (trip, error) {
		receipt, err := pay.Call(ctx, payment{"inner", 1})
		s.Log.Append(receipt)
		return s, err
	})
	return superstep.NewEntrypoint("report", func(ctx context.Context, cities []string) ([]string, error) {
		var out []string
		for _, c := range cities {
			fact := superstep.Go(ctx, "fact", func(context.Context) (string, error) { return "fact of " + c, nil })
			receipt := superstep.Go(ctx, "buy", func(ctx context.Context) (string, error) { return pay.Call(ctx, payment{c, 3}) })
			for _, f := range []*superstep.Future[string]{fact, receipt} {
				got, err := f.Get(ctx)
				if err != nil {
					return nil, err
				}
				out = append(out, got)
			}
			if good, err := superstep.Interrupt[bool](ctx, c+"?"); err != nil || !good {
				return out, err
			}
		}
		called, err := inner.Invoke(ctx, trip{})
		if err != nil {
			return nil, err
		}
		return append(out, called.Output.Log.Get()...), superstep.Save(ctx, len(out))
	}, superstep.WithEffects(pay))
}

func TestMatrixOfAReport(t *testing.T) {
	graphtest.Matrix(t, report(), []string{"rome", "oslo"}, graphtest.Answer(true), graphtest.Answer(true), graphtest.Parallel())
}

func TestMatrixRefusesOptionsOfAContext(t *testing.T) {
	_, err := graphtest.Refusal(report(), []string{"rome"}, graphtest.Info(superstep.TaskInfo{Step: 2}))
	require.ErrorContains(t, err, "Info is for graphtest.Context")
	_, err = graphtest.Refusal(report(), 7)
	require.ErrorIs(t, err, thread.ErrBadInput)
}
