package main

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// The hand-written workflows: what somebody writes who needs no graph and knows the server well.
const (
	activitiesFlow = "floor.activities" // an activity for each step
	heartbeatsFlow = "floor.heartbeats" // one activity, which stores each step by a heartbeat
	localFlow      = "floor.local"      // all steps within the first workflow task, the result as an update's reply
	talkFlow       = "floor.talk"       // a run that stays open and takes each turn as an update
	slowFlow       = "floor.slow"       // two activities, of which the first takes a second
)

// The updates of floor.local and floor.talk.
const (
	restUpdate   = "rest"   // returns when the run has ended, or asks
	answerUpdate = "answer" // answers, and returns when the run has ended
	turnUpdate   = "turn"   // takes a turn, and returns when it is over
)

// floorWork is what a hand-written run is given.
type floorWork struct {
	Graph string   `json:"graph"`
	Steps int      `json:"steps"`
	Note  string   `json:"note,omitempty"`
	Texts []string `json:"texts,omitempty"`
	// Stored: the second step behind an answer is an activity, which begins when the first one is stored.
	Stored bool `json:"stored,omitempty"`
}

// floorResult is what it comes to.
type floorResult struct {
	Step     int    `json:"step"`
	Question string `json:"question,omitempty"`
}

// floorStep is the input and the result of an activity.
type floorStep struct {
	Step int    `json:"step"`
	Note string `json:"note"`
}

// turnsARun is after how many turns a conversation goes on in another run: the server refuses the 2,001st update.
const turnsARun = 1_500

func registerFloor(r worker.Registry, c client.Client) {
	for name, f := range map[string]any{
		activitiesFlow: runActivities, heartbeatsFlow: runHeartbeats, localFlow: runLocal, talkFlow: runTalk, slowFlow: runSlow,
	} {
		r.RegisterWorkflowWithOptions(f, workflow.RegisterOptions{Name: name})
	}
	for name, f := range map[string]any{"step": takeStep, "beats": beats(c), "work": takeTime, "next": takeNext} {
		r.RegisterActivityWithOptions(f, activity.RegisterOptions{Name: name})
	}
}

// withActivities has the options that Superstep gives its own activities.
func withActivities(ctx workflow.Context) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: 365 * 24 * time.Hour, HeartbeatTimeout: 2 * time.Second, WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 2 * time.Second},
	})
}

// window is how many activities a hand-written fan-out keeps under way: the server takes 2,000 of a run.
const window = 500

// runActivities is an activity for each step, one after the other, or a window of them at once and one behind all.
func runActivities(ctx workflow.Context, in floorWork) (floorResult, error) {
	ctx = withActivities(ctx)
	atOnce := 1
	if in.Graph == fanGraph {
		atOnce = window
	}
	var open []workflow.Future
	oldest := func() error {
		f := open[0]
		open = open[1:]
		return f.Get(ctx, nil)
	}
	for i := range in.Steps {
		open = append(open, workflow.ExecuteActivity(ctx, "step", floorStep{Step: i, Note: in.Note}))
		if len(open) == atOnce {
			if err := oldest(); err != nil {
				return floorResult{}, err
			}
		}
	}
	for len(open) > 0 {
		if err := oldest(); err != nil {
			return floorResult{}, err
		}
	}
	if in.Graph == fanGraph {
		if err := workflow.ExecuteActivity(ctx, "step", floorStep{Note: in.Note}).Get(ctx, nil); err != nil {
			return floorResult{}, err
		}
	}
	return floorResult{Step: in.Steps}, nil
}

func takeStep(_ context.Context, in floorStep) (floorStep, error) { return in, nil }

// runHeartbeats is one activity for all steps.
func runHeartbeats(ctx workflow.Context, in floorWork) (floorResult, error) {
	err := workflow.ExecuteActivity(withActivities(ctx), "beats", in).Get(ctx, nil)
	return floorResult{Step: in.Steps}, err
}

// beats makes the activity that stores each step by a heartbeat, or those that run at once by one of all of them. It calls
// the server directly: the SDK's own heartbeat does not wait.
func beats(c client.Client) func(context.Context, floorWork) error {
	return func(ctx context.Context, in floorWork) error {
		info, n := activity.GetInfo(ctx), in.Steps
		if in.Graph == fanGraph {
			n = 2 // the tasks, and the one behind them
		}
		for i := range n {
			details, err := converter.GetDefaultDataConverter().ToPayloads(floorStep{Step: i, Note: in.Note})
			if err != nil {
				return err
			}
			if _, err := c.WorkflowService().RecordActivityTaskHeartbeat(ctx, &workflowservice.RecordActivityTaskHeartbeatRequest{
				Namespace: info.Namespace, TaskToken: info.TaskToken, Details: details,
			}); err != nil {
				return err
			}
		}
		return nil
	}
}

// withLocal has the options of what runs within a workflow task.
func withLocal(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{StartToCloseTimeout: 10 * time.Second})
}

// runLocal does the work in a local activity. Of a graph that asks it is done in two, with the question between them.
func runLocal(ctx workflow.Context, in floorWork) (out floorResult, err error) {
	rested, answered, ended := false, false, false
	reply := func(when *bool) func(workflow.Context) (floorResult, error) {
		return func(ctx workflow.Context) (floorResult, error) {
			err := workflow.Await(ctx, func() bool { return *when })
			return out, err
		}
	}
	if err := workflow.SetUpdateHandler(ctx, restUpdate, reply(&rested)); err != nil {
		return out, err
	}
	if err := workflow.SetUpdateHandler(ctx, answerUpdate, func(ctx workflow.Context, _ bool) (floorResult, error) {
		answered = true
		return reply(&ended)(ctx)
	}); err != nil {
		return out, err
	}
	ctx = withLocal(ctx)
	if err := workflow.ExecuteLocalActivity(ctx, workLocally, in).Get(ctx, &out); err != nil {
		return out, err
	}
	rested = true
	if out.Question != "" {
		if err := workflow.Await(ctx, func() bool { return answered }); err != nil {
			return out, err
		}
		if err := workflow.ExecuteLocalActivity(ctx, workAnswered, in).Get(ctx, &out); err != nil {
			return out, err
		}
		if in.Stored {
			if err := workflow.ExecuteActivity(withActivities(ctx), "step", floorStep{Step: out.Step, Note: in.Note}).Get(ctx, nil); err != nil {
				return out, err
			}
		}
	}
	ended = true
	return out, workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// workLocally takes all steps, up to the question of a run that asks.
func workLocally(_ context.Context, in floorWork) (floorResult, error) {
	if in.Graph == askGraph {
		return floorResult{Question: "go on?"}, nil
	}
	var out floorResult
	for range in.Steps {
		if in.Graph == callsGraph {
			in.Texts = append(in.Texts, "noted")
		}
		out.Step++
	}
	return out, nil
}

func workAnswered(context.Context, floorWork) (floorResult, error) { return floorResult{Step: 2}, nil }

// runTalk keeps a conversation in memory and in the updates of its history. A run that goes on in another one hands it on.
func runTalk(ctx workflow.Context, past []string) error {
	taken := 0
	if err := workflow.SetUpdateHandler(ctx, turnUpdate, func(ctx workflow.Context, said string) (out floorResult, err error) {
		ctx = withLocal(ctx)
		past = append(past, said)
		err = workflow.ExecuteLocalActivity(ctx, hear, len(past)).Get(ctx, &out)
		taken++
		return out, err
	}); err != nil {
		return err
	}
	if err := workflow.Await(ctx, func() bool { return taken >= turnsARun && workflow.AllHandlersFinished(ctx) }); err != nil {
		return err
	}
	return workflow.NewContinueAsNewError(ctx, talkFlow, past)
}

func hear(_ context.Context, n int) (floorResult, error) { return floorResult{Step: n}, nil }

// runSlow is what a worker is killed in.
func runSlow(ctx workflow.Context, in floorWork) error {
	ctx = withActivities(ctx)
	for _, name := range []string{"work", "next"} {
		if err := workflow.ExecuteActivity(ctx, name, in).Get(ctx, nil); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// takeTime works for a second, with heartbeats, without which nobody would notice that its worker is gone.
func takeTime(ctx context.Context, _ floorWork) error {
	tell(notice{Thread: activity.GetInfo(ctx).WorkflowExecution.ID, Node: "work"})
	const beat = 200 * time.Millisecond
	for range slowWork / beat {
		activity.RecordHeartbeat(ctx)
		if err := rest(ctx, beat); err != nil {
			return err
		}
	}
	return nil
}

func takeNext(ctx context.Context, _ floorWork) error {
	tell(notice{Thread: activity.GetInfo(ctx).WorkflowExecution.ID, Node: "next"})
	return nil
}
