package approval

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Reply says whether a reply counts. It checks, in this order, and the first that fails decides: the reply's shape; the
// token, whose key signed it, its times, who the reply says that it is from, what it is bound to, and that it has not
// counted before; that the approver is
// among those who are asked, and has the permissions now; that the requester has them now; the tool's version; the
// policy; that the approver has not voted before, unless that vote does not count any more. A rejection does no harm, so it is not held to the requester's permissions and the tool's version.
//
// A refusal is a Ruling, and so is a policy or directory that cannot be asked ([CodeUnavailable]). The error is that of
// a context that is over.
func (g *Gate) Reply(ctx context.Context, c ReplyCheck) (Ruling, error) {
	r := g.begin()
	err := g.reply(ctx, c, &r)
	return r.settle(ctx, err)
}

func (g *Gate) reply(ctx context.Context, c ReplyCheck, r *Ruling) error {
	if g == nil || g.Keys == nil {
		return refuse(CodeUnavailable, "%s", noKeys)
	}
	if err := c.Reply.Check(); err != nil {
		return refuse(CodeBadReply, "%s", err)
	}
	claims, err := g.authenticate(ctx, c.Token, c.By, r)
	if err != nil {
		return err
	}
	proposed, err := c.Proposed()
	if err != nil {
		return refuse(CodeBadReply, "%s", err)
	}
	if err := checkBinding(claims, c, proposed); err != nil {
		return err
	}
	if err := checkToken(claims.ID, c.Votes); err != nil {
		return err
	}
	approver, err := g.asked(ctx, claims.Approver, c.Asked)
	if err != nil {
		return err
	}
	r.By = approver.Name // the directory may know somebody by several names
	if err := g.checkPermissions(approver, c.Action); err != nil {
		return err
	}
	requester, err := g.requester(ctx, c.Action)
	if err != nil && c.Reply.Verdict != VerdictReject {
		return err
	}
	if now := c.ToolVersion; now != "" && now != c.Action.ToolVersion && c.Reply.Verdict != VerdictReject {
		return refuse(CodeToolVersion, "version %s of %s was asked about, and it is version %s now: ask anew",
			quote(c.Action.ToolVersion), c.Action.Tool, quote(now))
	}
	request := PolicyRequest{
		Phase: PhaseAnswer, Thread: c.Thread, Graph: c.Graph, Node: c.Node, Action: c.Action, Verdict: c.Reply.Verdict,
		Approver: approver, Requester: requester,
	}
	if request.Votes, err = g.signed(ctx, c.Votes, r); err != nil {
		return err
	}
	if request.Votes, err = g.stillAllowed(ctx, c, request, r); err != nil {
		return err
	}
	votes := request.Votes
	if err := g.decide(ctx, r, request); err != nil {
		return err
	}
	standing, _ := r.Standing(votes) // somebody whose approval has lapsed may give it again
	r.Params = proposed
	return checkVotes(approver.Name, standing)
}

const noKeys = "this worker has no keys to verify approvals with: whoever runs it has to start it with --approval-keys FILE, the public keys " +
	"of who approves (superstep signing-key NAME makes a pair)"

// authenticate returns what a token claims when its signature is good, its key signs for the approver, it is valid now,
// and whoever sends it says to be nobody else. It sets who the ruling is about, as far as that is proven.
func (g *Gate) authenticate(ctx context.Context, token, by string, r *Ruling) (Claims, error) {
	claims, err := g.verify(token)
	if err != nil {
		return Claims{}, err
	}
	r.Token, r.KeyID = claims.ID, claims.KeyID
	if err := g.owns(ctx, claims.KeyID, claims.Owner, claims.Approver); err != nil {
		return Claims{}, err
	}
	r.By = claims.Approver
	if err := g.checkTimes(claims, r.At); err != nil {
		return Claims{}, err
	}
	if by != "" && by != claims.Approver {
		return Claims{}, refuse(CodeWrongPerson, "the reply says that it is from %s, and its token is %s's: say who answers, or nobody",
			quote(by), claims.Approver)
	}
	return claims, nil
}

// verify returns what the token claims when its signature is good.
func (g *Gate) verify(token string) (Claims, error) {
	if token == "" {
		return Claims{}, refuse(CodeUnsigned, "an approval is answered with a signed token, and this reply has none")
	}
	claims, err := g.Keys.Verify(token)
	var bad *TokenError
	switch {
	case errors.As(err, &bad) && oneOf(bad.Code, CodeMalformed, CodeSignature, CodeRetiredKey):
		return Claims{}, refuse(bad.Code, "%s", bad.Reason)
	case err != nil:
		return Claims{}, &unreadable{what: "keys", err: err}
	case claims.ID == "" || claims.Approver == "" || claims.KeyID == "":
		return Claims{}, refuse(CodeMalformed, "the token names no approver or no key, or has no id")
	}
	return claims, nil
}

func (g *Gate) checkTimes(c Claims, now time.Time) error {
	leeway := g.Leeway
	if leeway == 0 {
		leeway = DefaultLeeway
	}
	leeway = max(leeway, 0)
	switch {
	case !c.ExpiresAt.After(c.IssuedAt) || c.ExpiresAt.Sub(c.IssuedAt) > MaxTokenLife:
		return refuse(CodeMalformed, "a token is valid for more than nothing and at most %s", MaxTokenLife)
	case now.Add(leeway).Before(c.IssuedAt):
		return refuse(CodeExpired, "the token is valid from %s, and it is %s here: sign another one, or set the clocks",
			stamp(c.IssuedAt), stamp(now))
	case !now.Add(-leeway).Before(c.ExpiresAt):
		return refuse(CodeExpired, "the token was valid until %s, and it is %s here: sign another one", stamp(c.ExpiresAt), stamp(now))
	}
	return nil
}

// checkBinding compares what the token is for with what is asked. The parameters are hashed here: nobody's word is taken
// for what their hash is.
func checkBinding(claims Claims, c ReplyCheck, proposed json.RawMessage) error {
	if claims.Thread != c.Thread {
		return refuse(CodeWrongThread, "the token is for another thread")
	}
	if claims.Question != c.Question {
		return refuse(CodeWrongRun, "the token is for another question: read the open one and sign for it")
	}
	if err := checkHash(c.Action); err != nil {
		return err
	}
	if claims.ParamsHash != c.Action.ParamsHash {
		return refuse(CodeWrongHash, "the token is for other parameters: read the question again and sign for what it shows now")
	}
	if claims.Digest != c.Action.Digest() {
		return refuse(CodeWrongRun, "the token is for another action with the same parameters: read the question again")
	}
	if c.Reply.Verdict != VerdictEdit {
		return nil
	}
	if hash, err := HashParams(proposed); err == nil && hash == c.Action.ParamsHash {
		return refuse(CodeBadReply, "the parameters proposed are those that were asked about: approve them, or propose others")
	}
	return nil
}

func checkHash(a Action) error {
	if err := a.Check(); err != nil {
		return refuse(CodeMalformed, "%s", err)
	}
	if now, err := HashParams(a.Params); err != nil || now != a.ParamsHash {
		return refuse(CodeWrongHash, "the parameters of %s are not those that their hash is of", a.Tool)
	}
	return nil
}

func checkToken(token string, votes []Vote) error {
	if len(votes) > MaxQuorum {
		return refuse(CodeMalformed, "a question takes at most %d approvals", MaxQuorum)
	}
	if slices.ContainsFunc(votes, func(v Vote) bool { return v.Token == token }) {
		return refuse(CodeUsed, "the token was used before: a token is good for one reply")
	}
	return nil
}

func checkVotes(by string, votes []Vote) error {
	if slices.ContainsFunc(votes, func(v Vote) bool { return v.By == by }) {
		return refuse(CodeAlreadyGiven, "%s has answered already: another person must", by)
	}
	return nil
}

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
		return refuse(CodeUnavailable, "this worker checks no approvals, so it does nothing that needs one: whoever runs it has to start it with --approval-keys FILE")
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

// everAsked are the people and groups who are asked, or would be when nobody has answered; none means that the policy says who.
func (a Action) everAsked() []string {
	if len(a.Approvers) == 0 {
		return nil
	}
	return slices.Concat(a.Approvers, a.Escalate)
}

// voters checks everybody who approved, and that they are different people.
func (g *Gate) voters(ctx context.Context, c UseCheck, r *Ruling, request PolicyRequest) error {
	asked := c.Action.everAsked()
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

// signed returns the votes of before whose keys count now, and sets which are revoked.
func (g *Gate) signed(ctx context.Context, votes []Vote, r *Ruling) (count []Vote, err error) {
	for _, v := range votes {
		var refused *refusal
		switch err := g.checkKey(ctx, v); {
		case errors.As(err, &refused):
			r.Revoked = append(r.Revoked, v.Token)
		case err != nil:
			return nil, err
		default:
			count = append(count, v)
		}
	}
	return count, nil
}

// stillAllowed returns the votes among those of a request that their voters could cast now, and sets which are lost. What is decided with a
// vote that does not count would be refused right before it is done, when nobody is asked any more.
func (g *Gate) stillAllowed(ctx context.Context, c ReplyCheck, request PolicyRequest, r *Ruling) (count []Vote, err error) {
	for _, v := range request.Votes {
		var refused *refusal
		switch err := g.mayVote(ctx, c, request, v, r.At); {
		case errors.As(err, &refused) && refused.code != CodeUnavailable:
			r.Lost = append(r.Lost, v.Token)
		case err != nil:
			return nil, err
		default:
			count = append(count, v)
		}
	}
	return count, nil
}

// mayVote checks that the voter of an earlier vote could cast it now.
func (g *Gate) mayVote(ctx context.Context, c ReplyCheck, request PolicyRequest, v Vote, now time.Time) error {
	voter, err := g.asked(ctx, v.By, c.Action.everAsked())
	if err != nil {
		return err
	}
	if err := g.checkPermissions(voter, c.Action); err != nil {
		return err
	}
	request.Approver, request.Verdict = voter, v.Verdict
	return g.decide(ctx, &Ruling{At: now}, request)
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
