package superstep

import (
	"context"
	"iter"

	"superstep.dev/job"
	"superstep.dev/thread"
)

// SubmitJob begins a job. A worker of the leader checks it first; nothing is started when it does not fit.
//
// Errors: [thread.ErrBadInput], also when there is a job of that id already; [thread.ErrRunning] when that one runs; [thread.ErrNoWorker] when
// no worker of the task queue serves the leader; [thread.ErrNoServer].
func (c *Client) SubmitJob(ctx context.Context, r thread.SubmitJob) (job.View, error) {
	return c.jobs.SubmitJob(ctx, r)
}

// Job returns where a job stands. Nothing is changed by looking: a job is finished by its leader, not by its readers. While
// it is under way a worker is asked.
//
// Errors: [thread.ErrNotFound], [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) Job(ctx context.Context, id string) (thread.JobView, error) {
	return c.jobs.Job(ctx, id)
}

// Jobs returns jobs in the order of List, each with its newest run. The server's index is a moment behind, as with List.
// Errors: [thread.ErrNoServer], [thread.ErrBadInput].
func (c *Client) Jobs(ctx context.Context, q thread.JobsQuery) ([]thread.JobItem, error) {
	return c.jobs.Jobs(ctx, q)
}

// JobAnswer waits until a job has finished and returns what it has made, whole: texts that are stored with the attempts are
// read there. The end of ctx ends only the waiting.
//
// Errors: a *[thread.JobError] when the job failed or was stopped; [thread.ErrNotFound], also for a text that the server has no more;
// [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) JobAnswer(ctx context.Context, id string) (thread.JobAnswer, error) {
	return c.jobs.JobAnswer(ctx, id)
}

// FollowJob returns what happens to a job behind the event of a number, 0 for all that is still kept: the newest
// [job.MaxEvents] at a time. It ends when the job's run has ended, or with an error. The server tells when something
// happens; nothing is asked while nothing does. The end of ctx ends only the following.
//
// Errors: [thread.ErrNotFound], [thread.ErrNoServer], ctx's.
func (c *Client) FollowJob(ctx context.Context, id string, after int64) iter.Seq2[job.Event, error] {
	return c.jobs.FollowJob(ctx, id, after)
}

// StopJob stops a job, and returns when all its attempts have ended: what finished until then is kept, and a recovery does
// the rest. A job that is stopped already is returned as it is. The id is the job's, or that of the thread of an attempt:
// then the job is stopped on account of that one's subjob. Without Halt.By the client's Identity is noted as who asked.
//
// Errors: [thread.ErrNotFound] for a job or a subjob that there is not; [thread.ErrBadInput] when the job has finished or failed, which
// changes nothing; [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) StopJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return c.jobs.StopJob(ctx, id, h)
}

// FailJob is StopJob for a job that has failed then, with the subjob if one is named: see [job.Board.Fail]. A job that has
// failed already is returned as it is, one that was stopped is refused.
func (c *Client) FailJob(ctx context.Context, id string, h job.Halt) (job.View, error) {
	return c.jobs.FailJob(ctx, id, h)
}

// RecoverJob lets a job go on that was stopped or has failed: what had finished is kept, unless it is named to be done
// again, and only the rest runs. Of several recoveries at once one begins. A job that is about to stop or to fail is waited
// for. One whose run was ended from outside is taken as stopped once its attempts have ended.
//
// Errors: [thread.ErrNotFound] for a job or a subjob that there is not; [thread.ErrRunning] when the job runs, or somebody else has just
// recovered it; [thread.ErrNotFailed] when it has finished; [thread.ErrBadInput]; [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) RecoverJob(ctx context.Context, id string, r job.Recover) (job.View, error) {
	return c.jobs.RecoverJob(ctx, id, r)
}

// RetrySubJob does one subjob of a running job again, with a lesson, and what depends on it. A job that has ended is
// recovered instead: [job.Recover] names subjobs to do again.
//
// Errors: [thread.ErrNotFound] for a job or a subjob that there is not; [thread.ErrBadInput] when the subjob cannot be done again now, or
// the job has ended; [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) RetrySubJob(ctx context.Context, id, subjob, lesson string) (job.View, error) {
	return c.jobs.RetrySubJob(ctx, id, subjob, lesson)
}

// DecidePlan decides on the plan that a job waits for: see [job.Decision], which names the version of the plan that was
// looked at.
//
// Errors: [thread.ErrNotFound]; [thread.ErrAnswerRefused] when another plan waits by now; [thread.ErrBadInput] when none does, or for an edited
// plan that cannot be used; [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) DecidePlan(ctx context.Context, id string, d job.Decision) (job.View, error) {
	return c.jobs.DecidePlan(ctx, id, d)
}

// ChangeExperts changes who may be assigned to what a running job plans from now on. Workers must serve the graphs of those
// that are added. One that is removed still does what it is assigned to. All of it is done, or nothing.
//
// Errors: [thread.ErrNotFound] for a job or an expert that there is not; [thread.ErrBadInput]; [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) ChangeExperts(ctx context.Context, id string, add []job.Profile, remove ...string) (job.View, error) {
	return c.jobs.ChangeExperts(ctx, id, add, remove...)
}

// RaiseBudget changes what a running job may spend: fields that are 0 stay as they are. One that waits because its budget
// is spent goes on.
//
// Errors: [thread.ErrNotFound]; [thread.ErrBadInput] for less than what is spent, or a job that has ended; [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) RaiseBudget(ctx context.Context, id string, b job.Budget) (job.View, error) {
	return c.jobs.RaiseBudget(ctx, id, b)
}

// LeaderExperts returns the experts of a leader as a worker of the task queue serves it. Errors: [thread.ErrNoWorker], [thread.ErrNoServer].
func (c *Client) LeaderExperts(ctx context.Context, leader string) ([]job.Profile, error) {
	return c.jobs.LeaderExperts(ctx, leader)
}
