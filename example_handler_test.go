package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"superstep.dev"
)

// An error handler takes over when a node has failed for good.
func ExampleStateGraph_AddErrorHandler() {
	type State struct {
		Order superstep.Value[string] `json:"order"`
		Log   superstep.List[string]  `json:"log"`
	}
	g := superstep.NewStateGraph[State]("orders")
	g.AddNode("pay", func(_ context.Context, s State) (State, error) {
		return s, errors.New("the card was declined")
	})
	g.AddNode("cancel", func(_ context.Context, s State) (State, error) {
		s.Log.Append("cancelled " + s.Order.Get())
		return s, nil
	})
	g.AddNode("ship", func(_ context.Context, s State) (State, error) {
		s.Log.Append("shipped")
		return s, nil
	})
	g.AddErrorHandler("pay", func(_ context.Context, s State, e *superstep.NodeError) (superstep.Command[State], error) {
		s.Log.Append(e.Node + ": " + e.Message)
		return superstep.Command[State]{Update: s, Goto: superstep.To("cancel")}, nil
	})
	g.AddEdge(superstep.Start, "pay")
	g.AddEdge("pay", "ship") // not taken: pay did not succeed

	result, err := g.MustCompile().Invoke(context.Background(), map[string]any{"order": "o-7"})
	fmt.Println(result.Output.Log, err)
	// Output: [pay: the card was declined cancelled o-7] <nil>
}

// Defaults are for all nodes that lack an option of their own.
func ExampleStateGraph_SetNodeDefaults() {
	type State struct {
		Tries superstep.Value[int] `json:"tries"`
	}
	g := superstep.NewStateGraph[State]("patient")
	g.SetNodeDefaults(
		superstep.WithRetry(superstep.RetryPolicy{MaxAttempts: 5, InitialInterval: time.Millisecond, NoJitter: true}),
		superstep.WithTimeout(time.Minute, 0),
	)
	g.AddNode("flaky", func(ctx context.Context, s State) (State, error) {
		if attempt := superstep.Info(ctx).Attempt; attempt < 3 {
			return s, errors.New("try again")
		}
		s.Tries.Set(superstep.Info(ctx).Attempt)
		return s, nil
	})
	g.AddEdge(superstep.Start, "flaky")
	result, err := g.MustCompile().Invoke(context.Background(), State{})
	fmt.Println(result.Output.Tries, err)
	// Output: 3 <nil>
}

// rateLimited is an error worth waiting for.
type rateLimited struct{ wait time.Duration }

func (e *rateLimited) Error() string { return "rate limited for " + e.wait.String() }

// Only errors of one type are retried.
func ExampleRetryIf() {
	policy := superstep.RetryPolicy{MaxAttempts: 10, RetryOn: superstep.RetryIf[*rateLimited]}
	fmt.Println(policy.RetryOn(fmt.Errorf("call the model: %w", &rateLimited{time.Second})))
	fmt.Println(policy.RetryOn(errors.New("bad request")))
	// Output:
	// true
	// false
}

// A cached node does not run again on an input with the same key.
func ExampleWithCache() {
	type State struct {
		City    superstep.Value[string] `json:"city"`
		Weather superstep.Value[string] `json:"weather"`
	}
	g := superstep.NewStateGraph[State]("weather")
	g.AddNode("look_up", func(_ context.Context, s State) (State, error) {
		fmt.Println("looking up", s.City)
		s.Weather.Set("12 °C in " + s.City.Get())
		return s, nil
	}, superstep.WithCache(superstep.CachePolicy{TTL: time.Hour, Key: superstep.CacheBy(func(s State) (string, error) {
		return s.City.Get(), nil
	})}))
	g.AddEdge(superstep.Start, "look_up")
	weather := g.MustCompile()
	for range 2 {
		result, err := weather.Invoke(context.Background(), map[string]any{"city": "Paris"})
		fmt.Println(result.Output.Weather, err)
	}
	// Output:
	// looking up Paris
	// 12 °C in Paris <nil>
	// 12 °C in Paris <nil>
}

// The run's context tells nodes what is no part of the state.
func ExampleRunContext() {
	type Caller struct {
		Tenant string `json:"tenant"`
	}
	type State struct {
		Log superstep.List[string] `json:"log"`
	}
	g := superstep.NewStateGraph[State]("greet")
	g.AddNode("greet", func(ctx context.Context, s State) (State, error) {
		caller, err := superstep.RunContext[Caller](ctx)
		if err != nil {
			return s, err
		}
		s.Log.Append("hello " + caller.Tenant)
		return s, nil
	})
	g.AddEdge(superstep.Start, "greet")
	result, err := g.MustCompile().Invoke(context.Background(), State{}, superstep.WithContext(Caller{Tenant: "acme"}))
	fmt.Println(result.Output.Log, err)
	// Output: [hello acme] <nil>
}
