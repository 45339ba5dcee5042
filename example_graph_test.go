package superstep_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"superstep.dev"
	"superstep.dev/graphadapter"
	"superstep.dev/message"
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

// A function as a durable run: its tasks are remembered while it waits for a person, and what it returned is there for
// the thread's next run.
func ExampleNewEntrypoint() {
	essay := superstep.NewEntrypoint("essay", func(ctx context.Context, topic string) (string, error) {
		draft, err := superstep.Task(ctx, "write", func(context.Context) (string, error) {
			fmt.Println("writing about", topic)
			return "On " + topic, nil
		})
		if err != nil {
			return "", err
		}
		title, err := superstep.Interrupt[string](ctx, "A title for: "+draft)
		if err != nil {
			return "", err
		}
		before, known, err := superstep.Previous[string](ctx)
		if err != nil || !known {
			return title, err
		}
		return title + ", after " + before, nil
	})

	ctx, thread := context.Background(), essay.Thread(superstep.NewMemory(), "essays")
	for _, topic := range []string{"cats", "dogs"} {
		waiting, err := thread.Invoke(ctx, topic)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", waiting.Questions[0].Value)
		done, err := thread.Resume(ctx, strings.ToUpper(topic))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(done.Output)
	}
	// Output:
	// writing about cats
	// "A title for: On cats"
	// CATS
	// writing about dogs
	// "A title for: On dogs"
	// DOGS, after CATS
}

// What a run keeps need not be what it returns.
func ExampleSave() {
	counter := superstep.NewEntrypoint("count", func(ctx context.Context, word string) (string, error) {
		seen, _, err := superstep.Previous[map[string]int](ctx)
		if err != nil {
			return "", err
		}
		if seen == nil {
			seen = map[string]int{}
		}
		seen[word]++
		return fmt.Sprintf("%s, %d times", word, seen[word]), superstep.Save(ctx, seen)
	})
	thread := counter.Thread(superstep.NewMemory(), "words")
	for _, word := range []string{"tea", "milk", "tea"} {
		result, err := thread.Invoke(context.Background(), word)
		fmt.Println(result.Output, err)
	}
	// Output:
	// tea, 1 times <nil>
	// milk, 1 times <nil>
	// tea, 2 times <nil>
}

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

func ExampleWithBudget() {
	type State struct {
		Turns superstep.Value[int64] `json:"turns"`
	}
	g := superstep.NewStateGraph[State]("agent")
	g.AddNode("agent", func(ctx context.Context, s State) (State, error) {
		_, err := superstep.Task(ctx, "model", func(ctx context.Context) (string, error) {
			answer, usage := "think again", superstep.Usage{Tokens: 400} // what the model's provider replies
			return answer, superstep.Spend(ctx, usage)
		})
		s.Turns.Set(s.Turns.Get() + 1)
		return s, err
	})
	g.AddEdge(superstep.Start, "agent")
	g.AddEdge("agent", "agent") // it never ends by itself

	ctx := context.Background()
	th := g.MustCompile().Thread(superstep.NewMemory(), "agent-7")
	result, err := th.Invoke(ctx, State{}, superstep.WithBudget(superstep.Budget{Tokens: 1000, Time: time.Hour}))
	fmt.Println(result.Status, result.Output.Turns, graphadapter.QuestionText(result.Questions[0].Value), err)
	result, err = th.Resume(ctx, map[string]any{"tokens": 300})
	fmt.Println(result.Status, result.Output.Turns, err)
	_, err = th.Resume(ctx, map[string]any{"stop": true})
	fmt.Println(err != nil)
	view, err := th.Show(ctx)
	fmt.Println(view.Status, view.Budget.Spent.Tokens, view.Budget.Limit.Tokens, err)
	// Output:
	// waiting 3 The budget is spent: 1200 of 1000 tokens. How much more may it spend? <nil>
	// waiting 4 <nil>
	// true
	// out_of_budget 1600 1500 <nil>
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

// longest keeps the longest of the texts that nodes write. Changed, it would be another reducer: longest/v2.
type longest struct{}

func (longest) Name() string { return "longest/v1" }

func (longest) Reduce(current, update string) (string, error) {
	if len(update) > len(current) {
		return update, nil
	}
	return current, nil
}

// A reducer of your own folds what the nodes of a superstep write to a field, in task order.
func ExampleReduced() {
	type State struct {
		Word superstep.Reduced[string, longest] `json:"word"`
	}
	g := superstep.NewStateGraph[State]("words")
	for _, word := range []string{"owl", "sparrow", "crow"} {
		g.AddNode(word, func(_ context.Context, s State) (State, error) {
			s.Word.Write(word)
			return s, nil
		})
		g.AddEdge(superstep.Start, word)
	}

	result, err := g.MustCompile().Invoke(context.Background(), State{})
	fmt.Println(result.Output.Word, err)
	// Output: sparrow <nil>
}

// A conversation grows at its end. A message with an id that is there replaces the one that has it, in its place.
func ExampleMessages() {
	type State struct {
		Messages superstep.Messages `json:"messages"`
	}
	said := func(id, role, text string) message.Message {
		return message.Message{ID: id, Role: role, Content: message.Text(text)}
	}
	g := superstep.NewStateGraph[State]("chat")
	g.AddNode("draft", func(_ context.Context, s State) (State, error) {
		asked, _ := s.Messages.Last()
		s.Messages.Append(said("draft", message.RoleAssistant, "You say "+asked.Content.String()), said("note", message.RoleSystem, "be polite"))
		return s, nil
	})
	g.AddNode("polish", func(_ context.Context, s State) (State, error) {
		s.Messages.Append(said("draft", message.RoleAssistant, "Good morning!"))
		s.Messages.Remove("note")
		return s, nil
	})
	g.AddEdge(superstep.Start, "draft")
	g.AddEdge("draft", "polish")

	var in State
	in.Messages.Append(said("", message.RoleUser, "hello")) // it gets an id
	result, err := g.MustCompile().Invoke(context.Background(), in)
	fmt.Println(result.Output.Messages)
	fmt.Println(len(result.Output.Messages.Get()), err)
	// Output:
	// user: hello
	// assistant: Good morning!
	// 2 <nil>
}
