package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// signed is a [approval.Keys] that knows what each token claims. The key that signed it has its name.
type signed map[string]approval.Claims

// sso is who has authenticated the people of the tests.
var sso = approval.Owner{Issuer: "sso"}

func (s signed) Verify(token string) (approval.Claims, error) {
	if c, ok := s[token]; ok {
		return c, nil
	}
	code := approval.Code(token)
	return approval.Claims{}, &approval.TokenError{Code: code, Reason: "no: " + token}
}

func (s signed) Owner(keyID string, _ time.Time) (approval.Owner, error) {
	if c, ok := s[keyID]; ok {
		return c.Owner, nil
	}
	return approval.Owner{}, &approval.TokenError{Code: approval.CodeSignature, Key: keyID, Reason: "no: " + keyID}
}

// own changes whose key it is.
func (s *situation) own(keyID string, o approval.Owner) {
	c := s.keys[keyID]
	c.Owner = o
	s.keys[keyID] = c
}

// shut are keys that cannot be read.
type shut struct{}

func (shut) Verify(string) (approval.Claims, error) { return approval.Claims{}, errors.New("no file") }

func (shut) Owner(string, time.Time) (approval.Owner, error) {
	return approval.Owner{}, errors.New("no file")
}

// people is a directory and a policy of functions.
type people map[string]approval.Person

func (p people) Person(_ context.Context, name string) (approval.Person, error) {
	if person, ok := p[name]; ok {
		return person, nil
	}
	return approval.Person{}, &approval.UnknownPersonError{Name: name}
}

func (people) Version(context.Context) (string, error) { return "people-1", nil }

type policy func(approval.PolicyRequest) (approval.PolicyRuling, error)

func (p policy) Decide(_ context.Context, r approval.PolicyRequest) (approval.PolicyRuling, error) {
	return p(r)
}

func (policy) Version(context.Context) (string, error) { return "policy-1", nil }

// situation is one in which every check passes; a test breaks one thing of it.
type situation struct {
	gate   *approval.Gate
	keys   signed
	people people
	check  approval.ReplyCheck
}

func refund(t *testing.T) approval.Action {
	a, err := approval.Action{
		Tool: "payments.refund", ToolVersion: "2", Summary: "Refund 120.00 of order 1815", Requester: "rita",
		Params: json.RawMessage(`{"order":"1815","amount":120}`), Permissions: []string{"refund.write"},
		Approvers: []string{"group:finance", "bob"},
	}.Normal()
	require.NoError(t, err)
	return a
}

func open(t *testing.T) *situation {
	a := refund(t)
	has := []string{"refund.write"}
	s := &situation{
		keys: signed{},
		people: people{
			"ana":  {Name: "ana", Groups: []string{"finance"}, Permissions: has},
			"anna": {Name: "ana", Groups: []string{"finance"}, Permissions: has}, // the same person by another name
			"bob":  {Name: "bob", Permissions: has},
			"cleo": {Name: "cleo", Permissions: has},
			"dan":  {Name: "dan", Groups: []string{"finance"}},
			"rita": {Name: "rita", Permissions: has},
		},
		check: approval.ReplyCheck{
			Thread: "t", Graph: "refund", Node: "pay", Question: "q", Action: a, Asked: a.Approvers, Token: "ana-1",
			Reply: approval.Reply{Verdict: approval.VerdictApprove}, ToolVersion: "2",
		},
	}
	for _, name := range []string{"ana", "anna", "bob", "cleo", "dan", "eve", "group:finance"} {
		s.keys[name+"-1"] = approval.Claims{
			ID: name + "-1", Thread: "t", Question: "q", Approver: name, Digest: a.Digest(), ParamsHash: a.ParamsHash,
			IssuedAt: now.Add(-time.Minute), ExpiresAt: now.Add(10 * time.Minute), KeyID: name + "-1", Owner: sso,
		}
	}
	s.gate = &approval.Gate{Keys: s.keys, Directory: s.people, Now: func() time.Time { return now }}
	return s
}

// claim changes what the token of the reply claims.
func (s *situation) claim(change func(*approval.Claims)) {
	c := s.keys[s.check.Token]
	change(&c)
	s.keys[s.check.Token] = c
}

func voteOf(by string) approval.Vote {
	return approval.Vote{By: by, Verdict: approval.VerdictApprove, Token: by + "-0", KeyID: by + "-1", At: now}
}
