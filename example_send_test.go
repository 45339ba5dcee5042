package superstep_test

import (
	"context"
	"fmt"
	"strings"

	"superstep.dev"
)

func ExampleSendEach() {
	type State struct {
		Topics superstep.Value[[]string] `json:"topics"`
		Jokes  superstep.List[string]    `json:"jokes"`
		Best   superstep.Value[string]   `json:"best"`
	}
	type Topic struct {
		Name string `json:"name"`
	}
	g := superstep.NewStateGraph[State]("jokes")
	// The argument of a Send is the node's input: it does not read the state.
	superstep.AddInputNode(g, "joke", func(_ context.Context, t Topic) (superstep.Command[State], error) {
		var update State
		update.Jokes.Append("a joke about " + t.Name)
		return superstep.Command[State]{Update: update}, nil
	})
	g.AddNode("choose", func(_ context.Context, s State) (State, error) {
		s.Best.Set(strings.Join(s.Jokes.Get(), ", "))
		return s, nil
	})
	g.AddConditionalEdges(superstep.Start, func(_ context.Context, s State) ([]superstep.Target, error) {
		var topics []Topic
		for _, name := range s.Topics.Get() {
			topics = append(topics, Topic{name})
		}
		return superstep.SendEach("joke", topics), nil
	}, "joke")
	g.AddJoin([]string{"joke"}, "choose")

	result, err := g.MustCompile().Invoke(context.Background(), map[string]any{"topics": []string{"cats", "dogs"}})
	fmt.Println(result.Output.Best, err)
	// Output: a joke about cats, a joke about dogs <nil>
}

func ExampleCommand() {
	type State struct {
		Guess superstep.Value[int]   `json:"guess"`
		Log   superstep.List[string] `json:"log"`
	}
	g := superstep.NewStateGraph[State]("guess")
	g.AddCommandNode("try", func(_ context.Context, s State) (superstep.Command[State], error) {
		s.Guess.Set(s.Guess.Get() + 1)
		s.Log.Append(fmt.Sprint("try ", s.Guess.Get()))
		next := superstep.To("try")
		if s.Guess.Get() == 3 {
			next = superstep.To(superstep.End)
		}
		return superstep.Command[State]{Update: s, Goto: next}, nil
	})
	g.AddEdge(superstep.Start, "try")

	result, err := g.MustCompile().Invoke(context.Background(), State{})
	fmt.Println(result.Output.Log, err)
	// Output: [try 1 try 2 try 3] <nil>
}
