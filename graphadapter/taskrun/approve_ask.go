package taskrun

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
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
	key := a.roundKey(a.round)
	q := pregel.Question{Key: key, About: aboutKey(key), Schema: approval.ReplySchema}
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

func (a *approving) question(round int) string {
	return a.t.info.questionID(aboutKey(a.roundKey(round)))
}

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

// approving is one action on its way to a decision, question by question.
type approving struct {
	t      *TaskRun
	key    string // of its questions, without the round
	noEdit bool
	// with returns the action as it would be done with these parameters, nil for those proposed first.
	with func(params pregel.Value) (approval.Action, error)
	// canonical returns other parameters in the tool's own form; nil takes them as they are.
	canonical func(params pregel.Value) (pregel.Value, error)

	round  int
	params pregel.Value // that somebody proposed last; nil for none
	note   string       // why the question is not the first, for its summary
	before *approval.Before
	// proposers are all who have proposed parameters so far, whether or not those are still what is asked about.
	proposers []string
}

// findPlace sets the key of a request that has none: of the place among the scope's approvals where the same action was asked about, else of
// the first one where an action of the same tool was, which has changed since, or where none was.
func (a *approving) findPlace() error {
	action, err := a.action()
	if err != nil {
		return a.failed(err)
	}
	a.t.countMu.Lock()
	defer a.t.countMu.Unlock()
	place := func(n int) string { return "approve/" + a.t.scope + "/" + strconv.Itoa(n) }
	chosen := -1
	for n := 0; ; n++ {
		if a.key = place(n); a.t.approvals[n] {
			continue
		}
		first := a.question(0)
		if _, any := a.t.journal.Entry(a.entryKey(first)); !any {
			if chosen < 0 {
				chosen = n
			}
			break
		}
		before, known := a.asked(first)
		if known && before.Digest() == action.Digest() {
			chosen = n
			break
		}
		if chosen < 0 && (!known || before.Tool == action.Tool) {
			chosen = n
		}
	}
	if a.t.approvals == nil {
		a.t.approvals = map[int]bool{}
	}
	a.t.approvals[chosen], a.key = true, place(chosen)
	return nil
}

// action is what would be done now, as it is asked about in this round.
func (a *approving) action() (approval.Action, error) {
	action, err := a.with(a.params)
	if err != nil {
		return action, err
	}
	if action.Requester == "" {
		action.Requester = a.t.env.Requester
	}
	if action.Params, err = jsontext.Compact(action.Params); err != nil {
		return action, fmt.Errorf("its parameters are not JSON: %w", err)
	}
	if a.note != "" {
		action.Summary = noted(action.Summary, a.note)
	}
	if len(action.Watch) == 0 {
		action.Watch = nil // as it is once it was stored
	}
	action.Tool = cmp.Or(action.Tool, a.t.info.Node)
	if action.Before = nil; a.before != nil {
		before := *a.before
		before.Proposers = a.proposers
		action.Before = &before
	}
	return action.Normal()
}

// edited goes on with the parameters that somebody proposed, unless the action cannot be done with them.
func (a *approving) edited(action approval.Action, d approval.Decision) {
	by := lastVoter(d)
	if by != "" && !slices.Contains(a.proposers, by) {
		a.proposers = append(slices.Clip(a.proposers), by)
	}
	a.before = &approval.Before{Question: d.Question, By: by, Params: action.Params, Changed: []string{"params"}}
	params, err := jsontext.OrNull(d.Params), error(nil)
	if a.canonical != nil {
		params, err = a.canonical(params)
	}
	if err == nil {
		_, err = a.with(params)
	}
	if err != nil {
		a.before.Params = d.Params
		a.note = fmt.Sprintf("the other parameters that %s proposed do not fit: %v", orSomebody(by), err)
		return
	}
	a.params, a.note = params, "with other parameters, proposed by "+orSomebody(by)
}

// noted puts a remark behind a summary, which stays one line.
func noted(summary, note string) string {
	note = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, clip.Text(note, approval.MaxSummary/2))
	return clip.Text(summary, approval.MaxSummary-len(note)-3) + " (" + note + ")"
}

func lastVoter(d approval.Decision) string {
	if len(d.Votes) == 0 {
		return ""
	}
	return d.Votes[len(d.Votes)-1].By
}

func orSomebody(by string) string {
	if by == "" {
		return "somebody"
	}
	return by
}

func (a *approving) failed(err error) error {
	i := a.t.info
	return graphadapter.Permanent(fmt.Errorf("node %q of graph %q, thread %q: the approval that it asks for: %w", i.Node, i.Graph, i.Thread, err))
}

// decisionOf reads the answer to an approval's question. Whatever else got in is no decision.
func (a *approving) decisionOf(answer pregel.Answer) (approval.Decision, error) {
	var d approval.Decision
	err := json.Unmarshal(answer.Value, &d)
	if err == nil && (d.Question != answer.QuestionID || d.Digest == "") {
		err = fmt.Errorf("it is no decision about this question: approvals are answered with approve, reject or edit")
	}
	if err != nil {
		i := a.t.info
		return d, &graphadapter.AnswerError{Graph: i.Graph, Node: i.Node, Thread: i.Thread, Question: answer.QuestionID,
			Want: "a decision that a gate allowed", Err: err}
	}
	return d, nil
}
