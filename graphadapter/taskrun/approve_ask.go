package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
)

// ApprovalSummary is the value of the question that asks for an approval: enough for whoever knows nothing of approvals.
// The action itself is in the question's Approval.
type ApprovalSummary struct {
	// Kind is always "approval".
	Kind string `json:"kind"`
	// Ask is the action's summary.
	Ask  string        `json:"ask"`
	Tool string        `json:"tool,omitempty"`
	Risk approval.Risk `json:"risk,omitempty"`
}

// noEditSchema is approval.ReplySchema without "edit".
var noEditSchema = pregel.Value(`{"type":"object","additionalProperties":false,"required":["verdict"],"properties":{` +
	`"verdict":{"type":"string","enum":["approve","reject"],"description":"approve: do exactly this; reject: do not"},` +
	`"reason":{"type":"string","maxLength":1000,"description":"for the record"}}}`)

// ask asks this round's question and returns the answer. It reports false when the question was asked about another
// action, which nobody has decided on: a question that people see does not change under them.
func (a *approving) ask(ctx context.Context, action approval.Action) (d approval.Decision, open bool, err error) {
	id := a.question(a.round)
	before, known := a.asked(id)
	if known && before.Digest() != action.Digest() && !a.t.answered(id) {
		a.again(id, before.Params, changes(before, action))
		return d, false, nil
	}
	if known && before.Digest() == action.Digest() {
		action.Before = before.Before
	}
	q, err := a.questionAbout(action)
	if err != nil {
		return d, false, a.failed(err)
	}
	answer, err := a.t.AskFor(ctx, q)
	if errors.Is(err, graphadapter.ErrInterrupted) && !known {
		if failed := a.t.Journal().Record(ctx, a.entry(id, action)); failed != nil {
			return d, false, failed
		}
	}
	if err != nil {
		return d, false, err
	}
	d, err = a.decisionOf(answer)
	return d, true, err
}

func (a *approving) questionAbout(action approval.Action) (pregel.Question, error) {
	q := pregel.Question{Key: a.roundKey(a.round), Schema: approval.ReplySchema}
	if a.noEdit {
		q.Schema = noEditSchema
	}
	var err error
	if q.Approval, err = jsontext.Encode(action); err != nil {
		return q, err
	}
	q.Value, err = jsontext.Encode(ApprovalSummary{Kind: "approval", Ask: action.Summary, Tool: action.Tool, Risk: action.Risk})
	return q, err
}

func (a *approving) roundKey(round int) string { return a.key + "/" + strconv.Itoa(round) }

func (a *approving) question(round int) string { return a.t.info.questionID(a.roundKey(round)) }

// answered reports whether a question has its answer.
func (a *attempt) answered(question string) bool {
	_, ok := a.answers[question]
	return ok
}

func (a *approving) entryKey(question string) string {
	return a.t.hash("approval", question)[:ledger.KeyLength]
}

// entry is what the task remembers of a question: without it nobody could tell what has changed since.
func (a *approving) entry(question string, action approval.Action) ledger.Entry {
	e := ledger.Entry{Key: a.entryKey(question), Name: action.Tool, Kind: ledger.KindApproval, State: ledger.StateIntent, Attempts: 1}
	if len(action.Params) > maxRemembered {
		action.Params = nil
	}
	e.Params, _ = jsontext.Encode(action) // the question was encoded before
	return e
}

// maxRemembered bounds the parameters that a task's ledger keeps of a question, in bytes; of larger ones the hash is kept.
const maxRemembered = 8 << 10

// asked returns the action that a question was asked about, false when that is not known.
func (a *approving) asked(question string) (action approval.Action, known bool) {
	e, ok := a.t.journal.Entry(a.entryKey(question))
	if !ok || e.Params == nil {
		return action, false
	}
	return action, json.Unmarshal(e.Params, &action) == nil
}

// again goes on to a question about what would be done now.
func (a *approving) again(question string, params pregel.Value, changed []string) {
	a.before = &approval.Before{Question: question, Params: params, Changed: changed}
}
