package life

import (
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
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
}

type head struct{ name, id, by, token string }

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

func (r *Run) refusal(c Command) error {
	if err := c.bounds(); err != nil {
		return err
	}
	if len(c.head().token) > MaxTokenBytes {
		return refuse(BadRequest, "a token has at most %d bytes", MaxTokenBytes)
	}
	return c.refusal(r)
}

// once refuses a token that was used before, on the thread or among those here.
func (r *Run) once(ruling *approval.Ruling, here []string) {
	if ruling.Allowed && ruling.Token != "" && (contains(r.Used, ruling.Token) || contains(here, ruling.Token)) {
		ruling.Allowed, ruling.Code, ruling.Reason = false, approval.CodeUsed, "the token was used before: a token counts once"
	}
}

// end ends a turn.
func (r *Run) end(t Turn, reply any, err error, now time.Time) Turn {
	t.Control, t.Verify, t.Reply, t.Err = nil, nil, reply, err
	if err != nil && t.silent {
		h := t.command.head()
		f := Refused{Question: h.name, By: named(h.by), Reason: err.Error()}
		switch c := t.command.(type) {
		case Answer:
			f.Question = named(c.Question)
		case Event:
			f.Question, f.Event = "", named(c.Name)
		}
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

// took notes a command and its outcome.
func (r *Run) took(c Command, reply any) {
	h := c.head()
	r.State.Taken.Took(h.name, h.id, reply)
}

// taken finds a command that was done before.
func (r *Run) taken(c Command) (Taken, bool) {
	h := c.head()
	return r.State.Taken.Find(h.name, h.id)
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

// Verification are replies to approvals that a gate is asked about. Nobody else answers their questions meanwhile.
type Verification struct {
	// Request is what the gate is asked.
	Request graphadapter.VerifyRequest

	all   []*verified
	waits []WaitingReply // those that nobody waits for, one for each of all
	claim *claim
}

// verified is a request whose answers to approvals are verified, and what a gate said of each.
type verified struct {
	req     Answer
	answers []pregel.Answer
	asked   []openApproval
	replies []approval.Reply
	rulings []approval.Ruling
}
