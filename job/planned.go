package job

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Planned takes the planner's answer. One that cannot be used, or an err that is a *[BadPlanError], costs a plan attempt;
// when the last one is gone, and with every other err, the job fails; a plan that has more subjobs than the budget alone
// allows makes it wait for a higher one instead. The draft's usage counts in every case. An answer
// that nobody waits for any more, e.g. because the job is stopping, is thrown away.
func (b *Board) Planned(d Draft, err error, now time.Time) {
	now = stamp(now)
	p := b.planning()
	if p == nil || !p.Open {
		return
	}
	p.Open, p.Cancelled = false, false
	b.spend(d.Usage, Budget{})
	switch {
	case p.Void:
		b.Plans = b.Plans[1:]
	case b.Ending != "":
		p.Attempt-- // it counts for nothing: the planner is asked anew when the job is recovered
	default:
		b.answered(p, d, err, now)
	}
	b.settle(now)
}

// planning is what is being planned, nil when nothing is.
func (b *Board) planning() *Planning {
	if len(b.Plans) == 0 {
		return nil
	}
	return b.Plans[0]
}

func (b *Board) answered(p *Planning, d Draft, err error, now time.Time) {
	if err == nil {
		err = b.checkPlan(p, d)
	}
	bad := new(BadPlanError)
	switch {
	case err == nil:
		b.propose(p, d, now)
	case !errors.As(err, &bad):
		b.planFailed(p, "no plan could be made: "+err.Error(), now)
	case p.Attempt >= b.Job.Policy.MaxPlanAttempts && bad.TooMany > b.mayPlan(p) && bad.TooMany <= p.room(b):
		b.log(now, Event{Kind: "plan_refused", SubJob: p.SubJob, Text: bad.Error()})
		p.Attempt, p.Lesson, p.Needs = 0, "", bad.TooMany
	case p.Attempt >= b.Job.Policy.MaxPlanAttempts:
		b.log(now, Event{Kind: "plan_refused", SubJob: p.SubJob, Text: bad.Error()})
		b.planFailed(p, fmt.Sprintf("no plan of %d could be used: %s", p.Attempt, bad.Error()), now)
	default:
		b.log(now, Event{Kind: "plan_refused", SubJob: p.SubJob, Text: bad.Error()})
		p.Lesson = b.note(bad.Error())
	}
}

// planFailed fails what could not be planned. It stays to be planned, for when the job is recovered.
func (b *Board) planFailed(p *Planning, reason string, now time.Time) {
	p.Attempt = 0
	if s := b.find(p.SubJob); s != nil {
		b.fail(s, reason, now)
		return
	}
	b.failing(reason)
}

// checkPlan holds a draft to what every plan has to be, and to what this one is for.
func (b *Board) checkPlan(p *Planning, d Draft) error {
	if err := CheckPlan(d, b.assignable(), b.mayPlan(p)); err != nil {
		return err
	}
	s := b.find(p.SubJob)
	if s != nil && len(d.SubJobs) == 1 {
		only := d.SubJobs[0]
		if expertOf(only.Expert, b.Experts).Name == s.Expert && sameText(only.Goal, s.Goal) {
			return badSubJob(only, "it is what was too complicated, for the same expert again: make smaller ones of it")
		}
	}
	if size := b.planSize() + b.sizeOf(s, d); size > MaxPlanText {
		return &BadPlanError{Problem: fmt.Sprintf("with it the job's subjobs take %d bytes; %d may be: make fewer subjobs, or shorter texts",
			size, MaxPlanText)}
	}
	return nil
}

func sameText(x, y string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(x), " "), strings.Join(strings.Fields(y), " "))
}

// mayPlan is how many subjobs a plan may have.
func (b *Board) mayPlan(p *Planning) int {
	may := p.room(b)
	if limit := b.Job.Budget.SubJobs; limit > 0 {
		may = min(may, int(min(limit-b.counted(), MaxSubJobs))-p.besides(b))
	}
	return max(may, 0)
}

// room is how many subjobs a plan may have whatever the budget is.
func (p *Planning) room(b *Board) int { return max(MaxSubJobs-len(b.SubJobs)-p.besides(b), 0) }

// besides is how many subjobs a plan is given that are not its own.
func (p *Planning) besides(b *Board) int {
	if p.SubJob == "" && b.Job.Policy.Synthesis != "" {
		return 1
	}
	return 0
}

// counted are the subjobs that count for Budget.SubJobs: those that were begun, and those that wait to be.
func (b *Board) counted() int64 {
	n := int64(0)
	for _, s := range b.SubJobs {
		if s.Attempts > 0 || !s.Legacy {
			n++
		}
	}
	return n
}

// propose accepts a plan, or has a person decide on it first.
func (b *Board) propose(p *Planning, d Draft, now time.Time) {
	b.PlanVersion++
	if a := b.Job.Policy.Approve; a == "all" || (a == "first" && p.SubJob == "") {
		p.Proposed, p.Lesson = &Draft{SubJobs: d.SubJobs}, ""
		b.log(now, Event{Kind: "approving", SubJob: p.SubJob, Text: fmt.Sprintf("plan %d of %d subjobs", b.PlanVersion, len(d.SubJobs))})
		return
	}
	b.accept(p, d, now)
}

// accept makes a plan that was checked part of the job.
func (b *Board) accept(p *Planning, d Draft, now time.Time) {
	b.Plans = b.Plans[1:]
	if s := b.find(p.SubJob); s != nil {
		b.replace(s, d, now)
		return
	}
	b.plant(d, now)
}

// Decide says what a person wants done with the plan that waits: see [Decision]. A decision on another plan than the one
// that waits is refused with the code wrong_plan_version, and an edited plan that cannot be used with bad_plan: the plan
// that waits stays.
func (b *Board) Decide(d Decision, now time.Time) error {
	now = stamp(now)
	if err := b.mayDecide(d); err != nil {
		return err
	}
	p := b.planning()
	switch d.Verdict {
	case "approve":
		return b.decided(p, *p.Proposed, "approved", d.By, now)
	case "edit":
		b.PlanVersion++
		if err := b.decided(p, Draft{SubJobs: d.Plan.SubJobs}, "edited", d.By, now); err != nil {
			b.PlanVersion--
			return err
		}
		return nil
	}
	p.Proposed, p.Attempt, p.Lesson = nil, 0, ""
	p.Lesson = b.note(d.Reason)
	if d.Verdict == "replan" {
		b.log(now, Event{Kind: "rejected", SubJob: p.SubJob, Text: reasoned(byWhom("to be planned again", d.By), d.Reason)})
	} else {
		reason := reasoned(byWhom("the plan was rejected", d.By), d.Reason)
		b.log(now, Event{Kind: "rejected", SubJob: p.SubJob, Text: reason})
		b.stopping(reason, now)
	}
	b.settle(now)
	return nil
}

func (b *Board) mayDecide(d Decision) error {
	if err := b.goesOn(); err != nil {
		return err
	}
	p := b.planning()
	if p == nil || p.Proposed == nil {
		return b.refuse("wrong_status", "no plan waits for a decision", "")
	}
	if d.PlanVersion != b.PlanVersion {
		return b.refuse("wrong_plan_version", fmt.Sprintf("plan %d waits, and the decision is on plan %d", b.PlanVersion, d.PlanVersion),
			"look at it and decide again")
	}
	if problem := tooLong(text{"reason", d.Reason, MaxNote}, text{"by", d.By, 256}); problem != "" {
		return b.refuse("bad_text", "the decision cannot be taken: "+problem, "")
	}
	switch d.Verdict {
	case "approve", "replan", "reject":
		return nil
	case "edit":
		if d.Plan != nil {
			return nil
		}
		return b.refuse("bad_plan", "the decision is to edit, and has no plan", "")
	}
	return b.refuse("bad_plan", fmt.Sprintf("a verdict is approve, edit, replan or reject, not %q", clip(d.Verdict, MaxID)), "")
}

// decided accepts a plan that a person wants, if it can be used.
func (b *Board) decided(p *Planning, plan Draft, kind, by string, now time.Time) error {
	if err := b.checkPlan(p, plan); err != nil {
		bad := new(BadPlanError)
		errors.As(err, &bad)
		return b.refuse("bad_plan", bad.Error(), "edit it, or have another one made")
	}
	b.log(now, Event{Kind: kind, SubJob: p.SubJob, Text: byWhom("", by)})
	b.accept(p, plan, now)
	b.settle(now)
	return nil
}
