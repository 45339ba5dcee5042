package life

import (
	"time"

	"superstep.dev/approval"
)

// Check says why a command would not be taken, for those who are to be told before it is stored; nil means that it would be,
// as far as can be known without a gate. governed says that the run is under rules for control, so that a command without a
// token is refused. Check changes nothing.
func (r *Run) Check(c Command, governed bool) error {
	c = r.meant(c)
	if _, again := r.taken(c); again {
		return nil
	}
	if a, ok := c.(Answer); ok && r.isEarly(a, false) {
		return nil
	}
	if err := r.refusal(c); err != nil {
		return err
	}
	if a, ok := c.(Answer); ok {
		return r.unproven(a, governed)
	}
	if op := c.control(r).Op; op != "" && governed && c.head().token == "" {
		return Denied(op, Unsigned(op))
	}
	return nil
}

// Free reports whether a command can be looked at: what it is about is not being changed, or answered by somebody else.
func (r *Run) Free(c Command) bool {
	switch c := r.meant(c).(type) {
	case Answer:
		return !r.stand().changing() && r.unclaimed(c)
	case Event:
		return !r.stand().changing()
	}
	return true
}

// Take takes a command in, or says what a gate is to be asked first. Its host has waited until the command is [Run.Free].
func (r *Run) Take(c Command, now time.Time) Turn { return r.begin(Turn{command: r.meant(c)}, now) }

// meant is a command as it is meant: an answer with a value that names no question is for the one that is open.
func (r *Run) meant(c Command) Command {
	a, ok := c.(Answer)
	if !ok || a.Question != "" || a.Value == nil || len(a.Answers) > 0 {
		return c
	}
	if open := r.Questions(); len(open) == 1 {
		a.Question = open[0].ID
		return a
	}
	return c
}

// TakeSilent is Take for a message whose sender gets no reply: a refusal is kept to be seen, and answers to approvals wait to
// be verified together, see [Run.Batch]. An event without room is kept all the same, since its sender was promised that it is stored;
// senders look at [State.Full] before.
func (r *Run) TakeSilent(c Command, now time.Time) Turn {
	if e, ok := c.(Event); ok {
		e.stored = true
		c = e
	}
	return r.begin(Turn{command: c, silent: true}, now)
}

func (r *Run) begin(t Turn, now time.Time) Turn {
	c := t.command
	if before, again := r.taken(c); again {
		return r.end(t, c.again(r, before), nil, now)
	}
	if err := r.refusal(c); err != nil {
		if a, ok := c.(Answer); ok && r.isEarly(a, t.silent) {
			r.State.keepEarly(a, now)
			r.look = true
			if !t.silent {
				return r.end(t, AnswerReply{Question: a.Question, Call: a.Call}, nil, now)
			}
		}
		r.refuseAnswer(c, err, 1)
		return r.end(t, nil, err, now)
	}
	if a, ok := c.(Answer); ok {
		if done, again := r.repeated(a); again {
			return r.end(t, AnswerReply{Question: done.Question, Node: done.Node, Repeated: true}, nil, now)
		}
		if len(r.gated(a)) > 0 {
			return r.beginReply(t, a, now)
		}
	}
	control := c.control(r)
	if control.Op == "" {
		return r.finish(t, Actor{Claimed: c.head().by}, now)
	}
	r.proving++
	t.Control = &Proof{Control: control, By: c.head().by, Token: c.head().token}
	return r.told(t)
}

// Ruled goes on with what a gate said. Its host has waited until the command is free again.
func (r *Run) Ruled(t Turn, word Word, now time.Time) Turn {
	if t.Verify != nil {
		return r.ruledReplies(t, word, now)
	}
	r.proving--
	by, err := r.proven(*t.Control, word.Control)
	asked := *t.Control
	t.Control = nil
	if err == nil {
		if before, again := r.taken(t.command); again {
			return r.end(t, t.command.again(r, before), nil, now)
		}
		err = r.outdated(t.command, asked.Control)
	}
	if err != nil {
		return r.end(t, nil, err, now)
	}
	r.useToken(word.Control.Token)
	return r.finish(t, by, now)
}

// proven returns who asks for something, as a gate says.
func (r *Run) proven(asked Proof, ruling approval.Ruling) (Actor, error) {
	r.once(&ruling, nil)
	actor := Actor{Claimed: asked.By, Ruling: ruling}
	if !ruling.Allowed {
		actor.Claimed = named(asked.By)
		r.trail.Refuse(EntryDenied(asked.Op, actor), 1)
		return actor, Denied(asked.Op, ruling)
	}
	return actor, nil
}

// outdated says why a command cannot be done any more, once a gate has allowed it.
func (r *Run) outdated(c Command, asked approval.Control) error {
	if err := r.refusal(c); err != nil {
		return err
	}
	if now := c.control(r); now != asked {
		return refuse(Busy, "the run has changed meanwhile, and this is not what was asked for any more: look at it")
	}
	return nil
}

func (r *Run) finish(t Turn, by Actor, now time.Time) Turn {
	reply := t.command.take(r, by, now)
	if act, ok := t.command.(Act); !ok || !act.Later {
		r.took(t.command, reply)
	}
	return r.end(t, reply, nil, now)
}

// Done notes the outcome of an [Act] that was done later than it was taken.
func (r *Run) Done(c Act, reply any) { r.took(c, reply) }

// unproven refuses, before it is stored, an answer that takes a token for control and has none. Approvals take tokens of their
// own, and are not answered together with what asks for none.
func (r *Run) unproven(a Answer, governed bool) error {
	gated := len(r.gated(a))
	switch {
	case !governed:
	case gated == 0 && a.Token == "":
		return Denied(approval.OpResume, Unsigned(approval.OpResume))
	case gated > 0 && gated < len(a.All()):
		return refuse(BadAnswer, "who answers proves it, with a token for one question: answer what asks for no approval apart")
	}
	return nil
}

// Again reports whether a command was taken before.
func (r *Run) Again(c Command) bool {
	_, again := r.taken(c)
	return again
}
