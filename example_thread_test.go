package superstep_test

import (
	"context"
	"fmt"

	"superstep.dev"
)

func ExampleThread_Resume() {
	type State struct {
		Amount superstep.Value[int64]  `json:"amount"`
		Answer superstep.Value[string] `json:"answer"`
	}
	g := superstep.NewStateGraph[State]("refund")
	g.AddNode("approval", func(ctx context.Context, s State) (State, error) {
		approved, err := superstep.Interrupt[bool](ctx, fmt.Sprintf("Refund %d?", s.Amount.Get()))
		if err != nil {
			return s, err
		}
		s.Answer.Set(map[bool]string{true: "refunded", false: "denied"}[approved])
		return s, nil
	})
	g.AddEdge(superstep.Start, "approval")

	ctx := context.Background()
	thread := g.MustCompile().Thread(superstep.NewMemory(), "refund-7")
	result, err := thread.Invoke(ctx, map[string]int64{"amount": 250})
	fmt.Println(result.Status, string(result.Questions[0].Value), err)

	_, err = thread.Resume(ctx, "sure")
	fmt.Println("a wrong answer is refused:", err != nil)

	result, err = thread.Resume(ctx, true)
	fmt.Println(result.Status, result.Output.Answer, err)
	// Output:
	// waiting "Refund 250?" <nil>
	// a wrong answer is refused: true
	// finished refunded <nil>
}

func ExampleStateGraph_AddSubgraph() {
	type Research struct {
		Topic   superstep.Value[string] `json:"topic"`
		Sources superstep.Value[int]    `json:"sources"` // the subgraph's own
		Summary superstep.Value[string] `json:"summary"`
	}
	type Report struct {
		Topic   superstep.Value[string] `json:"topic"`
		Summary superstep.Value[string] `json:"summary"`
		Text    superstep.Value[string] `json:"text"`
	}
	research := superstep.NewStateGraph[Research]("research")
	research.AddNode("search", func(_ context.Context, s Research) (Research, error) {
		s.Sources.Set(3)
		return s, nil
	})
	research.AddNode("summarise", func(_ context.Context, s Research) (Research, error) {
		s.Summary.Set(fmt.Sprintf("%d sources on %s", s.Sources.Get(), s.Topic.Get()))
		return s, nil
	})
	research.AddEdge(superstep.Start, "search")
	research.AddEdge("search", "summarise")

	report := superstep.NewStateGraph[Report]("report")
	report.AddSubgraph("research", research.MustCompile())
	report.AddNode("write", func(_ context.Context, s Report) (Report, error) {
		s.Text.Set("Report: " + s.Summary.Get())
		return s, nil
	})
	report.AddEdge(superstep.Start, "research")
	report.AddEdge("research", "write")

	result, err := report.MustCompile().Invoke(context.Background(), map[string]string{"topic": "owls"})
	fmt.Println(result.Output.Text, err)
	// Output: Report: 3 sources on owls <nil>
}
