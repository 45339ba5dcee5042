package superstep_test

import (
	"context"
	"fmt"

	"superstep.dev"
)

func Example() {
	type State struct {
		Name superstep.Value[string] `json:"name"`
		Log  superstep.List[string]  `json:"log"`
	}
	g := superstep.NewStateGraph[State]("greeting")
	g.AddNode("greet", func(_ context.Context, s State) (State, error) {
		s.Log.Append("hello " + s.Name.Get())
		return s, nil
	})
	g.AddNode("leave", func(_ context.Context, s State) (State, error) {
		s.Log.Append("goodbye")
		return s, nil
	})
	g.AddEdge(superstep.Start, "greet")
	g.AddEdge("greet", "leave")

	result, err := g.MustCompile().Invoke(context.Background(), map[string]string{"name": "Ann"})
	fmt.Println(result.Status, result.Output.Log, err)
	// Output: finished [hello Ann goodbye] <nil>
}

func ExampleStateGraph_AddConditionalEdges() {
	type State struct {
		Amount superstep.Value[int64]  `json:"amount"`
		Answer superstep.Value[string] `json:"answer"`
	}
	answer := func(text string) func(context.Context, State) (State, error) {
		return func(_ context.Context, s State) (State, error) {
			s.Answer.Set(text)
			return s, nil
		}
	}
	g := superstep.NewStateGraph[State]("refund")
	g.AddNode("ask", answer("a person decides"))
	g.AddNode("pay", answer("paid"))
	g.AddConditionalEdges(superstep.Start, func(_ context.Context, s State) ([]superstep.Target, error) {
		if s.Amount.Get() > 100 {
			return superstep.To("ask"), nil
		}
		return superstep.To("pay"), nil
	}, "ask", "pay")
	graph := g.MustCompile()

	for _, amount := range []int64{100, 101} {
		result, err := graph.Invoke(context.Background(), map[string]int64{"amount": amount})
		fmt.Println(amount, result.Output.Answer, err)
	}
	// Output:
	// 100 paid <nil>
	// 101 a person decides <nil>
}

func ExampleStateGraph_Compile() {
	type State struct {
		Amount int64 `json:"amount"`
	}
	_, err := superstep.NewStateGraph[State]("refund").Compile()
	mistakes := err.(interface{ Unwrap() []error })
	for _, mistake := range mistakes.Unwrap() {
		fmt.Println(mistake.(*superstep.CompileError).Message)
	}
	// Output:
	// superstep_test.State.Amount is a plain int64: declare it as superstep.Value[int64]
	// it has no entry: add an edge from superstep.Start to its first node
}

func ExampleDraw() {
	type State struct {
		Amount superstep.Value[int64] `json:"amount"`
	}
	step := func(_ context.Context, s State) (State, error) { return s, nil }
	g := superstep.NewStateGraph[State]("refund")
	for _, name := range []string{"calculate", "approval", "commit_refund"} {
		g.AddNode(name, step)
	}
	g.AddEdge(superstep.Start, "calculate")
	g.AddConditionalEdges("calculate", func(context.Context, State) ([]superstep.Target, error) {
		return superstep.To("commit_refund"), nil
	}, "approval", "commit_refund")
	g.AddEdge("approval", "commit_refund")
	g.AddEdge("commit_refund", superstep.End)

	text, err := superstep.Draw(g.MustCompile().Adapter().Spec, superstep.DrawText)
	fmt.Print(text)
	fmt.Println(err)
	// Output:
	// START → calculate ─┬─⇢ approval → commit_refund
	//                    └─⇢ commit_refund
	// commit_refund → END
	// <nil>
}
