package leading

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/internal/clip"
	"superstep.dev/job"
	"superstep.dev/workflows/protocol"
)

const (
	// cancelGrace is how long an attempt may take to end once it was told to.
	cancelGrace = 2 * time.Minute
	endTimeout  = 10 * time.Second
)

// child is an attempt under way.
type child struct {
	attempt job.Attempt
	thread  string
	cancel  workflow.CancelFunc
	// limit is how long it may take, and ends when that is over.
	limit time.Duration
	ends  time.Time
	// told is when it was told to end, zero before. late says that this was because it was out of time, and forced that it
	// did not end then either.
	told         time.Time
	late, forced bool
	began        time.Time
	// message is how it ended.
	message job.WorkflowMessage
}

// start begins an attempt: a run of its expert's graph.
func (l *lead) start(a job.Assignment) {
	c := &child{attempt: job.Attempt{SubJob: a.SubJob, Attempt: a.Attempt}, thread: a.Thread()}
	at := slices.IndexFunc(l.board.Experts, func(p job.Profile) bool { return p.Name == a.Expert })
	input, err := json.Marshal(a)
	if at < 0 || err != nil {
		c.message = protocol.BrokenMessage("there is no expert "+a.Expert+" to give it to", job.Usage{})
		l.ended = append(l.ended, c)
		return
	}
	expert := l.board.Experts[at]
	if c.limit = expert.Timeout; c.limit <= 0 {
		c.limit = l.board.Job.Policy.AttemptTimeout
	}
	c.began = l.now()
	c.ends = c.began.Add(c.limit)
	ctx, cancel := workflow.WithCancel(workflow.WithChildOptions(l.life, l.childOptions(a, expert)))
	c.cancel = cancel
	l.children = append(l.children, c)
	in := protocol.GraphInput{
		Graph: expert.Graph, Input: protocol.Input{Value: input}, Requester: l.board.Job.Requester,
		Found: l.in.Found, Expert: true, Trace: l.traced.under(c.attempt),
	}
	size := len(input) + attemptBytes
	var run workflow.ChildWorkflowFuture
	if l.hasRoom(size) {
		run = l.begin(ctx, in, size)
	}
	workflow.Go(l.life, func(life workflow.Context) {
		if run == nil {
			_ = workflow.Await(life, func() bool { return l.hasRoom(size) })
			c.began = l.now()
			c.ends = c.began.Add(c.limit)
			run = l.begin(ctx, in, size)
		}
		_ = run.GetChildWorkflowExecution().Get(life, nil) // how it ended says why it did not begin
		l.opening -= size
		var result protocol.GraphResult
		err := run.Get(life, &result)
		c.message = c.said(result, err)
		l.traced.did(life, c)
		l.children = slices.DeleteFunc(l.children, func(other *child) bool { return other == c })
		l.ended = append(l.ended, c)
	})
}

// The server terminates a run that has commands of more than 4 MiB in one workflow task, so attempts begin in a window that stays below
// that. attemptBytes is what the start of an attempt has beside its input.
const (
	maxOpeningBytes = 3 << 20
	attemptBytes    = 4 << 10
)

// hasRoom reports whether an attempt whose start has that many bytes may begin beside those that the server has not begun yet.
func (l *lead) hasRoom(size int) bool { return l.opening == 0 || l.opening+size <= maxOpeningBytes }

// begin starts the run of an attempt.
func (l *lead) begin(ctx workflow.Context, in protocol.GraphInput, size int) workflow.ChildWorkflowFuture {
	l.opening += size
	return workflow.ExecuteChildWorkflow(ctx, protocol.GraphWorkflow, in)
}

func (l *lead) childOptions(a job.Assignment, expert job.Profile) workflow.ChildWorkflowOptions {
	o := workflow.ChildWorkflowOptions{
		WorkflowID: a.Thread(), TaskQueue: expert.TaskQueue, WorkflowTaskTimeout: protocol.WorkflowTaskTimeout, WaitForCancellation: true,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		Memo:                  map[string]any{protocol.MemoGraph: expert.Graph},
		StaticSummary:         clip.Line(a.Expert + ": " + a.Goal),
	}
	if l.in.Found.Lists {
		o.TypedSearchAttributes = temporal.NewSearchAttributes(
			temporal.NewSearchAttributeKeyKeyword(protocol.AttributeGraph).ValueSet(expert.Graph),
			temporal.NewSearchAttributeKeyKeyword(protocol.AttributeParent).ValueSet(job.WorkflowID(a.Job)))
	}
	return o
}

// said is how an attempt ended. What went wrong around the expert is an execution error with that reason.
func (c *child) said(result protocol.GraphResult, err error) job.WorkflowMessage {
	lost := job.Usage{Unknown: true}
	var cancelled *temporal.CanceledError
	var terminated *temporal.TerminatedError
	var timeout *temporal.TimeoutError
	var already *temporal.ChildWorkflowExecutionAlreadyStartedError
	var application *temporal.ApplicationError
	if errors.As(err, &cancelled) && cancelled.HasDetails() {
		_ = cancelled.Details(&result) // it may have ended well all the same
	}
	switch {
	case result.Message != nil:
		return *result.Message
	case err == nil:
		return protocol.BrokenMessage("its run ended without a message", lost)
	case c.late:
		return protocol.BrokenMessage("timed out: it had not ended after "+c.limit.String(), lost)
	case errors.As(err, &application):
		return protocol.BrokenMessage(application.Message(), lost)
	case errors.As(err, &already):
		return protocol.BrokenMessage("it could not be started: there is a thread "+c.thread+" already", job.Usage{})
	case errors.As(err, &cancelled):
		return protocol.BrokenMessage("cancelled", lost)
	case errors.As(err, &terminated):
		return protocol.BrokenMessage("its run was terminated", lost)
	case errors.As(err, &timeout):
		return protocol.BrokenMessage("its run timed out", lost)
	}
	return protocol.BrokenMessage("it could not be run: "+err.Error(), lost)
}

// tell tells an attempt to end.
func (l *lead) tell(a job.Attempt) {
	for _, c := range l.children {
		if c.attempt == a && c.told.IsZero() {
			c.told = l.now()
			c.cancel()
		}
	}
}

// grace is how long an attempt may take to end once it was told to.
func (l *lead) grace() time.Duration {
	if l.in.Grace > 0 {
		return time.Duration(l.in.Grace) * time.Millisecond
	}
	return cancelGrace
}

// endLate ends attempts that are out of time: first they are told, then made.
func (l *lead) endLate() {
	now := l.now()
	for _, c := range l.children {
		switch {
		case c.told.IsZero() && !now.Before(c.ends):
			c.late = true
			l.tell(c.attempt)
		case !c.told.IsZero() && !c.forced && !now.Before(c.told.Add(l.grace())):
			c.forced = true
			l.end(c.thread)
		}
	}
}

// nextLate is when an attempt runs out of time next, zero for never.
func (l *lead) nextLate() (at time.Time) {
	for _, c := range l.children {
		next := c.ends
		if !c.told.IsZero() {
			next = c.told.Add(l.grace())
		}
		if !c.forced && (at.IsZero() || next.Before(at)) {
			at = next
		}
	}
	return at
}

// end terminates an attempt that did not end when it was told to: nothing else would ever make it.
func (l *lead) end(thread string) {
	l.ending++
	ctx := workflow.WithActivityOptions(l.life, workflow.ActivityOptions{StartToCloseTimeout: endTimeout, Summary: "end " + thread})
	future := workflow.ExecuteActivity(ctx, job.EndActivity, job.EndCall{Thread: thread, Reason: "it did not end when its leader told it to"})
	workflow.Go(l.life, func(ctx workflow.Context) {
		if err := future.Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Error("an attempt could not be ended", "thread", thread, "error", err)
		}
		l.ending--
	})
}

const (
	// planRunTimeout is longer than the activity gives the planner. planHeartbeat is after what time without a sign of life
	// another worker asks it.
	planRunTimeout = 11 * time.Minute
	planHeartbeat  = 5 * time.Second
)

// planning is a call of the planner.
type planning struct {
	cancel workflow.CancelFunc
	over   bool
	draft  job.Draft
	err    error
}

// ask calls the planner.
func (l *lead) ask(req job.PlanRequest) {
	ctx, cancel := workflow.WithCancel(l.life)
	p := &planning{cancel: cancel}
	l.plan = p
	about := "the job"
	if req.SubJob != nil {
		about = "subjob " + req.SubJob.ID
	}
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: planRunTimeout, HeartbeatTimeout: planHeartbeat, WaitForCancellation: true,
		// How often a planner is asked is counted by the activity: the server's count has lost workers in it.
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 2 * time.Second},
		Summary:     fmt.Sprintf("plan %s, attempt %d", about, req.Attempt),
	})
	future := workflow.ExecuteActivity(ctx, job.PlanActivity, job.PlanCall{Leader: l.in.Leader, Request: req, Trace: l.traced.String()})
	workflow.Go(l.life, func(ctx workflow.Context) {
		var reply job.PlanReply
		err := future.Get(ctx, &reply)
		p.draft, p.err = planned(reply, err)
		p.over = true
	})
}

// planned is a planner's answer as the board takes it.
func planned(reply job.PlanReply, err error) (job.Draft, error) {
	none := job.Draft{Usage: reply.Usage}
	var application *temporal.ApplicationError
	switch {
	case errors.As(err, &application):
		return none, errors.New(application.Message())
	case err != nil:
		return none, err
	case reply.Bad != nil:
		return none, reply.Bad
	case reply.Draft == nil:
		return none, errors.New("the planner's worker gave no answer: it may be of another version")
	}
	return *reply.Draft, nil
}
