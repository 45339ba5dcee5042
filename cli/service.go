package cli

import (
	"context"
	"iter"

	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
)

// service is what the commands ask of a server: the methods of [superstep.Client]. Tests script it.
type service interface {
	Start(ctx context.Context, req superstep.StartRequest) (superstep.ThreadView, error)
	Follow(ctx context.Context, since superstep.ThreadView, on func(superstep.Progress)) (superstep.ThreadView, error)
	Stream(ctx context.Context, r superstep.StreamRequest) iter.Seq2[superstep.StreamPart, error]
	List(ctx context.Context, q superstep.ListQuery) ([]superstep.ThreadView, error)
	Inbox(ctx context.Context, q superstep.InboxQuery) (superstep.InboxPage, error)
	Question(ctx context.Context, thread, id string) (superstep.QuestionView, error)
	Viewed(ctx context.Context, thread, question, by string) error
	Audit(ctx context.Context, thread string) ([]approval.Entry, approval.Chain, error)
	AuditExport(ctx context.Context, thread string) (approval.Export, error)
	Show(ctx context.Context, thread string) (superstep.ThreadView, error)
	StateOf(ctx context.Context, req superstep.StateRequest) (superstep.StateView, error)
	HistoryOf(ctx context.Context, req superstep.HistoryRequest) ([]superstep.CheckpointView, error)
	Effects(ctx context.Context, req superstep.EffectsRequest) (superstep.EffectsView, error)
	Update(ctx context.Context, req superstep.UpdateRequest) (superstep.StateView, error)
	Fork(ctx context.Context, req superstep.ForkRequest) (superstep.ThreadView, error)
	DrainWith(ctx context.Context, req superstep.DrainRequest) (superstep.ThreadView, error)
	Pause(ctx context.Context, req superstep.PauseRequest) (superstep.PauseReply, error)
	Unpause(ctx context.Context, req superstep.PauseRequest) (superstep.PauseReply, error)
	SendEvent(ctx context.Context, req superstep.EventRequest) (superstep.EventReply, error)
	Resume(ctx context.Context, req superstep.ResumeRequest) (superstep.ResumeReply, error)
	RetryWith(ctx context.Context, req superstep.RetryRequest) (superstep.ThreadView, error)
	CancelWith(ctx context.Context, req superstep.CancelRequest) (superstep.ThreadView, error)
	GraphSpec(ctx context.Context, name string) (*pregel.Spec, error)
	SubmitJob(ctx context.Context, req superstep.SubmitJob) (job.View, error)
	Jobs(ctx context.Context, q superstep.JobsQuery) ([]superstep.JobItem, error)
	Job(ctx context.Context, id string) (superstep.JobView, error)
	FollowJob(ctx context.Context, id string, after int64) iter.Seq2[job.Event, error]
	JobAnswer(ctx context.Context, id string) (superstep.JobAnswer, error)
	StopJob(ctx context.Context, id string, h job.Halt) (job.View, error)
	FailJob(ctx context.Context, id string, h job.Halt) (job.View, error)
	RecoverJob(ctx context.Context, id string, r job.Recover) (job.View, error)
	RetrySubJob(ctx context.Context, id, subjob, lesson string) (job.View, error)
	DecidePlan(ctx context.Context, id string, d job.Decision) (job.View, error)
	ChangeExperts(ctx context.Context, id string, add []job.Profile, remove ...string) (job.View, error)
	LeaderExperts(ctx context.Context, leader string) ([]job.Profile, error)
	RaiseBudget(ctx context.Context, id string, b job.Budget) (job.View, error)
}

// taskRunner is a worker: the methods of [superstep.Worker].
type taskRunner interface {
	Run(ctx context.Context) error
}

// backend makes the two sides of a connection. Tests replace its parts.
type backend struct {
	dial      func(ctx context.Context, opts client.Options) (client.Client, error)
	service   func(c client.Client, cfg superstep.ClientConfig) (service, error)
	newWorker func(c client.Client, cfg superstep.WorkerConfig) (taskRunner, error)
}

// temporalBackend is the one that talks to a Temporal server.
func temporalBackend() backend {
	return backend{
		dial: dial,
		service: func(c client.Client, cfg superstep.ClientConfig) (service, error) {
			return superstep.NewClient(c, cfg)
		},
		newWorker: func(c client.Client, cfg superstep.WorkerConfig) (taskRunner, error) {
			return superstep.NewWorker(c, cfg)
		},
	}
}

// withService connects, calls do and disconnects. A call that Ctrl-C ended is reported as that.
func (a *app) withService(ctx context.Context, do func(svc service) error) error {
	opts, err := a.clientOptions()
	if err != nil {
		return err
	}
	opts.Logger = silentLogger()
	opts = superstep.Encoded(opts)
	c, err := a.backend.dial(ctx, opts)
	if err != nil {
		return interrupted(ctx, err, "interrupted")
	}
	defer c.Close()
	svc, err := a.backend.service(c, superstep.ClientConfig{
		TaskQueue: a.conn.taskQueue, Namespace: opts.Namespace, Graphs: a.graphs, Identity: a.userName(),
		DataConverter: opts.DataConverter, FailureConverter: opts.FailureConverter,
	})
	if err != nil {
		return err
	}
	return interrupted(ctx, do(svc), "interrupted")
}

// call connects, makes one call and shows what came back: whole to a program, as text shows it to a person.
func call[View any](ctx context.Context, a *app, do func(svc service) (View, error), text func(View)) error {
	return a.withService(ctx, func(svc service) error {
		view, err := do(svc)
		if err == nil {
			a.Show(view, func() { text(view) })
		}
		return err
	})
}

// listed is a list that is [] and not null when a program reads it.
func listed[T any](all []T) []T { return append([]T{}, all...) }
