package life

import (
	"encoding/json"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/clip"
)

// Command is something that somebody asks of a run: an [Answer], an [Event], a [Pause], a [Retry], a [Drain], a [Cancel], or an
// [Act] that a host does.
type Command interface {
	// head is under which name and id the command is recognised, and who asks with which proof.
	head() head
	// bounds says what nobody can ask of any run.
	bounds() error
	// control is what the command does to the run, for those who may have to prove that they may; no Op for nothing.
	control(r *Run) approval.Control
	// refusal says why the run cannot do it now; nil means it can. It changes nothing.
	refusal(r *Run) error
	// take does it and returns the reply.
	take(r *Run, by Actor, now time.Time) any
	// again is the reply to a command that was taken before.
	again(r *Run, before Taken) any
	// turnedDown is what is kept of a message without a reply that was not taken.
	turnedDown() Refused
}

type head struct{ name, id, by, token string }

// Taken is a command that was done, with its outcome.
type Taken struct {
	Command string          `json:"command"`
	ID      string          `json:"id"`
	Reply   json.RawMessage `json:"reply,omitempty"`
}

// The names of commands.
const (
	nameAnswer = "resume"
	nameEvent  = "event"
	namePause  = "pause"
	nameRetry  = "retry"
	nameDrain  = "drain"
	nameCancel = "cancel"
)

// maxTaken bounds the commands of one name that a run recognises. The server takes 2,000 updates for one run.
const maxTaken = 1000

// Turn is how far a command has come.
type Turn struct {
	// Control is what a gate is to be asked about who asks; nil for nothing. Verify are replies to approvals that it is to be
	// asked about.
	Control *Proof
	Verify  *Verification
	// Reply is the outcome of a command that is done: of the type that the command's comment says. Err is why it is not done,
	// a [*Refusal].
	Reply any
	Err   error
	// Actions are what the host has to do.
	Actions []Action

	command Command
	silent  bool // nobody waits for the reply
}

// Asks reports whether a gate is to be asked before anything counts.
func (t *Turn) Asks() bool { return t.Control != nil || t.Verify != nil }

// Proof asks a gate who asks for something. A Token of "" is to be ruled on too: with [Unsigned] where the run is under rules
// for control, and with a ruling that allows where it is not.
type Proof struct {
	approval.Control
	By, Token string
}

// Word is what a gate said: of a Proof, or of a Verification. Err says that none could be asked about the latter.
type Word struct {
	Control approval.Ruling
	Replies graphadapter.VerifyReply
	Err     error
}

// Check says why a command would not be taken, for those who are to be told before it is stored; nil means that it would be,
// as far as can be known without a gate. governed says that the run is under rules for control, so that a command without a
// token is refused. Check changes nothing.
func (r *Run) Check(c Command, governed bool) error {
	if _, again := r.taken(c); again {
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

func (r *Run) refusal(c Command) error {
	if err := c.bounds(); err != nil {
		return err
	}
	if len(c.head().token) > MaxTokenBytes {
		return refuse(BadRequest, "a token has at most %d bytes", MaxTokenBytes)
	}
	return c.refusal(r)
}

// Free reports whether a command can be looked at: what it is about is not being changed, or answered by somebody else.
func (r *Run) Free(c Command) bool {
	switch c := c.(type) {
	case Answer:
		return !r.of.Stand().changing() && r.unclaimed(c)
	case Event:
		return !r.of.Stand().changing()
	}
	return true
}

// Take takes a command in, or says what a gate is to be asked first. Its host has waited until the command is [Run.Free].
func (r *Run) Take(c Command, now time.Time) Turn { return r.begin(Turn{command: c}, now) }

// TakeSilent is Take for a message whose sender gets no reply: a refusal is kept to be seen, and answers to approvals wait to
// be verified together, see [Run.Batch].
func (r *Run) TakeSilent(c Command, now time.Time) Turn {
	return r.begin(Turn{command: c, silent: true}, now)
}

func (r *Run) begin(t Turn, now time.Time) Turn {
	c := t.command
	if before, again := r.taken(c); again {
		return r.end(t, c.again(r, before), nil, now)
	}
	if err := r.refusal(c); err != nil {
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
		err = r.still(t.command, asked.Control)
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

// once refuses a token that was used before, on the thread or among those here.
func (r *Run) once(ruling *approval.Ruling, here []string) {
	if ruling.Allowed && ruling.Token != "" && (contains(r.Used, ruling.Token) || contains(here, ruling.Token)) {
		ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeUsed, "the token was used before: a token counts once"
	}
}

// still says why a command cannot be done any more, once a gate has allowed it.
func (r *Run) still(c Command, asked approval.Control) error {
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

// end ends a turn.
func (r *Run) end(t Turn, reply any, err error, now time.Time) Turn {
	t.Control, t.Verify, t.Reply, t.Err = nil, nil, reply, err
	if err != nil && t.silent {
		f := t.command.turnedDown()
		f.Reason = err.Error()
		r.noteRefused(f, now)
	}
	if err != nil {
		r.flush(now, false)
	}
	return r.told(t)
}

func (r *Run) told(t Turn) Turn {
	t.Actions = r.Actions()
	return t
}

// Again reports whether a command was taken before.
func (r *Run) Again(c Command) bool {
	_, again := r.taken(c)
	return again
}

// Done notes the outcome of an [Act] that was done later than it was taken.
func (r *Run) Done(c Act, reply any) { r.took(c, reply) }

// took notes a command and its outcome.
func (r *Run) took(c Command, reply any) {
	h := c.head()
	if h.id == "" {
		return
	}
	note := Taken{Command: h.name, ID: h.id}
	if text, err := json.Marshal(reply); err == nil && reply != nil {
		note.Reply = text
	}
	count, first := 0, -1
	for i, t := range r.State.Taken {
		if t.Command == h.name {
			if count++; first < 0 {
				first = i
			}
		}
	}
	all := append(r.State.Taken[:len(r.State.Taken):len(r.State.Taken)], note)
	if count >= maxTaken {
		all = append(all[:first], all[first+1:]...)
	}
	r.State.Taken = all
}

// taken finds a command that was done before.
func (r *Run) taken(c Command) (Taken, bool) {
	h := c.head()
	return r.State.find(h.name, h.id)
}

func (s *State) find(name, id string) (Taken, bool) {
	for _, t := range s.Taken {
		if id != "" && t.Command == name && t.ID == id {
			return t, true
		}
	}
	return Taken{}, false
}

// read reads the reply of a command that was taken.
func read[R any](t Taken) (reply R) {
	_ = json.Unmarshal(t.Reply, &reply) // it was written by took
	return reply
}

// isRepeat reports whether a call repeats what was taken, rather than being the call that was: the server may bring that
// again, when its outcome was lost. Who does not name calls is told that a command was taken before.
func isRepeat(call, taken string) bool { return call == "" || call != taken }

// named is a name that somebody sent, as far as it is repeated.
func named(s string) string { return clip.Text(s, MaxNameBytes) }

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}
