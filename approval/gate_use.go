package approval

import (
	"context"
	"errors"
	"slices"
)

// Use says whether what was decided may be done now, right before it is: the decision is an approval of exactly this
// action and valid still, the requester and every voter are still allowed to, the keys that the votes were signed with
// were theirs and active then, as far as is known now, the voters are different people and still enough, and the policy
// still says yes. A decision that silence made, as the action's author chose, has too few voters; the policy is
// then asked without an approver.
//
// Refusals and errors are as [Gate.Reply] says.
func (g *Gate) Use(ctx context.Context, c UseCheck) (Ruling, error) {
	r := g.begin()
	err := g.use(ctx, c, &r)
	return r.settle(ctx, err)
}

func (g *Gate) use(ctx context.Context, c UseCheck, r *Ruling) error {
	if g == nil {
		return refuse(CodeUnavailable, "this worker has no gate (WorkerConfig.Gate), so it does nothing that needs an approval")
	}
	if err := checkDecision(c); err != nil {
		return err
	}
	if err := checkValidity(c.Decision, c.Action.Validity(0), r.At); err != nil {
		return err // before all that asking anew would not mend
	}
	requester, err := g.requester(ctx, c.Action)
	if err != nil {
		return err
	}
	request := PolicyRequest{
		Phase: PhaseUse, Thread: c.Thread, Graph: c.Graph, Node: c.Node, Action: c.Action, Verdict: VerdictApprove,
		Requester: requester, Votes: c.Decision.Votes,
	}
	if bySilence(c) {
		if err := g.decide(ctx, r, request); err != nil {
			return err
		}
		if r.Need > c.Action.Needs(0) {
			return refuse(CodePolicy, "the policy wants %d approvals, and silence is none", r.Need)
		}
		return checkValidity(c.Decision, r.ValidFor, r.At)
	}
	if err := g.voters(ctx, c, r, request); err != nil {
		return err
	}
	if have := len(c.Decision.Votes); have < r.Need {
		return refuse(CodePolicy, "%d approvals are needed now, and there are %d", r.Need, have)
	}
	return checkValidity(c.Decision, r.ValidFor, r.At)
}

// voters checks everybody who approved, and that they are different people.
func (g *Gate) voters(ctx context.Context, c UseCheck, r *Ruling, request PolicyRequest) error {
	asked := c.Action.Approvers
	if len(asked) > 0 {
		asked = slices.Concat(asked, c.Action.Escalate)
	}
	r.Need = c.Action.Needs(0)
	var names []string
	for _, v := range c.Decision.Votes {
		r.By, r.Token, r.KeyID = v.By, v.Token, v.KeyID
		if v.Verdict != VerdictApprove {
			return refuse(CodeMalformed, "a vote that is no approval counts among them")
		}
		if err := g.checkKey(ctx, v); err != nil {
			return err
		}
		voter, err := g.asked(ctx, v.By, asked)
		if err != nil {
			return err
		}
		if slices.Contains(names, voter.Name) {
			return refuse(CodeSamePerson, "%s approved twice: different people must", voter.Name)
		}
		names = append(names, voter.Name)
		if err := g.checkPermissions(voter, c.Action); err != nil {
			return err
		}
		request.Approver = voter
		if err := g.decide(ctx, r, request); err != nil {
			return err
		}
	}
	return nil
}

// checkKey checks that the key which a vote was signed with was the voter's and active then. That is asked now, since a key
// that somebody stole is taken away, or retired as of when it was stolen, after what they have signed with it.
func (g *Gate) checkKey(ctx context.Context, v Vote) error {
	if g.Keys == nil {
		return refuse(CodeUnavailable, "%s", noKeys)
	}
	owner, err := g.Keys.Owner(v.KeyID, v.At)
	if bad, ok := errors.AsType[*TokenError](err); ok {
		return refuse(CodeRevoked, "the key %s, with which %s approved at %s, does not count for that: %s", quote(v.KeyID), v.By, stamp(v.At), bad.Reason)
	}
	if err != nil {
		return &unreadable{what: "keys", err: err}
	}
	return g.owns(ctx, v.KeyID, owner, v.By)
}

func checkDecision(c UseCheck) error {
	d := c.Decision
	if d.Verdict != VerdictApprove || d.Question == "" || len(d.Votes) > MaxQuorum {
		return refuse(CodeMalformed, "the decision is no approval of a question")
	}
	if err := checkHash(c.Action); err != nil {
		return err
	}
	if d.ParamsHash != c.Action.ParamsHash {
		return refuse(CodeWrongHash, "other parameters were approved than those of the call")
	}
	if d.Digest != c.Action.Digest() {
		return refuse(CodeWrongRun, "another action was approved than the one that would be done now")
	}
	return nil
}

// bySilence reports whether the decision can only have come from silence: the action's author lets silence approve, and
// too few people did.
func bySilence(c UseCheck) bool {
	a := c.Action
	return a.Silence == SilenceDefault && a.Default == VerdictApprove && len(c.Decision.Votes) < a.Needs(0)
}
