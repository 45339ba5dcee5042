// Package chat is Superstep's example of a chat: an agent whose words come while they are said, which asks the person it talks to, and
// whose refunds somebody approves before they are made. Package page is a page for it.
//
//	START → model ─┬─ asks for tools: a Send for each call ─→ tool ─→ model
//	               └─ answers ─→ END
//
// What it shows:
//   - a model behind an interface ([Model]) that says its words as they come ([superstep.EmitMessage]). [Clerk] stands where a language
//     model does and follows a rule, so that no key is needed and tests know what it says;
//   - a tool that asks a person, with a JSON schema of the answer, of which the page makes its buttons;
//   - an Effect behind a tool: a refund is made once, whatever crashes, and a large one only as it was approved.
package chat

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"superstep.dev"
	"superstep.dev/examples/refund/payments"
	"superstep.dev/message"
)

// Name is the graph's: the assistant of clients.
const Name = "chat"

// Model continues a conversation: with a message in words, or with one that asks for tools. It says its words as they come, and returns
// all of them. An attempt that another one follows may say something else than that one: what it said is then void.
type Model interface {
	Next(ctx context.Context, conversation []message.Message, say func(words string) error) (message.Message, error)
}

// Payments is what the tools reach; payments.Client is one.
type Payments interface {
	Order(ctx context.Context, id string) (payments.Order, error)
	Refund(ctx context.Context, key string, r payments.Refund) (payments.Receipt, error)
	FindRefund(ctx context.Context, key string) (payments.Receipt, bool, error)
	ReverseRefund(ctx context.Context, key, receiptID string) error
}

// State is the agent's: the conversation.
type State struct {
	Messages superstep.Messages `json:"messages"`
}

// Graph returns the agent over a model and a payments service.
func Graph(m Model, pay Payments) *superstep.Graph[State] {
	refund := refundEffect(pay)
	tools := map[string]tool{toolOrder: lookUp(pay), toolAsk: askWhy, toolRefund: giveBack(refund)}
	g := superstep.NewStateGraph[State](Name)
	g.AddEffect(refund)
	g.AddNode("model", speak(m), superstep.WithRetry(again), superstep.WithTimeout(5*time.Minute, 0))
	superstep.AddInputNode(g, "tool", runTool(tools), superstep.WithRetry(again), superstep.WithTimeout(time.Minute, 0))
	g.AddEdge(superstep.Start, "model")
	g.AddConditionalEdges("model", calls, "tool", superstep.End)
	g.AddEdge("tool", "model")
	return g.MustCompile()
}

// again repeats what a model or the payments service could not do for the moment, and not what was refused.
var again = superstep.RetryPolicy{
	InitialInterval: 200 * time.Millisecond, MaxAttempts: 5, MaxInterval: 5 * time.Second, NoJitter: true,
	RetryOn: func(err error) bool {
		var refused *payments.RejectedError
		return !errors.As(err, &refused)
	},
}

// speak has the model say its next message. The message is known by one id from its first word on, so that clients put the words and
// the whole together. An attempt that is repeated says the same message, and who has it said again, from a checkpoint before it, gets another
// one: that has another superstep. No Task is around the call: nothing in the node comes after it that could make it happen again.
func speak(m Model) func(context.Context, State) (State, error) {
	return func(ctx context.Context, s State) (State, error) {
		conversation := s.Messages.Get()
		last, _ := s.Messages.Last()
		id := uuid.NewSHA1(uuid.NameSpaceURL, fmt.Appendf(nil, "superstep:chat:%s:%d", last.ID, superstep.Info(ctx).Step)).String()
		say := func(words string) error {
			return superstep.EmitMessage(ctx, message.Message{ID: id, Role: message.RoleAssistant, Content: message.Text(words)})
		}
		next, err := m.Next(ctx, conversation, say)
		if err != nil {
			return s, err
		}
		next.ID, next.Role = id, message.RoleAssistant
		if len(next.ToolCalls) > 0 {
			asks := message.Message{ID: id, Role: message.RoleAssistant, ToolCalls: next.ToolCalls}
			if err := superstep.EmitMessage(ctx, asks); err != nil {
				return s, err
			}
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
