// Package desk is the graph and the leader to which examples/wire talks: it does what its input says, so that every message of
// docs/wire.md has something to be about.
package desk

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/job"
	"superstep.dev/job/leader"
)

// Order is the state of the graph.
type Order struct {
	Do     superstep.Value[string] `json:"do"`
	Amount superstep.Value[int64]  `json:"amount"`
	Log    superstep.List[string]  `json:"log"`
}

// Graph does what its input says: it asks a person or for an approval, waits for an event, or fails until its state has an amount.
func Graph(name string, options ...superstep.CompileOption) *superstep.Graph[Order] {
	g := superstep.NewStateGraph[Order](name)
	g.AddNode("read", func(_ context.Context, s Order) (Order, error) {
		s.Log.Append("read")
		return s, nil
	})
	g.AddNode("ask", func(ctx context.Context, s Order) (Order, error) {
		yes, err := superstep.Interrupt[bool](ctx, "Deliver it?")
		if err != nil {
			return s, err
		}
		s.Log.Append(map[bool]string{true: "delivered", false: "kept"}[yes])
		return s, nil
	})
	g.AddNode("approve", func(ctx context.Context, s Order) (Order, error) {
		params, err := json.Marshal(map[string]int64{"amount": s.Amount.Get()})
		if err != nil {
			return s, err
		}
		_, err = superstep.Approve(ctx, approval.Action{Tool: "pay", Summary: "Pay what it costs", Params: params,
			Risk: approval.RiskHigh, Approvers: []string{"ann"}})
		return s, err
	})
	g.AddNode("wait", func(ctx context.Context, s Order) (Order, error) {
		place, err := superstep.WaitEvent[string](ctx, "parcel.arrived", time.Hour)
		if err == nil {
			s.Log.Append("arrived at " + place)
		}
		return s, err
	})
	g.AddNode("fail", func(_ context.Context, s Order) (Order, error) {
		if s.Amount.Get() == 0 {
			return s, superstep.Permanent(errors.New("there is no amount"))
		}
		s.Log.Append("went on")
		return s, nil
	})
	g.AddEdge(superstep.Start, "read")
	g.AddConditionalEdges("read", func(_ context.Context, s Order) ([]superstep.Target, error) {
		return superstep.To(s.Do.Get()), nil
	}, "ask", "approve", "wait", "fail")
	return g.MustCompile(options...)
}

// planner plans two subjobs, one after the other.
type planner struct{}

func (planner) Plan(context.Context, job.PlanRequest) (job.Draft, error) {
	return job.Draft{SubJobs: []job.DraftSubJob{
		{ID: "1", Goal: "draft it", Expert: "clerk"},
		{ID: "2", Goal: "check it", Expert: "checker", Dependencies: []string{"1"}},
	}}, nil
}

// Office is a leader of a clerk who is quick, and a checker who waits to be told to go on.
func Office(name string) (*leader.Leader, error) {
	clerk := leader.NewExpert("clerk", "Drafts a text.", func(context.Context, job.Assignment) (job.WorkflowMessage, error) {
		return job.WorkflowMessage{Status: job.Success, Output: "a draft"}, nil
	})
	checker := leader.NewExpert("checker", "Asks a person about a text.", func(ctx context.Context, _ job.Assignment) (job.WorkflowMessage, error) {
		if _, err := superstep.Interrupt[bool](ctx, "Is the draft good?"); err != nil {
			return job.WorkflowMessage{}, err
		}
		return job.WorkflowMessage{Status: job.Success, Output: "checked"}, nil
	})
	return leader.New(name, planner{}, clerk, checker)
}
