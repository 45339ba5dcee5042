package remote

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tracing"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Job returns where a job stands.
func (c *Jobs) Job(ctx context.Context, id string) (thread.JobView, error) {
	last, err := c.theLastJob(ctx, id)
	if err != nil {
		return thread.JobView{}, err
	}
	if !last.open {
		board, err := c.jobLeft(ctx, last)
		if err != nil {
			return thread.JobView{}, err
		}
		return thread.JobView{View: c.jobView(last, board.View(time.Now()))}, nil
	}
	var v job.View
	if err := c.query(ctx, last, protocol.QueryJob, &v); err != nil {
		return thread.JobView{}, err
	}
	waiting, err := c.jobQuestions(ctx, id)
	// The index is a moment behind: what the job itself asks no more is known from the job.
	waiting = slices.DeleteFunc(waiting, func(i thread.InboxItem) bool {
		return i.Thread == last.thread && v.Phase != job.PhaseApproving && v.Phase != job.PhaseOverBudget
	})
	return thread.JobView{View: c.jobView(last, v), Waiting: waiting}, err
}

// jobView completes a view by what the board does not know, and by the time that has gone by since a workflow task of the job made it:
// for a workflow that only waits no time goes by.
func (c *Jobs) jobView(last *lastRun, v job.View) job.View {
	v.Leader = last.graph
	return v.Until(time.Now())
}

// theLastJob is the newest run of a job, which must exist.
func (c *Jobs) theLastJob(ctx context.Context, id string) (*lastRun, error) {
	last, err := c.lastOf(ctx, job.WorkflowID(id), protocol.LeaderWorkflow)
	if err == nil && last == nil {
		err = &thread.Error{Kind: thread.ErrNotFound, Thread: job.WorkflowID(id), Message: "there is no job " + strconv.Quote(id),
			Do: "List the jobs there are", Command: []string{"job", "list"}}
	}
	return last, err
}

// jobLeft is the board that a job's closed run has left. One that was ended from outside left nothing, and a worker reads
// it from the run's history: the job is one that was stopped.
func (c *Jobs) jobLeft(ctx context.Context, last *lastRun) (*job.Board, error) {
	event, err := c.closingEvent(ctx, last)
	if err != nil {
		return nil, c.explain(err, last.graph, last.thread)
	}
	left, said, err := c.leaderResultIn(event)
	if err != nil {
		return nil, err
	}
	if said && left.Board != nil {
		return left.Board, nil
	}
	var board job.Board
	if err := c.query(ctx, last, protocol.QueryBoard, &board); err != nil {
		return nil, err
	}
	if !board.Status.Final() {
		_, err = c.abandoned(ctx, last, &board, event.GetWorkflowExecutionTerminatedEventAttributes().GetReason())
	}
	return &board, err
}

// leaderResultIn reads the last event of a leader's run; said is false when it was not the run itself that ended it.
func (c *Jobs) leaderResultIn(event *historypb.HistoryEvent) (left protocol.LeaderResult, said bool, err error) {
	switch event.GetEventType() {
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_COMPLETED:
		return left, true, c.decode(event.GetWorkflowExecutionCompletedEventAttributes().GetResult(), &left)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCELED:
		details := event.GetWorkflowExecutionCanceledEventAttributes().GetDetails()
		return left, details != nil, c.decode(details, &left)
	case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_FAILED:
		details := failureDetails(event.GetWorkflowExecutionFailedEventAttributes().GetFailure())
		return left, details != nil, c.decode(details, &left)
	}
	return left, false, nil
}

// refusedJob is the error of a message that a leader's run refused.
func refusedJob(workflowID string, by *temporal.ApplicationError) error {
	var refused job.RefusedError
	if !by.HasDetails() || by.Details(&refused) != nil {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: workflowID, Message: by.Message()}
	}
	return runtime.JobRefusal("", &refused)
}

// JobAnswer waits until a job has finished and returns what it has made, whole.
func (c *Jobs) JobAnswer(ctx context.Context, id string) (thread.JobAnswer, error) {
	last, err := c.theLastJob(ctx, id)
	if err != nil {
		return thread.JobAnswer{}, err
	}
	if last.open {
		// Why a run ends is in what it leaves; a run that cannot be waited for is none that has ended.
		if err := c.awaitEnd(ctx, last); ctx.Err() != nil {
			return thread.JobAnswer{}, errors.Join(ctx.Err(), err)
		}
		if last, err = c.theLastJob(ctx, id); err != nil {
			return thread.JobAnswer{}, err
		}
		if last.open { // it was recovered at once
			return c.JobAnswer(ctx, id)
		}
	}
	board, err := c.jobLeft(ctx, last)
	if err != nil {
		return thread.JobAnswer{}, err
	}
	v := c.jobView(last, board.View(time.Now()))
	if v.Status != job.StatusFinished {
		return thread.JobAnswer{View: v}, notFinished(v)
	}
	return c.answerOf(ctx, v, board.Answer())
}

// notFinished says why a job that has ended has no answer.
func notFinished(v job.View) error {
	reason := v.Reason
	if reason == "" {
		reason = "nobody said why"
	}
	return &thread.JobError{View: v, Message: reason + ". Let it go on: superstep job recover " + v.ID}
}

// answerOf reads the parts of an answer that are stored elsewhere.
func (c *Jobs) answerOf(ctx context.Context, v job.View, parts []job.Input) (thread.JobAnswer, error) {
	for i, p := range parts {
		if p.Text != "" || p.Stored == nil {
			continue
		}
		text, err := c.storedOutput(ctx, *p.Stored)
		if err != nil {
			return thread.JobAnswer{View: v}, fmt.Errorf("job %s: the output of subjob %s: %w", v.ID, p.SubJob, err)
		}
		parts[i].Text = text
	}
	return runtime.NewAnswer(v, parts), nil
}

// storedOutput reads an output where its attempt has left it, and checks that it is the one that is meant.
func (c *Jobs) storedOutput(ctx context.Context, at job.Reference) (string, error) {
	m, err := c.storedMessage(ctx, at.Thread, at.RunID)
	if err == nil && !at.Fits(m.Output) {
		err = &thread.Error{Kind: thread.ErrNotFound, Thread: at.Thread, Message: fmt.Sprintf("run %s of thread %q holds another output than the one that is referred to",
			at.RunID, at.Thread)}
	}
	return m.Output, err
}

// SubmitJob begins a job.
func (c *Jobs) SubmitJob(ctx context.Context, r thread.SubmitJob) (job.View, error) {
	if r.Job.ID == "" && r.RequestID != "" {
		r.Job.ID = jobOfRequest(r.Leader, r.RequestID)
	}
	r.Job.ID, r.RequestID = cmp.Or(r.Job.ID, thread.NewID(r.Leader)), cmp.Or(r.RequestID, uuid.NewString())
	if len(r.RequestID) > thread.MaxID {
		return job.View{}, &thread.Error{Kind: thread.ErrBadInput, Graph: r.Leader,
			Message: fmt.Sprintf("a request's id has at most %d bytes, this one has %d", thread.MaxID, len(r.RequestID))}
	}
	experts, err := c.LeaderExperts(ctx, r.Leader)
	if err != nil {
		return job.View{}, err
	}
	board, err := job.New(r.Job, experts, time.Now())
	if err != nil {
		return job.View{}, runtime.JobRefusal(r.Leader, err)
	}
	in := protocol.LeaderInput{Leader: r.Leader, Job: r.Job, Trace: tracing.Carried(ctx)}
	last, err := c.launchJob(ctx, r.RequestID, in, nil)
	if errors.Is(err, errStartedBefore) {
		return c.submittedBefore(ctx, r)
	}
	if err != nil {
		return job.View{}, err
	}
	return c.jobView(last, board.View(time.Now())), nil
}

// jobOfRequest is the id of the job that a request begins which names none: always the same, so that the request can be repeated.
func jobOfRequest(leader, request string) string {
	sum := sha256.Sum256([]byte(leader + "\x00" + request))
	digits := strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
	if id := leader + "-" + digits; len(id) <= job.MaxID {
		return id
	}
	return "job-" + digits
}

// submittedBefore is the view of a job that this very request began, or why there cannot be another one of its id.
func (c *Jobs) submittedBefore(ctx context.Context, r thread.SubmitJob) (job.View, error) {
	last, err := c.theLastJob(ctx, r.Job.ID)
	if err != nil {
		return job.View{}, err
	}
	if c.callOf(last.described) == r.RequestID {
		v, err := c.Job(ctx, r.Job.ID)
		return v.View, err
	}
	e := &thread.Error{Kind: thread.ErrRunning, Graph: r.Leader, Thread: last.thread, Do: "Look at it, or take another id",
		Command: []string{"job", "show", r.Job.ID}, Message: fmt.Sprintf("there is a job %q already, and it runs", r.Job.ID)}
	if !last.open {
		e.Kind = thread.ErrBadInput
		e.Message = fmt.Sprintf("there is a job %q already: its last run is %s", r.Job.ID, statusOf(last.status))
		if board, err := c.jobLeft(ctx, last); err == nil {
			e.Message = fmt.Sprintf("there is a job %q already, and it is %s", r.Job.ID, board.Status)
		}
	}
	return job.View{}, e
}

// LeaderExperts asks a worker for the experts of a leader.
func (c *Jobs) LeaderExperts(ctx context.Context, leader string) ([]job.Profile, error) {
	var reply protocol.AdmitReply
	for range admitTries {
		if err := c.askDesk(ctx, protocol.AdmitRequest{Leader: leader}, &reply); err != nil {
			return nil, err
		}
		if reply.Known {
			return reply.Experts, nil
		}
	}
	return nil, &thread.Error{Kind: thread.ErrNoWorker, Graph: leader, Message: fmt.Sprintf("no worker on task queue %q serves the leader %q; it serves %s",
		c.cfg.TaskQueue, leader, orNone(reply.Leaders)), Do: "Check the name, or start a worker with that leader"}
}

// errStartedBefore says that a run was not started, as there is another one.
var errStartedBefore = errors.New("it was started before")

// memoJobGoal is the memo field with the beginning of a job's goal, for lists.
const memoJobGoal = "superstep_goal"

// goalShown bounds what a list shows of a goal, in bytes.
const goalShown = 200

// launchJob starts a run of a leader: of a new job, or of one that goes on behind its last run. It fails with
// errStartedBefore when another run is there first. Its request id follows from that of the run before, as a thread's does,
// so that of several recoveries only one begins.
func (c *Jobs) launchJob(ctx context.Context, call string, in protocol.LeaderInput, last *lastRun) (*lastRun, error) {
	since := time.Now()
	has, err := c.hasAttributes(ctx)
	if err != nil {
		return nil, err
	}
	id := job.WorkflowID(in.Job.ID)
	fields := graphMemo(in.Leader, has)
	fields[protocol.MemoStart], fields[memoJobGoal] = call, clip.Text(in.Job.Goal, goalShown)
	memo, err := c.memoOf(in.Leader, fields)
	if err != nil {
		return nil, err
	}
	start, err := c.executionRequest(id, protocol.LeaderWorkflow, in, memo, last)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: in.Leader, Thread: id, Message: "the job cannot be encoded", Cause: err}
	}
	if has.Lists {
		start.SearchAttributes = runAttributes(in.Leader)
	}
	if err := c.stillLast(ctx, last); err != nil {
		return nil, err
	}
	run, err := c.execute(ctx, start, call, last != nil)
	var already *serviceerror.WorkflowExecutionAlreadyStarted
	if errors.As(err, &already) {
		hold, lookErr := c.holdBehind(ctx, id)
		if lookErr != nil {
			return nil, lookErr
		}
		if hold != nil {
			return c.launchJob(ctx, call, in, hold)
		}
	}
	if errors.As(err, &already) {
		return nil, fmt.Errorf("job %s: %w", in.Job.ID, errStartedBefore)
	}
	if err == nil {
		err = c.beganWhole(ctx, id, run, since)
	}
	if err != nil {
		return nil, c.explain(err, in.Leader, id)
	}
	return &lastRun{kind: protocol.LeaderWorkflow, thread: id, graph: in.Leader, runID: run, first: run, open: true}, nil
}
