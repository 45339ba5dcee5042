package approval

import (
	"context"
	"encoding/json"
	"time"
)

// Op is what somebody does to a run from outside.
type Op string

// What can be done to a run, and put under rules.
const (
	OpPause   Op = "pause"
	OpUnpause Op = "unpause"
	OpCancel  Op = "cancel"
	OpUpdate  Op = "update" // write to its state
	OpFork    Op = "fork"   // run from an earlier checkpoint
	OpRetry   Op = "retry"
	OpDrain   Op = "drain"
	OpResume  Op = "resume" // answer a question that asks for no approval, or let the run go on
	OpEvent   Op = "event"
)

// Ops are all of them.
var Ops = []Op{OpPause, OpUnpause, OpCancel, OpUpdate, OpFork, OpRetry, OpDrain, OpResume, OpEvent}

// Control is something that is to be done to a run. A token for it is good for nothing else.
type Control struct {
	Op Op `json:"op"`
	// On is what it is about: the mode of a cancel, the checkpoint of a fork, the name of an event, the id of the question
	// that is answered ("" for several at once), and for an unpause when the run was paused ([PausedAt]): a token ends that
	// pause and no later one. "" for the others.
	On string `json:"on,omitempty"`
}

// PausedAt is the On of an unpause, of a run that was paused at that time.
func PausedAt(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// controlPrefix begins the question of a token for control, so that such a token never passes for one for an approval, nor the
// other way round. No question has such an id.
const controlPrefix = "control:"

// Claims are what a token says with which somebody asks for it on a thread; times and id are left to who signs.
func (c Control) Claims(thread, who string) Claims {
	text, _ := json.Marshal([]string{string(c.Op), c.On}) // strings always encode
	return Claims{Thread: thread, Approver: who, Question: controlPrefix + string(c.Op), ParamsHash: hash(text), Digest: hash(text)}
}

// ControlCheck asks a [Gate] whether something may be done to a run.
type ControlCheck struct {
	Thread  string  `json:"thread"`
	Graph   string  `json:"graph"`
	Control Control `json:"control"`
	// By is who the request says that it is from, "" for whoever its token names.
	By    string `json:"by,omitempty"`
	Token string `json:"token,omitempty"`
}

// ControlRequest is what a [ControlPolicy] decides on.
type ControlRequest struct {
	Thread, Graph string
	Control
	Who Person // as they are now
}

// ControlPolicy is a [Policy] that can have rules for what is done to runs, too.
type ControlPolicy interface {
	Policy
	// Controls reports whether it has such rules. Without them everybody may do everything, and nobody proves who they are.
	Controls() bool
	// DecideControl says whether somebody may. An error means that it cannot be asked, and closes the gate.
	DecideControl(ctx context.Context, r ControlRequest) (PolicyRuling, error)
}

// Governs reports whether there are rules for control: whether what is done to runs takes a token.
func (g *Gate) Governs() bool {
	if g == nil {
		return false
	}
	p, ok := g.Policy.(ControlPolicy)
	return ok && p.Controls()
}

// Control says whether something may be done to a run, as things are now: the token is for exactly this and signed by a key
// of who it names, that person is known, and the policy says yes. Where there are no rules for control everything is
// allowed, and By is set when a token proves who it is.
//
// Refusals and errors are as [Gate.Reply] says.
func (g *Gate) Control(ctx context.Context, c ControlCheck) (Ruling, error) {
	r := g.begin()
	if !g.Governs() {
		proven := r
		if g != nil && g.Keys != nil && c.Token != "" && g.holds(ctx, c, &proven) == nil {
			r = proven
		}
		return r.settle(ctx, nil)
	}
	err := g.control(ctx, c, &r)
	return r.settle(ctx, err)
}

func (g *Gate) control(ctx context.Context, c ControlCheck, r *Ruling) error {
	if g.Keys == nil {
		return refuse(CodeUnavailable, "%s", noKeys)
	}
	if c.Token == "" {
		return refuse(CodeUnsigned, "the rules say who may %s a run, and this request has no token to prove who asks", c.Control.Op)
	}
	if err := g.holds(ctx, c, r); err != nil {
		return err
	}
	who, err := g.person(ctx, r.By)
	if isUnknown(err) {
		return refuse(CodeUnknown, "the directory knows nobody of the name %s", quote(r.By))
	}
	if err != nil {
		return err
	}
	r.By = who.Name
	if r.Policy, err = g.version(ctx); err != nil {
		return err
	}
	said, err := g.Policy.(ControlPolicy).DecideControl(ctx, ControlRequest{Thread: c.Thread, Graph: c.Graph, Control: c.Control, Who: who})
	if err != nil {
		return err
	}
	return said.check()
}

// holds checks that the token proves who asks for exactly this.
func (g *Gate) holds(ctx context.Context, c ControlCheck, r *Ruling) error {
	claims, err := g.authenticate(ctx, c.Token, c.By, r)
	if err != nil {
		return err
	}
	want := c.Control.Claims(c.Thread, claims.Approver)
	switch {
	case claims.Thread != want.Thread:
		return refuse(CodeWrongThread, "the token is for another thread")
	case claims.Question != want.Question:
		return refuse(CodeWrongRun, "the token is for something else than to %s a run", c.Control.Op)
	case claims.ParamsHash != want.ParamsHash || claims.Digest != want.Digest:
		return refuse(CodeWrongRun, "the token is to %s, but not this: sign another one for how the run stands now", c.Control.Op)
	}
	return nil
}
