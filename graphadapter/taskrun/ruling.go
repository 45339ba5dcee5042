package taskrun

import (
	"context"
	"encoding/json"
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// Reconcile is the value of the question that asks a person about an effect. The answer is an object: action is "done",
// "repeat" or "fail", or "undo" where what the outside has is not whole and the effect has a Compensate; and receipt, with
// "done", what the effect returns.
type Reconcile struct {
	// Kind is always "reconcile": it tells this question from those that nodes ask.
	Kind   string `json:"kind"`
	Ask    string `json:"ask"`
	Effect string `json:"effect"`
	Key    string `json:"key"`
	// Reason says why no program can decide.
	Reason string       `json:"reason"`
	Params pregel.Value `json:"params"`
	// Receipt is what the outside has under the key, if anything.
	Receipt pregel.Value `json:"receipt,omitempty"`
	// Calls counts the calls that were started.
	Calls int `json:"calls"`
}

// rulingSchema is the JSON schema of the answer to a [Reconcile] question.
func rulingSchema(undo bool) pregel.Value {
	action, means := "", ""
	if undo {
		action, means = `,"undo"`, "; undo: take back what the outside has of it, then stop"
	}
	return pregel.Value(`{"type":"object","additionalProperties":false,"required":["action"],"properties":{` +
		`"action":{"type":"string","enum":["done","repeat","fail"` + action + `],"description":"done: the outside has it; repeat: it ` +
		`does not have it, call again with the same key; fail: stop, the node fails` + means + `"},` +
		`"receipt":{"description":"with done: the receipt that the effect returns; without it the one that was found"}}}`)
}

// What a person can answer.
const (
	rulingDone   = "done"
	rulingRepeat = "repeat"
	rulingUndo   = "undo"
	rulingFail   = "fail"
)

// ruling is a person's answer.
type ruling struct {
	Action  string       `json:"action"`
	Receipt pregel.Value `json:"receipt"`
}

// askPerson records the doubt and asks what to do. Each answer is used once: whatever happens after it, the next doubt
// about the same effect is another question.
func (c *effectCall) askPerson(ctx context.Context) error {
	if c.reason == "" && c.finding == ledger.FindingStillNotFound && c.effect.Target == ledger.TargetLookupOnly {
		c.reason = "its worker was lost during the call and may go on with it, and the outside does not have it so far. " +
			"Make sure of that before you answer: repeat makes another call"
	}
	if c.reason == "" {
		c.reason = fmt.Sprintf("the outside says %q and the target (%s) does not make repeating safe", c.finding, c.effect.Target)
	}
	if err := c.doubt(ctx, c.entry); err != nil {
		return err
	}
	r, by, err := c.ruling(ctx)
	if err != nil {
		return err
	}
	return c.rule(ctx, r, by)
}

// ruling asks a person about the effect, and returns what that one says and who it is.
func (c *effectCall) ruling(ctx context.Context) (r ruling, by string, err error) {
	key := c.doubtKey()
	question, err := jsontext.Encode(Reconcile{
		Kind:   "reconcile",
		Ask:    fmt.Sprintf("Did %s happen? %s", c.entry.Name, c.reason),
		Effect: c.entry.Name, Key: c.entry.Key, Reason: c.reason,
		Params: showable(c.effect.Masked(c.entry.Params)), Receipt: showable(c.entry.Result), Calls: c.entry.Attempts,
	})
	if err != nil {
		return r, "", c.failed("ask a person", err)
	}
	answer, err := c.t.AskFor(ctx, pregel.Question{Key: key, About: aboutKey(key), Value: question, Schema: rulingSchema(c.undoable())})
	if err != nil {
		return r, "", err
	}
	if err := json.Unmarshal(answer.Value, &r); err != nil {
		return r, "", c.failed("read the answer", graphadapter.Permanent(err))
	}
	return r, orAPerson(answer.By), nil
}

// answered is what a person has answered to the doubt about the effect that is on record, and who; false while nobody has.
func (c *effectCall) answered() (r ruling, by string, ok bool) {
	if !c.recorded || c.entry.State != ledger.StateUnknown {
		return r, "", false
	}
	answer, ok := c.t.answers[c.t.questionID(&pregel.Question{About: aboutKey(c.doubtKey())})]
	if !ok || json.Unmarshal(answer.Value, &r) != nil {
		return r, "", false
	}
	return r, orAPerson(answer.By), true
}

// stopRuled reports whether a person has decided that the node stops, and who. That holds whatever the outside says by now.
func (c *effectCall) stopRuled() (by string, stops bool) {
	r, by, ok := c.answered()
	return by, ok && r.Action == rulingFail
}

// stop fails the node as a person has decided. A write that the outside has is put on record: a retry goes on with its receipt.
func (c *effectCall) stop(ctx context.Context, by string) error {
	ruled := c.entry.Ruled()
	why := c.entry.Evidence
	if c.finding == ledger.FindingCommitted {
		c.entry = ruled
		if err := c.commit(ctx, c.receipt, fmt.Sprintf("%s, after %s decided to stop", c.evidence, by)); err != nil {
			return err
		}
		why = "the outside has the write by now; its receipt is on record, and a retry of the run goes on with it"
	} else if err := c.record(ctx, ruled); err != nil {
		return c.failed("record the answer", err)
	}
	return c.failed("ask a person", graphadapter.Permanent(fmt.Errorf("%s decided to stop here: %s", by, why)))
}

// maxShown bounds what a question shows of parameters and of a receipt, in bytes each: it is part of the task's outcome.
const maxShown = 64 << 10

func showable(v pregel.Value) pregel.Value {
	if len(v) <= maxShown {
		return v
	}
	return pregel.Value(fmt.Sprintf(`"(%d bytes, too large to be shown here)"`, len(v)))
}

// rule does what the person decided.
func (c *effectCall) rule(ctx context.Context, r ruling, by string) error {
	ruled := c.entry.Ruled()
	switch r.Action {
	case rulingDone:
		receipt := r.Receipt
		if receipt == nil {
			receipt = c.entry.Result // the one that was found: accepted as it is
		} else if err := c.check(receipt); err != nil {
			c.reason = fmt.Sprintf("the receipt given by %s does not fit: %v", by, err)
			return c.doubt(ctx, ruled)
		}
		c.entry = ruled
		return c.commit(ctx, jsontext.OrNull(receipt), "done, says "+by)
	case rulingRepeat:
		c.entry = ruled.AnsweredFor()
		return c.call(ctx)
	case rulingUndo:
		if c.effect.Compensate != nil {
			return c.undo(ctx, by)
		}
	}
	return c.stop(ctx, by)
}
