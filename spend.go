package superstep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/clip"
	"superstep.dev/job"
)

// ErrOutsideExpert is returned by [Spend] when its context is not that of an expert's function.
var ErrOutsideExpert = errors.New("superstep: called outside an expert: pass on the context that its function was given")

// spendTask is the [Task] in which [Spend] notes what is spent.
const spendTask = "superstep.spend"

// Spend notes what an expert is about to spend, before it does: tokens of a model call, money, writes. When that is more
// than what the attempt's allowance leaves, nothing is noted, and the error is an *[OverBudgetError]: the expert returns it,
// and its subjob waits until somebody raises the job's budget. It works in everything that the expert's function calls,
// graphs and tasks included, and is remembered as a [Task] is.
//
// What was spent is the attempt's usage, unless the function returns a [job.Usage] itself. An expert that does neither
// counts as one that cannot tell: what was set aside for the attempt is charged. Spend of nothing says that it can.
//
// Errors: [ErrOutsideExpert]; [ErrBadInput] for a negative amount; those of [Task].
func Spend(ctx context.Context, u job.Usage) error {
	p, ok := ctx.Value(purseKey{}).(*purse)
	if !ok {
		return fmt.Errorf("spend: %w", ErrOutsideExpert)
	}
	if u.Tokens < 0 || u.MicroUSD < 0 || u.Writes < 0 {
		return fmt.Errorf("spend: an amount is negative: %w", ErrBadInput)
	}
	_, err := Task(ctx, spendTask, func(context.Context) (job.Usage, error) { return u, p.take(u) })
	return err
}

// OverBudgetError says that an attempt may not spend what it is about to: its allowance does not have that much left.
type OverBudgetError struct {
	Job, SubJob, Expert string
	// Wanted was to be spent on top of Spent.
	Wanted, Spent job.Usage
	Allowance     job.Budget
}

// Error implements error in one line.
func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("job %s: subjob %s: expert %s may spend %s in this attempt, has spent %s and wants %s more: raise the job's budget",
		e.Job, e.SubJob, e.Expert, amounts(e.Allowance.Tokens, e.Allowance.MicroUSD, e.Allowance.Writes),
		amounts(e.Spent.Tokens, e.Spent.MicroUSD, e.Spent.Writes), amounts(e.Wanted.Tokens, e.Wanted.MicroUSD, e.Wanted.Writes))
}

// Permanent says that no retry within the attempt helps.
func (e *OverBudgetError) Permanent() bool { return true }

func amounts(tokens, microUSD, writes int64) string {
	return fmt.Sprintf("%d tokens, %d.%06d USD, %d writes", tokens, microUSD/1e6, microUSD%1e6, writes)
}

type purseKey struct{}

// purse counts what one attempt spends.
type purse struct {
	attempt job.Assignment

	mu    sync.Mutex
	spent job.Usage
	told  bool // the expert has said what it spends
	// refused is the last amount that was too much, which the error of a nested graph's node does not carry.
	refused *OverBudgetError
}

// purseOf is the purse of an attempt as earlier executions of its task have left it.
func purseOf(t *taskrun.TaskRun, a job.Assignment) *purse {
	p := &purse{attempt: a}
	for _, e := range t.Journal().Entries() {
		var u job.Usage
		if e.Name != spendTask || e.Kind != ledger.KindTask || e.State != ledger.StateCommitted || json.Unmarshal(e.Result, &u) != nil {
			continue
		}
		p.told, p.spent = true, added(p.spent, u)
	}
	return p
}

func added(a, b job.Usage) job.Usage {
	return job.Usage{Tokens: a.Tokens + b.Tokens, MicroUSD: a.MicroUSD + b.MicroUSD, Writes: a.Writes + b.Writes,
		Unknown: a.Unknown || b.Unknown}
}

// take counts u, unless the allowance has no room for it.
func (p *purse) take(u job.Usage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	after, may := added(p.spent, u), p.attempt.Allowance
	over := func(spent, most int64) bool { return most > 0 && spent > most }
	if over(after.Tokens, may.Tokens) || over(after.MicroUSD, may.MicroUSD) || over(after.Writes, may.Writes) {
		p.refused = &OverBudgetError{Job: p.attempt.Job, SubJob: p.attempt.SubJob, Expert: p.attempt.Expert,
			Wanted: u, Spent: p.spent, Allowance: may}
		return p.refused
	}
	p.told, p.spent = true, after
	return nil
}

// settle is what an attempt ends with, its usage filled in. One whose allowance is spent ends with a message that says so.
func (p *purse) settle(m job.WorkflowMessage, err error) (job.WorkflowMessage, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil && p.refused != nil:
		return job.WorkflowMessage{Status: job.ExecutionError, OverBudget: true, Usage: p.spent,
			Evaluation: clip.Text(p.refused.Error(), job.MaxNote)}, nil
	case err != nil:
		return m, err
	case m.Usage != (job.Usage{}):
	case p.told:
		m.Usage = p.spent
	default:
		m.Usage.Unknown = true
	}
	if len(m.Output) > job.MaxOutput {
		return job.WorkflowMessage{Status: job.ExecutionError, Usage: m.Usage,
			Lesson:     "Return a shorter output, or keep it elsewhere and return an artifact that refers to it.",
			Evaluation: fmt.Sprintf("the output has %d bytes, the most is %d", len(m.Output), job.MaxOutput)}, nil
	}
	return m, nil
}
