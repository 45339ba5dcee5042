// Package agent is Superstep's example of an agent (ReAct): a model reads a conversation and asks for tools, the tools
// run in parallel, and what they say goes back to the model, until it answers in words.
//
//	START → model ─┬─ asks for tools: a Send for each call ─→ tool ─→ model
//	               └─ answers ─→ END
//
// The agent keeps a storeroom filled. It may look at the shelves as it likes; an order of more than [FreeOrder] pieces
// waits until somebody approves exactly that order.
//
// What it shows:
//   - [superstep.Messages]: a conversation in the JSON of the OpenAI and the Anthropic API;
//   - a model behind an interface ([Model]), called in a Task: an answer that was paid for is not asked for again after a
//     crash. [Clerk] stands where a language model does and follows a rule, so that tests know what it says;
//   - one task for each call of a tool: calls run side by side, and while one waits for a person the others finish;
//   - an Effect behind a tool: an order is made once, whatever crashes, and a large one only as it was approved;
//   - a model's mistakes (a tool that there is not, arguments that do not fit, an order that was declined) as results
//     that it reads, not as failures of the run.
package agent

import (
	"context"
	"time"

	"superstep.dev"
	"superstep.dev/message"
)

// Model continues a conversation: with a message in words, or with one that asks for tools.
type Model interface {
	Next(ctx context.Context, conversation []message.Message) (message.Message, error)
}

// State is the agent's: the conversation.
type State struct {
	Messages superstep.Messages `json:"messages"`
}

// Graph returns the agent over a model and a storeroom.
func Graph(m Model, s Storeroom) *superstep.Graph[State] {
	order := orderEffect(s)
	tools := map[string]tool{"stock": stock(s), "order": orderParts(order)}
	g := superstep.NewStateGraph[State]("agent")
	g.AddEffect(order)
	g.AddNode("model", model(m), superstep.WithRetry(again), superstep.WithTimeout(time.Minute, 0))
	superstep.AddInputNode(g, "tool", runTool(tools), superstep.WithRetry(again), superstep.WithTimeout(time.Minute, 0))
	g.AddEdge(superstep.Start, "model")
	g.AddConditionalEdges("model", calls, "tool", superstep.End)
	g.AddEdge("tool", "model")
	return g.MustCompile()
}

// again repeats what a model or the storeroom could not do for the moment.
var again = superstep.RetryPolicy{
	InitialInterval: 200 * time.Millisecond, MaxAttempts: 5, MaxInterval: 5 * time.Second, NoJitter: true,
}

func model(m Model) func(context.Context, State) (State, error) {
	return func(ctx context.Context, s State) (State, error) {
		next, err := superstep.Task(ctx, "model", func(ctx context.Context) (message.Message, error) {
			return m.Next(ctx, s.Messages.Get())
		})
		if err != nil {
			return s, err
		}
		s.Messages.Append(next)
		return s, nil
	}
}

// calls sends each call that the model asks for to a task of its own.
func calls(_ context.Context, s State) ([]superstep.Target, error) {
	last, _ := s.Messages.Last()
	if asked := last.Calls(); len(asked) > 0 {
		return superstep.SendEach("tool", asked), nil
	}
	return superstep.To(superstep.End), nil
}
