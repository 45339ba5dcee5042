package agent_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/examples/agent"
	"superstep.dev/graphtest"
	"superstep.dev/message"
	"superstep.dev/thread"
)

// shelves is a storeroom in memory. An order is on its way: it changes no stock.
type shelves struct {
	pieces map[string]int

	mu     sync.Mutex
	orders map[string]agent.Receipt // by key
}

func newShelves() *shelves {
	return &shelves{pieces: map[string]int{"bolts": 8, "nuts": 70, "pins": 5}, orders: map[string]agent.Receipt{}}
}

func (s *shelves) Stock(_ context.Context, part string) (int, error) {
	n, ok := s.pieces[part]
	if !ok {
		return 0, agent.ErrNoPart
	}
	return n, nil
}

func (s *shelves) Order(_ context.Context, key string, o agent.Order) (agent.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.orders[key]; !ok {
		s.orders[key] = agent.Receipt{ID: "or-" + o.Part, Order: o}
	}
	return s.orders[key], nil
}

func (s *shelves) FindOrder(_ context.Context, key string) (agent.Receipt, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	receipt, ok := s.orders[key]
	return receipt, ok, nil
}

var clerk = agent.Clerk{Low: 10, Full: 100}

func fill(parts string) map[string]any {
	return map[string]any{"messages": []map[string]any{{"id": "m-1", "role": "user", "content": "Fill up: " + parts}}}
}

// TestAgent runs the agent in memory and on Temporal.
func TestAgent(t *testing.T) {
	room := newShelves()
	g := agent.Graph(clerk, room)
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		room.orders = map[string]agent.Receipt{}
		th := g.Thread(rt, graphtest.ThreadID(t))
		result, err := th.Invoke(t.Context(), fill("bolts, nuts, screws"))
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, result.Status)
		q := result.Questions[0]
		require.Equal(t, "Order 92 bolts.", q.Approval.Summary)
		require.JSONEq(t, `{"part":"bolts","pieces":92}`, string(q.Approval.Params))
		require.Empty(t, room.orders)

		result, err = th.Approve(t.Context(), q.ID, superstep.WithToken(graphtest.Token(th.ID(), q, "ann")))
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, result.Status)
		said, _ := result.Output.Messages.Last()
		require.Equal(t, "bolts: 8, ordered 92 bolts: or-bolts\nnuts: 70\nscrews: error: the storeroom has no such part: screws",
			said.Content.String())
		require.Len(t, room.orders, 1)

		declined := g.Thread(rt, graphtest.ThreadID(t))
		result, err = declined.Invoke(t.Context(), fill("pins"))
		require.NoError(t, err)
		q = result.Questions[0]
		result, err = declined.Reject(t.Context(), q.ID, superstep.WithReason("pins are on their way"),
			superstep.WithToken(graphtest.Token(declined.ID(), q, "bob")))
		require.NoError(t, err)
		said, _ = result.Output.Messages.Last()
		require.Equal(t, "pins: 5, declined: pins are on their way", said.Content.String())
		require.Len(t, room.orders, 1)

		edited := g.Thread(rt, graphtest.ThreadID(t))
		result, err = edited.Invoke(t.Context(), fill("pins"))
		require.NoError(t, err)
		q = result.Questions[0]
		result, err = edited.Edit(t.Context(), q.ID, agent.Order{Part: "pins", Pieces: 60},
			superstep.WithToken(graphtest.Token(edited.ID(), q, "bob")))
		require.NoError(t, err)
		q = result.Questions[0]
		result, err = edited.Approve(t.Context(), q.ID, superstep.WithToken(graphtest.Token(edited.ID(), q, "ann")))
		require.NoError(t, err)
		said, _ = result.Output.Messages.Last()
		require.Equal(t, "pins: 5, ordered 60 pins: or-pins", said.Content.String())
	}, g)
}

// blunderer is a model that asks for what there is not, and then gives up.
type blunderer struct{}

func (blunderer) Next(_ context.Context, conversation []message.Message) (message.Message, error) {
	m := message.Message{Role: message.RoleAssistant, Content: message.Text("sorry")}
	if len(conversation) == 1 {
		m.ToolCalls = []message.ToolCall{
			{ID: "1", Name: "sell"},
			{ID: "2", Name: "order", Arguments: `{"part": "bolts", "amount": 3}`},
			{ID: "3", Name: "order", Arguments: `{"part": "bolts", "pieces": 0}`},
			{ID: "4", Name: "order", Arguments: `{"part": "bolts", "pieces": 3}`},
		}
	}
	return m, nil
}

// TestTheModelIsToldItsMistakes: they are results of tools, in the order of the calls, and the run finishes.
func TestTheModelIsToldItsMistakes(t *testing.T) {
	room := newShelves()
	result, err := agent.Graph(blunderer{}, room).Invoke(t.Context(), fill("bolts"))
	require.NoError(t, err)
	var told []string
	for _, m := range result.Output.Messages.Get() {
		if m.Role == message.RoleTool {
			told = append(told, m.Content.String())
		}
	}
	require.Equal(t, []string{
		`error: there is no tool "sell"`,
		`error: the arguments do not fit: json: unknown field "amount"`,
		"error: an order needs a part and at least 1 piece",
		"ordered 3 bolts: or-bolts",
	}, told)
	require.Len(t, room.orders, 1)
}

// TestNoCrashOrdersTwice crashes the worker everywhere, with two tools that wait for a person.
func TestNoCrashOrdersTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("a run for each point where one can be stopped")
	}
	graphtest.Matrix(t, agent.Graph(clerk, newShelves()), fill("bolts, pins"), graphtest.Answer(approval.VerdictApprove), graphtest.Answer(approval.VerdictReject))
}

// TestTheAgentGoesOnFromEverywhere interrupts the agent in each of its turns, with two tools that wait for a person.
func TestTheAgentGoesOnFromEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("a run for each node, in every mode")
	}
	graphtest.Interrupts(t, agent.Graph(clerk, newShelves()), fill("bolts, pins"),
		graphtest.Answer(approval.VerdictApprove), graphtest.Answer(approval.VerdictReject), graphtest.Parallel())
}
