package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"superstep.dev/internal/clip"
)

// Code says why a reply, or the use of a decision, was refused: stable words for programs.
type Code string

const (
	CodeUnsigned     Code = "unsigned"      // no token
	CodeMalformed    Code = "malformed"     // a token, an action or a decision that cannot be read
	CodeBadReply     Code = "bad_reply"     // the reply itself is none that can be given, whoever gives it: its parameters do not fit
	CodeSignature    Code = "signature"     // not signed by a key that is known and active
	CodeWrongKey     Code = "wrong_key"     // signed by a key that is another person's
	CodeWrongPerson  Code = "wrong_person"  // the reply says that it is from another person than its token
	CodeRetiredKey   Code = "retired_key"   // signed by a key that is not valid any more
	CodeExpired      Code = "expired"       // the token's time is over, or has not begun
	CodeWrongThread  Code = "wrong_thread"  // the token is for another thread
	CodeWrongRun     Code = "wrong_run"     // or for another question, or another action under the same question
	CodeWrongHash    Code = "wrong_hash"    // or for other parameters
	CodeUsed         Code = "used"          // the token was used before
	CodeUnknown      Code = "unknown"       // nobody of that name in the directory
	CodeNotYours     Code = "not_yours"     // the approver is not among those who are asked
	CodePermission   Code = "permission"    // the approver's permission is missing now
	CodeRequester    Code = "requester"     // the requester's permission is missing now
	CodeSamePerson   Code = "same_person"   // requester and approver, or two approvers, must differ
	CodePolicy       Code = "policy"        // the policy says no
	CodeToolVersion  Code = "tool_version"  // the tool is another version now
	CodeLapsed       Code = "lapsed"        // the approval was given longer ago than it is valid
	CodeRevoked      Code = "revoked"       // a key that an approval was signed with is not known any more, or was retired before
	CodeUnavailable  Code = "unavailable"   // the keys, the policy or directory cannot be asked: closed
	CodeAlreadyGiven Code = "already_given" // that person has voted on this question
)

// ReplyCheck asks a [Gate] whether a reply counts.
type ReplyCheck struct {
	Thread, Graph, Node, Question string
	Action                        Action
	// Asked are the people and groups who are asked now, Action.Approvers or after an escalation others.
	Asked []string
	Token string
	// By is who the reply says that it is from, "" for whoever the token names.
	By    string
	Reply Reply
	Votes []Vote // given before, with VerdictApprove
	// ToolVersion is the tool's version now. "" means that nobody knows of one here; then it is not compared: right
	// before the tool is used the digest is, and holds the version.
	ToolVersion string
	// Canonical returns other parameters as the tool reads them: in the form in which it would write them itself. Its error
	// says why they do not fit, and holds no value. nil means that nobody knows the tool here: see [ReplyCheck.Proposed].
	Canonical func(params json.RawMessage) (json.RawMessage, error)
}

// UseCheck asks a [Gate] whether a decision may be acted upon now.
type UseCheck struct {
	Thread, Graph, Node string
	Action              Action // as it would be done now
	Decision            Decision
}

// Ruling is a gate's word.
type Ruling struct {
	Allowed bool `json:"allowed"`
	// Code and Reason say why not; Reason is a sentence for people.
	Code   Code   `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// By is the approver that the token names, when a key of theirs or an issuer's signed it. Token is the token's id, and
	// KeyID that of the key, when its signature was good.
	By    string `json:"by,omitempty"`
	Token string `json:"token,omitempty"`
	KeyID string `json:"key_id,omitempty"`
	// Need is how many approvals the action needs in all.
	Need int `json:"need,omitempty"`
	// ValidFor is how long an approval counts, in nanoseconds as JSON; 0 for ever.
	ValidFor time.Duration `json:"valid_for,omitempty"`
	// Revoked are the tokens' ids of earlier votes on the question whose keys do not count any more: see [Ruling.Standing].
	Revoked []string `json:"revoked,omitempty"`
	// Lost are those of earlier votes whose voters may not approve the action any more.
	Lost []string `json:"lost,omitempty"`
	// Params are the parameters of an edit that is allowed, in the form of [ReplyCheck.Proposed]: what is asked about next.
	Params json.RawMessage `json:"params,omitempty"`
	// Pause is why the run is to be paused when the reply counts, "" for not at all.
	Pause string `json:"pause,omitempty"`
	// Policy is the version of policy and directory that was asked.
	Policy string    `json:"policy,omitempty"`
	At     time.Time `json:"at"`
	// Cause is what failed, with CodeUnavailable, for the worker's log. It may hold what a policy or a directory is made
	// of, so it is not stored.
	Cause error `json:"-"`
}

// Vote is the vote that a reply is which the ruling allowed.
func (r Ruling) Vote(reply Reply) Vote {
	return Vote{By: r.By, Verdict: reply.Verdict, Reason: reply.Reason, Token: r.Token, KeyID: r.KeyID, At: r.At, Policy: r.Policy}
}

// Person is somebody whom a [Directory] knows.
type Person struct {
	Name        string
	Groups      []string
	Permissions []string
	// Limits bound what the person may approve, by the name of a number in the parameters: {"amount": 10000}.
	Limits map[string]float64
}

// Directory knows people, as they are now. A person that it does not know is an [*UnknownPersonError]; every other error
// means that it cannot be asked, and closes the gate.
type Directory interface {
	Person(ctx context.Context, name string) (Person, error)
	// Version changes whenever an answer may.
	Version(ctx context.Context) (string, error)
}

// Phase says for what a [Policy] is asked.
type Phase string

const (
	PhaseAnswer Phase = "answer" // somebody answers
	PhaseUse    Phase = "use"    // what was approved is about to be done
)

// PolicyRequest is what a [Policy] decides on.
type PolicyRequest struct {
	Phase               Phase
	Thread, Graph, Node string
	Action              Action
	// Verdict is what the approver says; in PhaseUse it is VerdictApprove.
	Verdict Verdict
	// Approver is zero in PhaseUse when silence approved, and Requester when nobody is named.
	Approver, Requester Person
	Votes               []Vote // those before, or in PhaseUse all
	// Now is the gate's time.
	Now time.Time
}

// PolicyRuling is a policy's word: Rule names the rule that decided.
type PolicyRuling struct {
	Allowed bool
	Code    Code
	Reason  string
	Rule    string
	// Need is how many approvals it asks for, 0 for as many as the action does.
	Need int
	// ValidFor is how long it lets an approval count, 0 for as long as the action does.
	ValidFor time.Duration
	// Pause is why the run is to be paused when the reply counts, "" for not at all.
	Pause string
}

// check refuses what the policy does not allow.
func (r PolicyRuling) check() error {
	if r.Allowed {
		return nil
	}
	rule := ""
	if r.Rule != "" {
		rule = " (rule " + quote(r.Rule) + ")"
	}
	return refuse(cmp.Or(r.Code, CodePolicy), "%s%s", cmp.Or(r.Reason, "the policy does not allow it"), rule)
}

// Policy says what may be approved by whom. An error means that it cannot be asked, and closes the gate. In PhaseUse it
// is asked about each voter.
type Policy interface {
	Decide(ctx context.Context, r PolicyRequest) (PolicyRuling, error)
	// Version changes whenever an answer may.
	Version(ctx context.Context) (string, error)
}

// Gate says whether a reply counts and whether a decision may be acted upon. It is closed: whatever cannot be checked is
// refused. Its methods may be called from several goroutines.
type Gate struct {
	// Keys verify tokens.
	Keys Keys
	// Policy and Directory are asked anew each time. Without a policy whoever is asked may answer. Without a directory
	// nobody's permissions are known, so none are checked, and nobody is in a group.
	Policy    Policy
	Directory Directory
	// Leeway is how far clocks may be apart: so much longer, and earlier, a token is good than it says. 0 means
	// [DefaultLeeway].
	Leeway time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

const (
	// DefaultLeeway is how far the clocks of who signs and who verifies may be apart.
	DefaultLeeway = 30 * time.Second
	// NoLeeway is for clocks that are the same.
	NoLeeway time.Duration = -1
)

// UnknownPersonError says that a [Directory] does not know somebody.
type UnknownPersonError struct{ Name string }

// Error implements error.
func (e *UnknownPersonError) Error() string {
	return "the directory knows nobody of the name " + quote(e.Name)
}

// MaxTokenLife is the longest that a token may be valid.
const MaxTokenLife = time.Hour

// Claims are what a token says: who may answer which question about which parameters.
type Claims struct {
	ID       string // unique: a token is used once
	Thread   string
	Question string
	Approver string
	// Digest is the action's, see [Action.Digest], and ParamsHash its parameters'.
	Digest     string
	ParamsHash string
	IssuedAt   time.Time
	ExpiresAt  time.Time
	// KeyID is the key that signed the token, and Owner whose it is: both are what [Keys] knows, not what the token says.
	KeyID string
	Owner Owner
}

// Keys verify tokens, which superstep.dev/approval/token signs and reads.
type Keys interface {
	// Verify returns what a token claims when a key that is active signed it, and whose key that is; its times, and
	// whether the key may sign for the approver, are left to the caller. The error is a [*TokenError], or one that says
	// why the keys cannot be read: then nobody knows.
	Verify(token string) (Claims, error)
	// Owner returns whose that key is, if it was active at that time. The error is as Verify's.
	Owner(keyID string, at time.Time) (Owner, error)
}

// TokenError says why a token cannot be believed. It never holds the token.
type TokenError struct {
	Code Code // CodeMalformed, CodeSignature or CodeRetiredKey
	// Key is the id of the key that the token names, "" for none.
	Key    string
	Reason string
}

// Error implements error.
func (e *TokenError) Error() string { return e.Reason }

// unreadable says what could not be asked.
type unreadable struct {
	what string
	err  error
}

// Error implements error.
func (u *unreadable) Error() string { return u.what + ": " + u.err.Error() }

// Unwrap implements errors.Unwrap.
func (u *unreadable) Unwrap() error { return u.err }

// refusal is a check that failed.
type refusal struct {
	code   Code
	reason string
}

// Error implements error.
func (r *refusal) Error() string { return r.reason }

func refuse(code Code, format string, args ...any) error {
	return &refusal{code: code, reason: fmt.Sprintf(format, args...)}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func (g *Gate) begin() Ruling {
	if g == nil || g.Now == nil {
		return Ruling{At: time.Now().UTC()}
	}
	return Ruling{At: g.Now().UTC()}
}

// settle returns the ruling with what the checks said. Whatever else failed closes the gate, and is no part of what
// people are told.
func (r Ruling) settle(ctx context.Context, err error) (Ruling, error) {
	var refused *refusal
	switch {
	case err == nil:
		r.Allowed = true
	case errors.As(err, &refused):
		r.Params = nil
		r.Code, r.Reason = refused.code, clip.Text(refused.reason, MaxReason)
	case ctx.Err() != nil:
		return Ruling{}, fmt.Errorf("the check of an approval was not finished: %w", ctx.Err())
	default:
		what := "rules"
		if u, ok := errors.AsType[*unreadable](err); ok {
			what = u.what
		}
		r.Code, r.Cause = CodeUnavailable, err
		r.Reason = "the " + what + " of approvals cannot be read by the worker now, so nothing is approved until they can: see its log"
	}
	return r, nil
}

// Standing returns the votes that still count for a reply that the ruling is about, and those that lapsed: they were given too
// long ago, with a key that was revoked since, or by somebody who may not approve it any more. With them the approval would not count when it is to be used.
func (r Ruling) Standing(votes []Vote) (standing, lapsed []Vote) {
	for _, v := range votes {
		if isOver(v.At, r.ValidFor, r.At) || r.revokes(v) || slices.Contains(r.Lost, v.Token) {
			lapsed = append(lapsed, v)
		} else {
			standing = append(standing, v)
		}
	}
	return standing, lapsed
}

func (r Ruling) revokes(v Vote) bool { return slices.Contains(r.Revoked, v.Token) }

// AsksAnew reports whether what was refused with that code, right before it was to be done, is asked about anew: the
// approval itself does not count any more, and another would.
func (c Code) AsksAnew() bool { return oneOf(c, CodeLapsed, CodeRevoked) }

// UseWithoutGate says whether what was decided may be done now where there is no gate to ask: unless it has lapsed.
func UseWithoutGate(c UseCheck, now time.Time) Ruling {
	r := Ruling{Allowed: true, At: now.UTC(), ValidFor: c.Action.Validity(0)}
	if err := checkValidity(c.Decision, r.ValidFor, now); err != nil {
		r.Allowed, r.Code, r.Reason = false, CodeLapsed, err.Error()
	}
	return r
}

// ReplyWithoutGate is [Gate.Reply] where there is no gate to ask: a reply counts for whoever it says, each of them once.
func ReplyWithoutGate(_ context.Context, c ReplyCheck) (Ruling, error) {
	need := c.Action.Needs(0)
	r := Ruling{Allowed: true, By: c.By, Need: need, At: time.Now(), ValidFor: c.Action.Validity(0)}
	standing, _ := r.Standing(c.Votes)
	if slices.ContainsFunc(standing, func(v Vote) bool { return v.By == c.By }) {
		r.Allowed, r.Code = false, CodeAlreadyGiven
		r.Reason = fmt.Sprintf("%q has approved it: it takes %d different people", c.By, need)
	}
	var err error
	if r.Params, err = c.Proposed(); err != nil {
		r.Allowed, r.Code, r.Reason = false, CodeBadReply, err.Error()
	}
	return r, nil
}

// checkValidity refuses a decision that was made too long ago.
func checkValidity(d Decision, validity time.Duration, now time.Time) error {
	if !isOver(d.given(), validity, now) {
		return nil
	}
	return refuse(CodeLapsed, "it was approved at %s, which counts for %s", stamp(d.given()), validity)
}
