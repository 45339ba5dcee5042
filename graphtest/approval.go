package graphtest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// allowed is the gate of a test: what its answers approve may be acted upon.
func allowed(context.Context, approval.UseCheck) (approval.Ruling, error) {
	return approval.Ruling{Allowed: true}, nil
}

// actionOf is the action that a question asks to approve.
func actionOf(q pregel.Question) (a approval.Action, err error) {
	if err := json.Unmarshal(q.Approval, &a); err != nil {
		return a, fmt.Errorf("the action of the question %s cannot be read: %w", q.Value, err)
	}
	return a, nil
}

// decided is what a task gets for an answer to its question: of an approval the decision that as many people as it takes
// make by saying so.
func decided(q pregel.Question, answer pregel.Value) (pregel.Value, error) {
	if q.Approval == nil {
		return answer, graphadapter.CheckAnswer(q, answer)
	}
	action, err := actionOf(q)
	if err != nil {
		return nil, err
	}
	var said approval.Decision // or an approval.Reply, which has the same fields
	if json.Unmarshal(answer, &said.Verdict) != nil {
		if err := json.Unmarshal(answer, &said); err != nil {
			return nil, fmt.Errorf("the answer %s to the approval %s: give an approval.Verdict, Reply or Decision: %w", answer, q.Value, err)
		}
	}
	if said.Verdict == approval.VerdictExpired {
		d := action.Silent(q.ID, nil, time.Now())
		d.Verdict = said.Verdict
		return json.Marshal(d)
	}
	reply, err := json.Marshal(approval.Reply{Verdict: said.Verdict, Params: said.Params, Reason: said.Reason})
	if err == nil {
		err = graphadapter.CheckAnswer(q, reply)
	}
	if err != nil {
		return nil, err
	}
	votes := said.Votes
	for n := len(votes); n < action.Needs(0); n++ {
		votes = append(votes, approval.Vote{By: fmt.Sprintf("graphtest-%d", n+1), Verdict: said.Verdict, Reason: said.Reason, At: time.Now()})
		if said.Verdict != approval.VerdictApprove {
			break
		}
	}
	d, _ := action.Decide(q.ID, votes, 0, said.Params)
	return json.Marshal(d)
}
