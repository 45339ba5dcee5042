package taskrun

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/clip"
	"superstep.dev/internal/jsontext"
)

// MaxApprovalRounds bounds how often one action is asked about: the first time, and anew after each edit or drift.
const MaxApprovalRounds = 20

// ApprovalRequest asks for the approval of an action.
type ApprovalRequest struct {
	Action approval.Action
	// Key replaces the ordinal among the approvals of the scope: requests with one key are the same request.
	Key string
	// NoEdit says that nobody can propose other parameters: whoever asks could not go on with them.
	NoEdit bool
}

// Approve returns what was decided about an action, of which it sets ParamsHash, Before and, when they are empty, Tool (the
// node's name) and Requester. While nobody has decided it records the question and returns [ErrInterrupted], as [TaskRun.AskFor] does.
//
// Other parameters that somebody proposes are a new question, and so is an action that is not what was approved any
// more, when its Drift says so; otherwise that is a [*DriftError]. Right before Approve returns an approval the
// environment's gate is asked whether it may be acted upon: if not, the error is a [*NotAllowedError]. A rejection is a
// decision, and so is a silence that denies. An approval that does not count any more, since it has lapsed, say, is asked for
// anew. Decision.Params are set when they are not the action's own.
//
// The action has to be the same each time that the node runs: one that changes is asked about anew, at most
// [MaxApprovalRounds] times.
func (t *TaskRun) Approve(ctx context.Context, r ApprovalRequest) (approval.Decision, error) {
	key := "approve/key/" + r.Key
	if r.Key == "" {
		key = "approve/" + t.scope + "/" + t.next("approve")
	}
	asks := approving{t: t, key: key, noEdit: r.NoEdit, with: func(params pregel.Value) (approval.Action, error) {
		a := r.Action
		if params != nil {
			a.Params = params
		}
		return a, nil
	}}
	decision, err := asks.decide(ctx)
	if err != nil || decision.Verdict != approval.VerdictApprove {
		return decision, err
	}
	return decision, asks.recordUse(ctx, decision)
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

// decide goes through the rounds until one is decided, or has no answer yet. With VerdictApprove the decision may be
// acted upon now.
func (a *approving) decide(ctx context.Context) (approval.Decision, error) {
	for a.round = 0; a.round < MaxApprovalRounds; a.round++ {
		action, err := a.action()
		if err != nil {
			return approval.Decision{}, a.failed(err)
		}
		decision, open, err := a.ask(ctx, action)
		if err != nil {
			return approval.Decision{}, err
		}
		if !open {
			continue // it is another action by now, which nobody had decided on
		}
		decided := false
		switch decision.Verdict {
		case approval.VerdictEdit:
			a.edited(action, decision)
		case approval.VerdictApprove:
			decided, err = a.approved(ctx, action, decision)
		default:
			decided = true
		}
		if decided || err != nil {
			decision.Params = a.params
			return decision, err
		}
	}
	return approval.Decision{}, a.failed(fmt.Errorf("it was asked about %d times, each time anew since the "+
		"action had changed or its approval did not count any more: compute the action from the state, or in a Task, so that it is "+
		"the same each time the node runs", MaxApprovalRounds))
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
