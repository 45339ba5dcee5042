package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/trail"
	"superstep.dev/workflows/protocol"
)

// onInvoke takes in what a run that rests is to do next.
func (r *run) onInvoke(ctx workflow.Context, req protocol.InvokeRequest) error {
	if r.inbox.taken.Again(protocol.UpdateInvoke, req.ID, nil) {
		return nil
	}
	control, err := r.invokeControl(req)
	if err != nil {
		return err
	}
	by := trail.Actor{Claimed: nameOf(req.Asked)}
	if control.Op != "" {
		by, err = r.proven(ctx, request{Control: control, by: nameOf(req.Asked), token: tokenOf(req.Asked),
			still: func() error { return r.invokeRefusal(req) }})
	}
	if err != nil {
		return err
	}
	req.Asked = provenBy(req.Asked, by)
	r.inbox.taken.Took(protocol.UpdateInvoke, req.ID, nil)
	r.inbox.invoke = &req
	return nil
}

// invokeControl is what an invocation does to the run, for those who may have to prove that they may; none for new input.
func (r *run) invokeControl(req protocol.InvokeRequest) (approval.Control, error) {
	thread, err := r.earlier(req.State)
	if err != nil {
		return approval.Control{}, r.refuseBad("", err)
	}
	b := trail.Beginning{Failed: r.failure != nil, Input: pregel.Input(req.Input)}
	if req.State != nil {
		b.Checkpoint = headID(thread)
	}
	for _, a := range r.answersTo(thread, req.Input.Resume) {
		b.Answered = append(b.Answered, a.QuestionID)
	}
	return r.oneControl(b.Ops(!r.nothingLeft()), tokenOf(req.Asked))
}

// oneControl is the one thing that is asked for. Where tokens are taken, which are for one thing each, several are refused.
func (r *run) oneControl(ops []approval.Control, token string) (approval.Control, error) {
	switch {
	case len(ops) == 0:
		return approval.Control{}, nil
	case len(ops) > 1 && token != "":
		return approval.Control{}, protocol.Refuse(protocol.ErrTypeBadUpdate, "a token is for one thing, and this is to %s and to %s: do one after the other",
			ops[0].Op, ops[1].Op)
	}
	return ops[0], nil
}

// invokeRefusal says why a run cannot take new input now. It tries the input on a copy of the thread, so that a run
// never ends with an input half taken that its engine refuses at once. It changes nothing.
func (r *run) invokeRefusal(req protocol.InvokeRequest) error {
	if err := boundedInvoke(req); err != nil {
		return err
	}
	if err := boundedAsked(req.Asked); err != nil {
		return err
	}
	if r.paused != nil {
		return protocol.Refuse(protocol.ErrTypeBusy, "%s", r.pausedBy())
	}
	if !r.standing() || r.inbox.waiting() || r.inbox.changing() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is under way: wait until it waits or ends, or cancel it")
	}
	thread, err := r.earlier(req.State)
	if err != nil {
		return r.refuseBad("", err)
	}
	for _, a := range r.answersTo(thread, req.Input.Resume) {
		for _, q := range r.program.OpenQuestions(thread) {
			if q.ID != a.QuestionID {
				continue
			}
			if q.Event != "" {
				return eventOnly(q)
			}
			if q.Approval != nil {
				return gateOnly(q)
			}
			if err := unfit(q.Question, a.Value); err != nil {
				return err
			}
		}
	}
	tried := run{in: r.in}
	if req.Settings != nil {
		tried.in.Set(*req.Settings)
	}
	loop, err := r.program.Start(thread, pregel.Input(req.Input), tried.options(), req.State != nil, nil)
	if err == nil && loop.Status() == pregel.StatusFailed {
		err = loop.Err()
	}
	if err != nil {
		return r.refuseBad("", err)
	}
	return nil
}

// answersTo are the answers in resume to questions of the thread that are open; others answer nothing.
func (r *run) answersTo(thread *pregel.Thread, resume *pregel.Resume) []pregel.Answer {
	if resume == nil {
		return nil
	}
	given := make([]pregel.Answer, 0, len(resume.Answers)+len(resume.ByID))
	for i, q := range r.program.OpenQuestions(thread) {
		if value, ok := resume.ByID[q.ID]; ok {
			given = append(given, pregel.Answer{QuestionID: q.ID, Value: value, By: resume.By})
		}
		for _, a := range resume.Answers {
			if a.QuestionID == q.ID {
				given = append(given, a)
			}
		}
		if i == 0 && resume.Scalar != nil {
			given = append(given, pregel.Answer{QuestionID: q.ID, Value: resume.Scalar, By: resume.By})
		}
	}
	return given
}
