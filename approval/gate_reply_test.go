package approval_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
)

func TestReplyThatCounts(t *testing.T) {
	s := open(t)
	r, err := s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.Equal(t, approval.Ruling{Allowed: true, By: "ana", Token: "ana-1", KeyID: "ana-1", Need: 1, Policy: "people-1", At: now}, r)
}

// TestReplyRefused breaks one thing at a time of a reply that counts.
func TestReplyRefused(t *testing.T) {
	cases := map[string]struct {
		code  approval.Code
		wreck func(*situation)
	}{
		"no gate":             {approval.CodeUnavailable, func(s *situation) { s.gate = nil }},
		"no keys":             {approval.CodeUnavailable, func(s *situation) { s.gate.Keys = nil }},
		"no token":            {approval.CodeUnsigned, func(s *situation) { s.check.Token = "" }},
		"malformed token":     {approval.CodeMalformed, func(s *situation) { s.check.Token = "malformed" }},
		"unknown key":         {approval.CodeSignature, func(s *situation) { s.check.Token = "signature" }},
		"retired key":         {approval.CodeRetiredKey, func(s *situation) { s.check.Token = "retired_key" }},
		"other error of keys": {approval.CodeUnavailable, func(s *situation) { s.check.Token = "what" }},
		"anonymous":           {approval.CodeMalformed, func(s *situation) { s.claim(func(c *approval.Claims) { c.Approver = "" }) }},
		"no id":               {approval.CodeMalformed, func(s *situation) { s.claim(func(c *approval.Claims) { c.ID = "" }) }},
		"no key":              {approval.CodeMalformed, func(s *situation) { s.claim(func(c *approval.Claims) { c.KeyID = "" }) }},
		"a key of nobody": {approval.CodeWrongKey, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.Owner = approval.Owner{} })
		}},
		"another's key": {approval.CodeWrongKey, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.Owner = approval.Owner{Person: "bob"} })
		}},
		"the key of who is not asked": {approval.CodeWrongKey, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.Owner = approval.Owner{Person: "eve"} })
		}},
		"an issuer of others": {approval.CodeWrongKey, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.Owner = approval.Owner{Issuer: "sso", For: []string{"bob", "group:board"}} })
		}},
		"an issuer of others, who names nobody known": {approval.CodeWrongKey, func(s *situation) {
			s.check.Token = "eve-1"
			s.claim(func(c *approval.Claims) { c.Owner.For = []string{"group:finance"} })
		}},
		"an issuer of a group without directory": {approval.CodeUnavailable, func(s *situation) {
			s.gate.Directory = nil
			s.claim(func(c *approval.Claims) { c.Owner.For = []string{"group:finance"} })
		}},
		"as somebody else": {approval.CodeWrongPerson, func(s *situation) { s.check.By = "bob" }},
		"expired": {approval.CodeExpired, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.ExpiresAt = now.Add(-approval.DefaultLeeway) })
		}},
		"our clock 5 minutes behind": {approval.CodeExpired, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.IssuedAt = now.Add(5 * time.Minute) })
		}},
		"valid for a day": {approval.CodeMalformed, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.ExpiresAt = now.Add(24 * time.Hour) })
		}},
		"no times": {approval.CodeMalformed, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.IssuedAt, c.ExpiresAt = time.Time{}, time.Time{} })
		}},
		"another thread":   {approval.CodeWrongThread, func(s *situation) { s.check.Thread = "u" }},
		"another question": {approval.CodeWrongRun, func(s *situation) { s.check.Question = "r" }},
		"token for other parameters": {approval.CodeWrongHash, func(s *situation) {
			s.claim(func(c *approval.Claims) { c.ParamsHash = "sha256:00" })
		}},
		"parameters changed under their hash": {approval.CodeWrongHash, func(s *situation) {
			s.check.Action.Params = json.RawMessage(`{"order":"1815","amount":121}`)
		}},
		"token for another action":  {approval.CodeWrongRun, func(s *situation) { s.check.Action.Key = "other" }},
		"used":                      {approval.CodeUsed, func(s *situation) { s.check.Votes = []approval.Vote{{By: "bob", Token: "ana-1"}} }},
		"given":                     {approval.CodeAlreadyGiven, func(s *situation) { s.check.Votes = []approval.Vote{voteOf("ana")} }},
		"given under another name":  {approval.CodeAlreadyGiven, func(s *situation) { s.check.Token, s.check.Votes = "anna-1", []approval.Vote{voteOf("ana")} }},
		"nobody of that name":       {approval.CodeUnknown, func(s *situation) { s.check.Token = "eve-1" }},
		"not asked":                 {approval.CodeNotYours, func(s *situation) { s.check.Token = "cleo-1" }},
		"a group is nobody":         {approval.CodeUnknown, func(s *situation) { s.check.Token = "group:finance-1" }},
		"groups without directory":  {approval.CodeUnavailable, func(s *situation) { s.gate.Directory = nil }},
		"no permission":             {approval.CodePermission, func(s *situation) { s.check.Token = "dan-1" }},
		"requester unknown":         {approval.CodeRequester, func(s *situation) { delete(s.people, "rita") }},
		"requester not permitted":   {approval.CodeRequester, func(s *situation) { s.people["rita"] = approval.Person{Name: "rita"} }},
		"another tool version":      {approval.CodeToolVersion, func(s *situation) { s.check.ToolVersion = "3" }},
		"a verdict nobody can give": {approval.CodeBadReply, func(s *situation) { s.check.Reply.Verdict = approval.VerdictExpired }},
		"approve with parameters":   {approval.CodeBadReply, func(s *situation) { s.check.Reply.Params = json.RawMessage(`{}`) }},
		"edit without parameters":   {approval.CodeBadReply, func(s *situation) { s.check.Reply.Verdict = approval.VerdictEdit }},
		"a long reason":             {approval.CodeBadReply, func(s *situation) { s.check.Reply.Reason = strings.Repeat("x", 1001) }},
		"edit that changes nothing": {approval.CodeBadReply, func(s *situation) {
			s.check.Reply = approval.Reply{Verdict: approval.VerdictEdit, Params: json.RawMessage(`{"amount":120.0,"order":"1815"}`)}
		}},
		"policy says no": {approval.CodePolicy, func(s *situation) {
			s.gate.Policy = policy(func(approval.PolicyRequest) (approval.PolicyRuling, error) { return approval.PolicyRuling{}, nil })
		}},
		"policy says why": {approval.CodeSamePerson, func(s *situation) {
			s.gate.Policy = policy(func(approval.PolicyRequest) (approval.PolicyRuling, error) {
				return approval.PolicyRuling{Code: approval.CodeSamePerson}, nil
			})
		}},
		"policy wants too many": {approval.CodeUnavailable, func(s *situation) {
			s.gate.Policy = policy(func(approval.PolicyRequest) (approval.PolicyRuling, error) {
				return approval.PolicyRuling{Allowed: true, Need: 21}, nil
			})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			c.wreck(s)
			r, err := s.gate.Reply(t.Context(), s.check)
			require.NoError(t, err)
			require.False(t, r.Allowed)
			require.Equal(t, c.code, r.Code, r.Reason)
			require.NotEmpty(t, r.Reason)
		})
	}
}

// TestClocksMayDifferByTheLeeway also has the last moment at which a token is good.
func TestClocksMayDifferByTheLeeway(t *testing.T) {
	for name, change := range map[string]func(*approval.Claims){
		"theirs is ahead":  func(c *approval.Claims) { c.IssuedAt = now.Add(approval.DefaultLeeway) },
		"theirs is behind": func(c *approval.Claims) { c.ExpiresAt = now.Add(1 - approval.DefaultLeeway) },
	} {
		s := open(t)
		s.claim(change)
		r, err := s.gate.Reply(t.Context(), s.check)
		require.NoError(t, err)
		require.True(t, r.Allowed, name)
		s.gate.Leeway = time.Second
		r, err = s.gate.Reply(t.Context(), s.check)
		require.NoError(t, err)
		require.Equal(t, approval.CodeExpired, r.Code, name)
	}
	s := open(t)
	s.gate.Leeway = approval.NoLeeway
	for at, code := range map[time.Time]approval.Code{now: approval.CodeExpired, now.Add(time.Nanosecond): ""} {
		s.claim(func(c *approval.Claims) { c.ExpiresAt = at })
		r, err := s.gate.Reply(t.Context(), s.check)
		require.NoError(t, err)
		require.Equal(t, code, r.Code, "a token is good until it is over")
	}
}

func TestRejectionNeedsNeitherRequesterNorToolVersion(t *testing.T) {
	s := open(t)
	s.check.Reply.Verdict = approval.VerdictReject
	delete(s.people, "rita")
	s.check.ToolVersion = "3"
	s.gate.Policy = policy(func(r approval.PolicyRequest) (approval.PolicyRuling, error) {
		require.Equal(t, approval.VerdictReject, r.Verdict)
		require.Equal(t, "rita", r.Requester.Name)
		return approval.PolicyRuling{Allowed: true}, nil
	})
	r, err := s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.True(t, r.Allowed, r.Reason)
}

func TestPermissionNeedsANamedRequester(t *testing.T) {
	s := open(t)
	s.check.Action.Requester = ""
	s.claim(func(c *approval.Claims) { c.Digest = s.check.Action.Digest() })
	r, err := s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.Equal(t, approval.CodeRequester, r.Code)
	require.Contains(t, r.Reason, "WithRequester")
}

// TestNeedIsTheLargest: the author's quorum, or the policy's.
func TestNeedIsTheLargest(t *testing.T) {
	for _, c := range []struct{ quorum, policy, need int }{{0, 0, 1}, {3, 2, 3}, {1, 2, 2}} {
		s := open(t)
		s.check.Action.Quorum = c.quorum
		s.gate.Policy = policy(func(approval.PolicyRequest) (approval.PolicyRuling, error) {
			return approval.PolicyRuling{Allowed: true, Need: c.policy}, nil
		})
		r, err := s.gate.Reply(t.Context(), s.check)
		require.NoError(t, err)
		require.Equal(t, c.need, r.Need, r.Reason)
		require.Equal(t, "policy-1 people-1", r.Policy)
	}
}

// TestClosedWhenThePolicyFails: what failed is for the log, people are told nothing of it.
func TestClosedWhenThePolicyFails(t *testing.T) {
	s := open(t)
	broken := errors.New("rules.yaml:3: password: hunter2")
	s.gate.Policy = policy(func(approval.PolicyRequest) (approval.PolicyRuling, error) {
		return approval.PolicyRuling{Allowed: true}, broken
	})
	r, err := s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.False(t, r.Allowed)
	require.Equal(t, approval.CodeUnavailable, r.Code)
	require.ErrorIs(t, r.Cause, broken)
	stored, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(stored), "hunter2")
}

func TestContextThatIsOverIsAnError(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.gate.Policy = policy(func(approval.PolicyRequest) (approval.PolicyRuling, error) {
		cancel()
		return approval.PolicyRuling{}, ctx.Err()
	})
	_, err := s.gate.Reply(ctx, s.check)
	require.ErrorIs(t, err, context.Canceled)
}

// TestKeysSignForTheirOwners by each of the names that a person has, and for the groups of an issuer.
func TestKeysSignForTheirOwners(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		owner approval.Owner
	}{
		"a person's":              {"ana-1", approval.Owner{Person: "ana"}},
		"by another name":         {"anna-1", approval.Owner{Person: "anna"}},
		"by the directory's":      {"anna-1", approval.Owner{Person: "ana"}},
		"an issuer's":             {"ana-1", approval.Owner{Issuer: "sso"}},
		"an issuer's, for her":    {"ana-1", approval.Owner{Issuer: "sso", For: []string{"bob", "ana"}}},
		"an issuer's, for them":   {"ana-1", approval.Owner{Issuer: "sso", For: []string{"group:finance"}}},
		"and said who it is from": {"bob-1", approval.Owner{Person: "bob"}},
	} {
		s := open(t)
		s.check.Token = c.token
		s.check.By = s.keys[c.token].Approver
		s.claim(func(k *approval.Claims) { k.Owner = c.owner })
		r, err := s.gate.Reply(t.Context(), s.check)
		require.NoError(t, err)
		require.True(t, r.Allowed, "%s: %s", name, r.Reason)
		require.Equal(t, c.token, r.KeyID)
	}
}

// TestRefusedKeyProvesNobody: the audit does not say that it was the one whom the token names.
func TestRefusedKeyProvesNobody(t *testing.T) {
	s := open(t)
	s.claim(func(c *approval.Claims) { c.Owner = approval.Owner{Person: "bob"} })
	r, err := s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.Empty(t, r.By)
	require.Equal(t, "ana-1", r.KeyID)
	require.Contains(t, r.Reason, "bob's")
}

func TestOwnerOfAKey(t *testing.T) {
	for field, o := range map[string]approval.Owner{
		"key: it says neither": {}, "key: a key is": {Person: "ann", Issuer: "sso"}, "key: person: a key is one": {Person: "group:finance"},
		"key: for": {Person: "ann", For: []string{"bob"}}, "key: person: a name": {Person: " "}, "key: issuer": {Issuer: "a\nb"},
		"key: for: a name": {Issuer: "sso", For: []string{"group:"}},
	} {
		var invalid *approval.InvalidError
		require.ErrorAs(t, o.Check(), &invalid)
		require.Contains(t, invalid.Error(), field)
	}
}
