package job

import (
	"errors"
	"fmt"
	"time"
)

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
	case "replan":
		p.Proposed, p.Attempt, p.Lesson = nil, 0, ""
		p.Lesson = b.note(d.Reason)
		b.tell(now, Event{Kind: "rejected", SubJob: p.SubJob, Text: reasoned(byWhom("to be planned again", d.By), d.Reason)})
	case "reject":
		p.Proposed, p.Attempt, p.Lesson = nil, 0, ""
		p.Lesson = b.note(d.Reason)
		reason := reasoned(byWhom("the plan was rejected", d.By), d.Reason)
		b.tell(now, Event{Kind: "rejected", SubJob: p.SubJob, Text: reason})
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
	b.tell(now, Event{Kind: kind, SubJob: p.SubJob, Text: byWhom("", by)})
	b.accept(p, plan, now)
	b.settle(now)
	return nil
}
