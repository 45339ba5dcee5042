package graphadapter

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
)

// VerifyActivity is the type of the activity that asks a worker's gate whether replies to approvals count: a VerifyRequest
// gives a VerifyReply. No node's activity has that name.
const VerifyActivity = "superstep.verify"

// ControlActivity is the type of the activity that asks a worker's gate whether something may be done to a run: an
// approval.ControlCheck gives an approval.Ruling. No node's activity has that name.
const ControlActivity = "superstep.control"

// VerifyWithin bounds a verification, its repetitions after lost workers included: so long others wait to answer.
const VerifyWithin = 10 * time.Second

// MaxVerified bounds the requests whose replies are verified at once.
const MaxVerified = 100

// VerifyRequest is the input of VerifyActivity. Nobody else answers the questions meanwhile.
type VerifyRequest struct {
	Graph     string           `json:"graph"`
	Thread    string           `json:"thread"`
	Questions []VerifyQuestion `json:"questions"`
	// Requests are the replies, those of one request together, in the order in which they count: each is verified as if
	// those before it that were allowed had been counted.
	Requests [][]VerifyOne `json:"requests"`
}

// VerifyQuestion is an approval that is asked for.
type VerifyQuestion struct {
	ID   string `json:"id"`
	Node string `json:"node"`
	// Action is the approval.Action as the question has it.
	Action pregel.Value `json:"action"`
	// Asked are the people and groups who are asked now, and Votes the approvals that were given before.
	Asked []string        `json:"asked,omitempty"`
	Votes []approval.Vote `json:"votes,omitempty"`
}

// VerifyOne is one reply: to the question at the place Question, from By as far as it says.
type VerifyOne struct {
	Question int            `json:"question"`
	Token    string         `json:"token,omitempty"`
	By       string         `json:"by,omitempty"`
	Reply    approval.Reply `json:"reply"`
}

// VerifyReply is the outcome of VerifyActivity: a ruling for each reply, in their order.
type VerifyReply struct {
	Rulings [][]approval.Ruling `json:"rulings"`
}

// Knowing returns the check with what this graph knows of its action's tool: the version that it has now, and the form of
// its parameters. A tool that is no effect of the graph, or of one below it, has the version that its author wrote down.
func (g *Graph) Knowing(c approval.ReplyCheck) approval.ReplyCheck {
	effect, known := g.effect(c.Action.Tool)
	c.ToolVersion = c.Action.ToolVersion
	if !known {
		return c
	}
	c.ToolVersion, c.Canonical = effect.Version, effect.Canonical
	return c
}

func (g *Graph) effect(name string) (*Effect, bool) {
	if e, ok := g.Effects[name]; ok {
		return &e, true
	}
	for _, below := range slices.Sorted(maps.Keys(g.Subgraphs)) {
		if e, ok := g.Subgraphs[below].effect(name); ok {
			return e, true
		}
	}
	return nil, false
}

// Verify asks, with reply, which replies to approvals count, in their order. The approvals of a request count for what is
// verified behind them if all of its replies do. An error says that it cannot be known.
func (g *Graph) Verify(ctx context.Context, req VerifyRequest, reply func(context.Context, approval.ReplyCheck) (approval.Ruling, error)) (VerifyReply, error) {
	var out VerifyReply
	req.Questions = slices.Clone(req.Questions)
	for _, ones := range req.Requests {
		rulings, all := make([]approval.Ruling, len(ones)), true
		for i, one := range ones {
			var err error
			if rulings[i], err = g.verify(ctx, req, one, reply); err != nil {
				return VerifyReply{}, err
			}
			all = all && rulings[i].Allowed
		}
		for i, one := range ones {
			if all && one.Reply.Verdict == approval.VerdictApprove {
				q := &req.Questions[one.Question]
				q.Votes = append(slices.Clip(q.Votes), rulings[i].Vote(one.Reply))
			}
		}
		out.Rulings = append(out.Rulings, rulings)
	}
	return out, nil
}

func (g *Graph) verify(ctx context.Context, req VerifyRequest, one VerifyOne, reply func(context.Context, approval.ReplyCheck) (approval.Ruling, error)) (approval.Ruling, error) {
	if one.Question < 0 || one.Question >= len(req.Questions) {
		return approval.Ruling{}, Permanent(fmt.Errorf("a reply is for question %d of %d", one.Question, len(req.Questions)))
	}
	q := req.Questions[one.Question]
	var action approval.Action
	if err := json.Unmarshal(q.Action, &action); err != nil {
		return approval.Ruling{Code: approval.CodeMalformed, Reason: "the action that the question is about cannot be read"}, nil
	}
	return reply(ctx, g.Knowing(approval.ReplyCheck{
		Thread: req.Thread, Graph: req.Graph, Node: q.Node, Question: q.ID, Action: action, Asked: q.Asked,
		Token: one.Token, By: one.By, Reply: one.Reply, Votes: q.Votes,
	}))
}

// NotifyActivity is the type of the activity that tells a worker's notifier something: an approval.Notice gives nothing. It
// fails until every target has the notice, or will not have it.
const NotifyActivity = "superstep.notify"
