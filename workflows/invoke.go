package workflows

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// invocation is what a run that rests is to do next, as a command. With may it is tried before it is taken: its validator does
// that, and who had to wait for a gate does it again.
func (r *run) invocation(req protocol.InvokeRequest, may bool) life.Act {
	act := life.Act{Name: protocol.UpdateInvoke, ID: req.ID, By: req.Asked.By, Token: req.Asked.Token}
	if may {
		act.May = func() error { return r.invokeRefusal(req) }
	}
	control, err := r.invokeControl(req)
	if act.What = control; err != nil {
		act.May = func() error { return err }
	}
	act.Do = func(by life.Actor) any {
		req.Asked = req.Asked.ProvenBy(by)
		r.inbox.invoke = &req
		return nil
	}
	return act
}

// invokeControl is what an invocation does to the run, for those who may have to prove that they may; none for new input.
func (r *run) invokeControl(req protocol.InvokeRequest) (approval.Control, error) {
	thread, err := r.earlier(req.State)
	if err != nil {
		return approval.Control{}, r.refuseBad("", err)
	}
	b := r.beginning(thread, pregel.Input(req.Input), req.State != nil, r.failure != nil)
	return oneControl(b.Ops(!r.nothingLeft()), req.Asked.Token)
}

// oneControl is the one thing that is asked for. Where tokens are taken, which are for one thing each, several are refused.
func oneControl(ops []approval.Control, token string) (approval.Control, error) {
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
	if r.life.State.Paused != nil {
		return protocol.Refuse(protocol.ErrTypeBusy, "%s", r.life.PausedBy())
	}
	if !r.standing() || r.waiting() || r.inbox.changing() {
		return protocol.Refuse(protocol.ErrTypeBusy, "the run is under way: wait until it waits or ends, or cancel it")
	}
	thread, err := r.earlier(req.State)
	if err != nil {
		return r.refuseBad("", err)
	}
	for _, a := range life.AnswersTo(r.program.OpenQuestions(thread), req.Input.Resume) {
		for _, q := range r.program.OpenQuestions(thread) {
			if q.ID != a.QuestionID {
				continue
			}
			if err := life.InputRefusal(q, a.Value); err != nil {
				return err
			}
		}
	}
	tried := engine{in: r.in}
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
