package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/heaproom"
	"superstep.dev/job"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/workflows"
	"superstep.dev/workflows/leading"
	"superstep.dev/workflows/protocol"
)

const (
	jobSubJobs  = 1000
	jobParallel = 100
	jobRounds   = 5
	barJobs     = 1.3
	jobLeader   = "bench-leader"
	jobExpert   = "bench-expert"
)

// jobs compares what a leader takes for a subjob with what Temporal alone takes for a child run.
func jobs(ctx context.Context, b *bench) ([]figure, error) {
	s, err := b.StartServer(ctx, false)
	if err != nil {
		return nil, err
	}
	temporal, err := testbed.Dial(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	defer temporal.Close()
	stop, err := serveJobs(temporal)
	if err != nil {
		return nil, err
	}
	defer stop()
	led, bare, err := alternateJobs(ctx, temporal, b.repeat(jobRounds))
	if err != nil {
		return nil, err
	}
	return []figure{jobsFigure(led, bare)}, s.Process.Stop()
}

// serveJobs starts both sides' workers, with the same options.
func serveJobs(c client.Client) (stop func(), err error) {
	heaproom.Give()
	leads := worker.New(c, graphQueue, chainWorkerOptions())
	expert := expertGraph()
	experts := []job.Profile{{Name: "expert", Description: "does nothing", Graph: jobExpert}}
	workflows.NewGraphs([]*graphadapter.Graph{expert}, workflows.Config{}).Register(leads)
	leading.New(nil, workflows.Leader{Name: jobLeader, Experts: experts}).Register(leads)
	activities.NewNodes(c, []*graphadapter.Graph{expert}).WithPlanners(map[string]job.Planner{jobLeader: widePlan{}}).Register(leads)
	plain := worker.New(c, plainQueue, chainWorkerOptions())
	registerChildren(plain)
	if err := errors.Join(leads.Start(), plain.Start()); err != nil {
		return nil, err
	}
	return func() {
		leads.Stop()
		plain.Stop()
	}, nil
}

// expertGraph does nothing, in one node.
func expertGraph() *graphadapter.Graph {
	return &graphadapter.Graph{
		Spec: pregel.FunctionSpec(jobExpert, pregel.NodeSpec{Name: jobExpert}),
		Nodes: map[string]graphadapter.Node{jobExpert: {Run: func(context.Context, graphadapter.Input) (pregel.Command, error) {
			return pregel.Command{Update: pregel.FunctionWrites(pregel.Value(`{"status":"SUCCESS","output":"done"}`), pregel.Value(`null`))}, nil
		}}},
	}
}

// widePlan plans subjobs that depend on nothing.
type widePlan struct{}

// Plan implements job.Planner.
func (widePlan) Plan(context.Context, job.PlanRequest) (d job.Draft, err error) {
	for i := range jobSubJobs {
		d.SubJobs = append(d.SubJobs, job.DraftSubJob{ID: fmt.Sprint(i), Goal: "do nothing", Expert: "expert"})
	}
	return d, nil
}

// jobTrip is one run of either side.
type jobTrip struct {
	each   float64 // milliseconds for each subjob, or child
	events float64 // of the parent's history
}

// alternateJobs runs both sides in turn, after one run of each that does not count.
func alternateJobs(ctx context.Context, c client.Client, rounds int) (led, bare []jobTrip, err error) {
	sides := []struct {
		run func(context.Context, client.Client) (client.WorkflowRun, error)
		out *[]jobTrip
	}{{startJob, &led}, {startParent, &bare}}
	for round := range rounds + 1 {
		for i := range sides {
			side := sides[(round+i)%len(sides)]
			trip, err := travelJob(ctx, c, side.run)
			if err != nil {
				return nil, nil, err
			}
			if round > 0 {
				*side.out = append(*side.out, trip)
			}
		}
	}
	return led, bare, nil
}

func startJob(ctx context.Context, c client.Client) (client.WorkflowRun, error) {
	id := uuid.NewString()
	return c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: job.WorkflowID(id), TaskQueue: graphQueue, WorkflowTaskTimeout: 3 * time.Second},
		protocol.LeaderWorkflow, protocol.LeaderInput{Leader: jobLeader,
			Job: job.Job{ID: id, Goal: "nothing", Policy: job.Policy{MaxParallel: jobParallel}}})
}

func startParent(ctx context.Context, c client.Client) (client.WorkflowRun, error) {
	return c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: "parent-" + uuid.NewString(), TaskQueue: plainQueue,
		WorkflowTaskTimeout: 3 * time.Second}, plainParent, jobSubJobs, jobParallel)
}

// travelJob measures one run from outside.
func travelJob(ctx context.Context, c client.Client, start func(context.Context, client.Client) (client.WorkflowRun, error)) (jobTrip, error) {
	began := time.Now()
	run, err := start(ctx, c)
	if err != nil {
		return jobTrip{}, err
	}
	if err := run.Get(ctx, nil); err != nil {
		return jobTrip{}, err
	}
	took := time.Since(began)
	described, err := c.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return jobTrip{}, err
	}
	return jobTrip{each: testbed.Milliseconds(took) / jobSubJobs, events: float64(described.GetWorkflowExecutionInfo().GetHistoryLength())}, nil
}

func jobsFigure(led, bare []jobTrip) figure {
	of := func(trips []jobTrip, what func(jobTrip) float64) (s testbed.Sample) {
		for _, t := range trips {
			s = append(s, what(t))
		}
		return s
	}
	each, events := func(t jobTrip) float64 { return t.each }, func(t jobTrip) float64 { return t.events }
	ratio := of(led, each).Over(of(bare, each))
	return figure{
		Name: "jobs", Compares: fmt.Sprintf("%d subjobs, %d at once / as many bare child runs of one no-op activity, start to close",
			jobSubJobs, jobParallel),
		Value: ratio.Median(), Unit: "x", Bar: barJobs, Rounds: ratio,
		Details: map[string]testbed.Sample{"leader, ms each": of(led, each), "bare, ms each": of(bare, each),
			"leader, events": of(led, events), "bare, events": of(bare, events)},
		Notes: []string{
			fmt.Sprintf("ms each          %8.4g against %8.4g", of(led, each).Median(), of(bare, each).Median()),
			fmt.Sprintf("events           %8.4g against %8.4g", of(led, events).Median(), of(bare, events).Median()),
		},
	}
}
