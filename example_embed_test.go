package superstep_test

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"superstep.dev"
)

// parcel is the state of a graph that delivers something.
type parcel struct {
	Place   superstep.Value[string] `json:"place"`
	Receipt superstep.Value[string] `json:"receipt"`
}

// delivery is a graph: what it does is up to its workers.
func delivery() *superstep.Graph[parcel] {
	g := superstep.NewStateGraph[parcel]("delivery")
	g.AddNode("deliver", func(_ context.Context, s parcel) (parcel, error) {
		s.Receipt.Set("signed in " + s.Place.Get())
		return s, nil
	})
	g.AddEdge(superstep.Start, "deliver")
	return g.MustCompile()
}

func parcelTo(place string) parcel {
	var s parcel
	s.Place.Set(place)
	return s
}

// A workflow of one's own runs a graph as a child: a thread that is listed, asks people and is resumed as any other. Its test needs no
// server: a workflow named superstep.graph stands in for the graph, and returns what a run does.
func ExampleExecuteGraph() {
	order := func(ctx workflow.Context, number string) (string, error) {
		ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{WorkflowID: "delivery-" + number, TaskQueue: "superstep"})
		delivered, err := superstep.ExecuteGraph(ctx, delivery(), parcelTo("Oslo"), superstep.WithRequester("rita")).Get(ctx)
		if err != nil {
			return "", err // a *RunError names the thread and the node
		}
		return delivered.Receipt.Get(), nil
	}

	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(func(_ workflow.Context, run map[string]any) (map[string]any, error) {
		fmt.Println("graph", run["graph"], "with", run["input"], "for", run["requester"])
		return map[string]any{"output": map[string]any{"receipt": "signed in Oslo"}}, nil
	}, workflow.RegisterOptions{Name: "superstep.graph"})
	env.ExecuteWorkflow(order, "o-7")
	var receipt string
	fmt.Println(env.GetWorkflowResult(&receipt), receipt)
	// Output:
	// graph delivery with map[place:Oslo] for rita
	// <nil> signed in Oslo
}

// A Temporal schedule starts a run each morning. Runs are threads named after the action and the time.
func ExampleScheduleAction() {
	action, err := superstep.ScheduleAction(delivery(), "milk", parcelTo("Oslo"), superstep.WithDurability(superstep.DurabilityAsync))
	if err != nil {
		fmt.Println(err)
		return
	}
	every := client.ScheduleOptions{ID: "milk", Action: action,
		Spec: client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: 24 * time.Hour, Offset: 7 * time.Hour}}}}
	// _, err = temporalClient.ScheduleClient().Create(ctx, every)

	fmt.Println(every.ID, action.Workflow, action.TaskQueue)
	// Output: milk superstep.graph superstep
}
