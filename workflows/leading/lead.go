// Package leading has the workflow that leads a job: a coroutine around a [job.Board], which decides. Who plans is an activity, and
// an attempt of an expert a child run of the expert's graph.
package leading

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"superstep.dev/graphadapter/life"
	"superstep.dev/job"
	"superstep.dev/workflows"
	"superstep.dev/workflows/listing"
	"superstep.dev/workflows/protocol"
)

// lead is one execution of the Lead workflow. Its main coroutine owns the board: the others only note what happened.
type lead struct {
	in    protocol.LeaderInput
	board *job.Board
	// life is the context of all that the run does: a run that is cancelled still ends its attempts in order.
	life     workflow.Context
	children []*child // under way, in the order in which they were started
	ended    []*child // whose end the board does not know yet
	plan     *planning
	orders   []*order
	alarm    alarm
	ending   int // activities that end attempts, under way
	opening  int // bytes of the starts of attempts that the server has not begun yet
	taken    life.TakenList
	listed   listing.Listing
	// cancelled says that the run was cancelled from outside, which the board takes for a stop.
	cancelled bool
	traced    *traced
}

// Lead leads a job: a planner makes subjobs of it, each is done by an expert's graph, an attempt a child run, and the
// [job.Board] says what follows from what. It ends when the job has: completed when it finished or was stopped, failed
// when it failed, cancelled when the run was, each with the job's board, from which another run goes on.
func (ls *Leaders) Lead(ctx workflow.Context, in protocol.LeaderInput) (*protocol.LeaderResult, error) {
	l := &lead{in: in}
	l.life, _ = workflow.NewDisconnectedContext(ctx)
	l.traced = newTraced(ctx, ls.spans, &l.in)
	result, err := l.run(ctx, ls)
	l.traced.ended(l.life, l.board, err)
	return result, err
}

func (l *lead) run(ctx workflow.Context, ls *Leaders) (*protocol.LeaderResult, error) {
	l.taken = l.in.Taken
	if err := l.open(ctx, ls); err != nil {
		return nil, err
	}
	if err := l.handle(ctx); err != nil {
		return nil, err
	}
	if err := l.recover(); err != nil {
		return nil, err
	}
	for {
		l.takeIn(ctx)
		if l.due(ctx) && l.idle() {
			if l.quiet(ctx) {
				return nil, l.continueAsNew()
			}
			continue
		}
		if !l.heldBack() {
			work := l.board.Ready(l.now())
			l.do(work)
			if work.Done {
				break
			}
		}
		l.alarm.set(l.life, l.nextLate()) // also of a run that is held back
		l.show(ctx)
		l.awaitNews(ctx)
	}
	return l.close(ctx)
}

// open makes the board, or takes over that of the run before.
func (l *lead) open(ctx workflow.Context, leaders *Leaders) error {
	experts := leaders.begin(ctx, &l.in)
	l.listed = listing.Begin(ctx, *l.in.Found, l.in.Leader)
	if l.in.Board != nil {
		l.board = l.in.Board
		l.in.Board = nil
		return nil
	}
	board, err := job.New(l.in.Job, experts, l.now())
	if err != nil {
		return refusedJob(err)
	}
	l.board = board
	return nil
}

// recover goes on with a job that stopped or failed.
func (l *lead) recover() error {
	if l.in.Recover == nil {
		return nil
	}
	if err := l.board.Recover(*l.in.Recover, l.now()); err != nil {
		return refusedJob(err)
	}
	return nil
}

// takeIn tells the board what happened. Ends of attempts come first: what somebody wants done is decided on what is so.
func (l *lead) takeIn(ctx workflow.Context) {
	for _, c := range l.ended {
		l.board.Reported(c.attempt, c.message, l.now())
	}
	l.ended = nil
	if p := l.plan; p != nil && p.over {
		l.plan = nil
		l.board.Planned(p.draft, p.err, l.now())
	}
	for _, o := range l.orders {
		o.done, o.err = true, o.do(l.board, l.now())
	}
	l.orders = nil
	if ctx.Err() != nil && !l.cancelled {
		l.cancelled = true
		_ = l.board.Stop(job.Halt{Reason: "its workflow was cancelled"}, l.now()) // it may have ended by itself
	}
	l.endLate()
}

// do begins what the board wants done.
func (l *lead) do(work job.Work) {
	if work.CancelPlan && l.plan != nil {
		l.plan.cancel()
	}
	for _, a := range work.Cancel {
		l.tell(a)
	}
	if work.Plan != nil {
		l.ask(*work.Plan)
	}
	for _, a := range work.Run {
		l.start(a)
	}
	l.alarm.set(l.life, work.Wake)
}

// awaitNews waits until something happened that the board has to know, or it wanted to be asked again.
func (l *lead) awaitNews(ctx workflow.Context) {
	_ = workflow.Await(l.life, func() bool {
		return len(l.ended) > 0 || l.plan != nil && l.plan.over || len(l.orders) > 0 || l.alarm.rang || ctx.Err() != nil && !l.cancelled
	})
	l.alarm.rang = false
	workflows.GiveWay(l.life) // all that came with one workflow task counts at once
}

// close ends the run. Whoever asked for something has an answer before.
func (l *lead) close(ctx workflow.Context) (*protocol.LeaderResult, error) {
	l.show(ctx)
	for {
		_ = workflow.Await(l.life, func() bool { return len(l.orders) > 0 || l.ending == 0 && workflow.AllHandlersFinished(l.life) })
		if len(l.orders) == 0 {
			break
		}
		l.takeIn(ctx) // what came too late is refused
	}
	result := &protocol.LeaderResult{Leader: l.in.Leader, Board: l.board}
	switch {
	case l.board.Status == job.StatusFailed:
		return nil, temporal.NewApplicationErrorWithOptions(fmt.Sprintf("job %s: %s", l.board.Job.ID, l.board.Reason), protocol.ErrTypeJobFailed,
			temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{result}})
	case l.board.Status == job.StatusStopped && l.cancelled:
		return nil, temporal.NewCanceledError(result)
	}
	return result, nil
}

func (l *lead) now() time.Time { return workflow.Now(l.life) }

// Leaders are the leaders that a worker serves, and their workflow. Their planners are the activities'
// (activities.Nodes.WithPlanners), and the graphs of their experts any worker's.
type Leaders struct {
	experts map[string][]job.Profile
	find    workflows.Find
	spans   workflows.Spans
}

// New returns the workflow over these leaders, whose runs find around them what find says: see [workflows.Config].
func New(find workflows.Find, leaders ...workflows.Leader) *Leaders {
	ls := &Leaders{experts: map[string][]job.Profile{}, find: find}
	for _, l := range leaders {
		ls.experts[l.Name] = l.Experts
	}
	return ls
}

// WithSpans makes the leaders tell of their jobs; nil tells nobody. It returns ls.
func (ls *Leaders) WithSpans(spans workflows.Spans) *Leaders {
	ls.spans = spans
	return ls
}

// Register registers the workflow on a worker or a replayer.
func (ls *Leaders) Register(r worker.WorkflowRegistry) {
	r.RegisterWorkflowWithOptions(ls.Lead, workflow.RegisterOptions{Name: protocol.LeaderWorkflow})
}

// beginning is what a run learns from its first worker. It is part of the run's history, so that a later deploy does not change
// the job.
type beginning struct {
	Experts []job.Profile   `json:"experts,omitempty"`
	Found   *protocol.Found `json:"found,omitempty"`
}

// begin completes the input of a run with what this worker serves, and returns the experts that a new job begins with. A leader
// that this worker does not have makes the workflow task fail, which the server repeats on any worker: the job waits for a
// deploy, it does not fail.
func (ls *Leaders) begin(ctx workflow.Context, in *protocol.LeaderInput) []job.Profile {
	served, ok := ls.experts[in.Leader]
	switch {
	case in.Board != nil && in.Found != nil:
		return nil
	case in.Board == nil && !ok:
		names := workflow.DeterministicKeys(ls.experts)
		slices.Sort(names)
		panic(fmt.Sprintf("this worker does not serve the leader %q, it serves %v: start a worker that does", in.Leader, names))
	}
	var b beginning
	recorded := workflow.SideEffect(ctx, func(ctx workflow.Context) any {
		return beginning{Experts: served, Found: ls.find.In(workflow.GetInfo(ctx).Namespace)}
	})
	if err := recorded.Get(&b); err != nil {
		panic(fmt.Sprintf("what the job of leader %q began with cannot be read: %v", in.Leader, err))
	}
	if in.Found == nil {
		in.Found = b.Found
	}
	return b.Experts
}
