package workflows_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"superstep.dev/activities"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/job"
	"superstep.dev/workflows"
	"superstep.dev/workflows/leading"
	"superstep.dev/workflows/protocol"
)

// expertFunc is what an expert of a test does.
type expertFunc func(ctx context.Context, a job.Assignment) (job.WorkflowMessage, error)

// plannerFunc is the planner of a test.
type plannerFunc func(ctx context.Context, req job.PlanRequest) (job.Draft, error)

func (f plannerFunc) Plan(ctx context.Context, req job.PlanRequest) (job.Draft, error) {
	return f(ctx, req)
}

// crew is a leader with its experts, and what they were told.
type crew struct {
	*rig
	id      string // of the job
	planner plannerFunc
	experts map[string]expertFunc
	// limits bound the attempts of experts, queues are those of their workers; where they are not the job's and the leader's.
	limits map[string]time.Duration
	queues map[string]string
	// assigned are the attempts that began, in that order, asked the calls of the planner.
	mu       sync.Mutex
	assigned []job.Assignment
	asked    []job.PlanRequest
}

// newCrew is a crew whose one job has an id of the test's own.
func newCrew(t *testing.T, planner plannerFunc, experts map[string]expertFunc) *crew {
	t.Helper()
	return &crew{rig: newRig(t), id: strings.ToLower(strings.Map(plainRune, testserver.Queue(t))), planner: planner, experts: experts,
		limits: map[string]time.Duration{}, queues: map[string]string{}}
}

func plainRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
		return r
	}
	return -1
}

// expertGraph is the graph of one function, as the experts of programs are.
func (c *crew) expertGraph(name string) *graphadapter.Graph {
	return &graphadapter.Graph{
		Spec: pregel.FunctionSpec(name, pregel.NodeSpec{Name: name}),
		Nodes: map[string]graphadapter.Node{name: {Run: func(ctx context.Context, in graphadapter.Input) (pregel.Command, error) {
			var a job.Assignment
			if err := json.Unmarshal(in.State[pregel.FunctionInput].Value(), &a); err != nil {
				return pregel.Command{}, err
			}
			c.mu.Lock()
			c.assigned = append(c.assigned, a)
			c.mu.Unlock()
			if err := activities.OutputsFrom(ctx).Fill(ctx, a.Inputs); err != nil {
				return pregel.Command{}, err
			}
			m, err := c.experts[name](ctx, a)
			if err != nil {
				return pregel.Command{}, err
			}
			text, err := json.Marshal(m)
			return pregel.Command{Update: pregel.FunctionWrites(text, pregel.Value(`null`))}, err
		}}},
	}
}

// graphs are those of the experts, in the order of their names.
func (c *crew) graphs() (all []*graphadapter.Graph) {
	for _, p := range c.profiles() {
		all = append(all, c.expertGraph(p.Graph))
	}
	return all
}

func (c *crew) profiles() (all []job.Profile) {
	for name := range c.experts {
		all = append(all, job.Profile{Name: name, Description: "does what it does in this test", Graph: name, Timeout: c.limits[name], TaskQueue: c.queues[name]})
	}
	slices.SortFunc(all, func(a, b job.Profile) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// lead starts a worker that serves the leader and its experts.
func (c *crew) lead() (stop func()) {
	c.t.Helper()
	w := worker.New(c.client, c.queue, worker.Options{Identity: "test", StickyScheduleToStartTimeout: time.Second, WorkerStopTimeout: patience})
	graphs := c.graphs()
	inputs := activities.NewInputs(0, c.replaying(graphs...))
	workflows.NewGraphs(graphs, workflows.Config{Values: inputs, LostAfter: steady}).Register(w)
	leading.New(nil, workflows.Leader{Name: "leader", Experts: c.profiles()}).Register(w)
	activities.NewNodes(c.client, graphs).WithInputs(inputs).WithPlanners(map[string]job.Planner{"leader": plannerFunc(
		func(ctx context.Context, req job.PlanRequest) (job.Draft, error) {
			c.mu.Lock()
			c.asked = append(c.asked, req)
			c.mu.Unlock()
			return c.planner(ctx, req)
		})}).Register(w)
	if err := w.Start(); err != nil {
		c.t.Fatal(err)
	}
	stop = sync.OnceFunc(w.Stop)
	c.t.Cleanup(stop)
	return stop
}

// begin starts a run of the job's leader.
func (c *crew) begin(in protocol.LeaderInput) client.WorkflowRun {
	c.t.Helper()
	in.Leader = "leader"
	if in.Board == nil {
		in.Job.ID = c.id
		if in.Job.Goal == "" {
			in.Job.Goal = "the goal"
		}
		if in.Job.Policy.RetryWait == 0 {
			in.Job.Policy.RetryWait = time.Millisecond
		}
	}
	run, err := c.client.ExecuteWorkflow(c.ctx, client.StartWorkflowOptions{ID: job.WorkflowID(c.id), TaskQueue: c.queue,
		WorkflowTaskTimeout: 3 * time.Second}, protocol.LeaderWorkflow, in)
	if err != nil {
		c.t.Fatal(err)
	}
	return run
}

// ends waits for the end of a run, and returns the board that it left.
func (c *crew) ends(run client.WorkflowRun, status job.Status) *job.Board {
	c.t.Helper()
	var result protocol.LeaderResult
	err := run.Get(c.ctx, &result)
	var application *temporal.ApplicationError
	var cancelled *temporal.CanceledError
	switch {
	case errors.As(err, &application) && application.Type() == protocol.ErrTypeJobFailed:
		err = application.Details(&result)
	case errors.As(err, &cancelled):
		err = cancelled.Details(&result)
	}
	if err != nil {
		c.t.Fatalf("job %s: %v", c.id, err)
	}
	if result.Board.Status != status {
		c.t.Fatalf("the job is %s, want %s: %s\n%s", result.Board.Status, status, result.Board.Reason, asJSON(c.t, result.Board.Events))
	}
	return result.Board
}

// tells sends an update to the leader.
func (c *crew) tells(name string, req any) (job.View, error) {
	var v job.View
	handle, err := c.client.UpdateWorkflow(c.ctx, client.UpdateWorkflowOptions{WorkflowID: job.WorkflowID(c.id), UpdateName: name,
		Args: []any{req}, WaitForStage: client.WorkflowUpdateStageCompleted})
	if err == nil {
		err = handle.Get(c.ctx, &v)
	}
	return v, err
}

// view queries the job.
func (c *crew) view() (v job.View, err error) {
	value, err := c.client.QueryWorkflow(c.ctx, job.WorkflowID(c.id), "", protocol.QueryJob)
	if err == nil {
		err = value.Get(&v)
	}
	return v, err
}

// until waits until the job is as wanted.
func (c *crew) until(what string, wanted func(job.View) bool) (v job.View) {
	c.t.Helper()
	var err error
	await(c.t, what, func() bool {
		v, err = c.view()
		return err == nil && wanted(v)
	}, func() any { return map[string]any{"job": v, "error": fmt.Sprint(err)} })
	return v
}

// made is what a job has made, as one text for each tail.
func made(b *job.Board) (texts []string) {
	for _, in := range b.Answer() {
		texts = append(texts, in.Text)
	}
	return texts
}

// attempts are those that began, as "subjob/attempt", in that order.
func (c *crew) attempts() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.assigned {
		all = append(all, fmt.Sprintf("%s/%d", a.SubJob, a.Attempt))
	}
	return all
}

// told are the assignments of a subjob, by the planner's id of it.
func (c *crew) told(subjob string) (all []job.Assignment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.assigned {
		if strings.HasSuffix(a.SubJob, "-"+subjob) {
			all = append(all, a)
		}
	}
	return all
}

// planOf is a planner with one plan: "id expert dependency…", for each subjob.
func planOf(subjobs ...string) plannerFunc {
	return func(context.Context, job.PlanRequest) (job.Draft, error) { return draftOf(subjobs...), nil }
}

func draftOf(subjobs ...string) (d job.Draft) {
	for _, s := range subjobs {
		words := strings.Fields(s)
		d.SubJobs = append(d.SubJobs, job.DraftSubJob{ID: words[0], Goal: "do " + words[0], Expert: words[1], Dependencies: words[2:]})
	}
	return d
}

func success(output string) (job.WorkflowMessage, error) {
	return job.WorkflowMessage{Status: job.Success, Output: output}, nil
}
