package approval_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
)

// approved is a use that every check passes: two people approved, two are needed.
func approved(t *testing.T) (*situation, approval.UseCheck) {
	s := open(t)
	a := s.check.Action
	a.Quorum = 2
	return s, approval.UseCheck{Thread: "t", Graph: "refund", Node: "pay", Action: a, Decision: approval.Decision{
		Verdict: approval.VerdictApprove, Question: "q", Digest: a.Digest(), ParamsHash: a.ParamsHash,
		Votes: []approval.Vote{voteOf("ana"), voteOf("bob")},
	}}
}

func TestUseOfADecision(t *testing.T) {
	s, c := approved(t)
	var asked []string
	s.gate.Policy = policy(func(r approval.PolicyRequest) (approval.PolicyRuling, error) {
		require.Equal(t, approval.PhaseUse, r.Phase)
		require.Len(t, r.Votes, 2)
		asked = append(asked, r.Approver.Name)
		return approval.PolicyRuling{Allowed: true}, nil
	})
	r, err := s.gate.Use(t.Context(), c)
	require.NoError(t, err)
	require.True(t, r.Allowed, r.Reason)
	require.Equal(t, 2, r.Need)
	require.Equal(t, []string{"ana", "bob"}, asked, "each voter is asked about")
	require.Equal(t, "bob", r.By)
}

func TestUseRefused(t *testing.T) {
	cases := map[string]struct {
		code  approval.Code
		wreck func(*situation, *approval.UseCheck)
	}{
		"no gate":     {approval.CodeUnavailable, func(s *situation, _ *approval.UseCheck) { s.gate = nil }},
		"a rejection": {approval.CodeMalformed, func(_ *situation, c *approval.UseCheck) { c.Decision.Verdict = approval.VerdictReject }},
		"no decision": {approval.CodeMalformed, func(_ *situation, c *approval.UseCheck) { c.Decision = approval.Decision{} }},
		"a vote against among them": {approval.CodeMalformed, func(_ *situation, c *approval.UseCheck) {
			c.Decision.Votes[0].Verdict = approval.VerdictReject
		}},
		"other parameters": {approval.CodeWrongHash, func(_ *situation, c *approval.UseCheck) {
			c.Action.Params = json.RawMessage(`{"amount":9999}`)
			c.Action.ParamsHash, _ = approval.HashParams(c.Action.Params)
		}},
		"other parameters under the hash": {approval.CodeWrongHash, func(_ *situation, c *approval.UseCheck) {
			c.Action.Params = json.RawMessage(`{"amount":9999}`)
		}},
		"another tool version":    {approval.CodeWrongRun, func(_ *situation, c *approval.UseCheck) { c.Action.ToolVersion = "3" }},
		"a voter has left":        {approval.CodeUnknown, func(s *situation, _ *approval.UseCheck) { delete(s.people, "ana") }},
		"a voter lost it":         {approval.CodePermission, func(s *situation, _ *approval.UseCheck) { s.people["bob"] = approval.Person{Name: "bob"} }},
		"a voter left the group":  {approval.CodeNotYours, func(s *situation, _ *approval.UseCheck) { s.people["ana"] = s.people["cleo"] }},
		"the requester lost it":   {approval.CodeRequester, func(s *situation, _ *approval.UseCheck) { s.people["rita"] = approval.Person{} }},
		"one person by two names": {approval.CodeSamePerson, func(_ *situation, c *approval.UseCheck) { c.Decision.Votes[1] = voteOf("anna") }},
		"too few":                 {approval.CodePolicy, func(_ *situation, c *approval.UseCheck) { c.Decision.Votes = c.Decision.Votes[:1] }},
		"nobody":                  {approval.CodePolicy, func(_ *situation, c *approval.UseCheck) { c.Decision.Votes = nil }},
		"the policy wants more now": {approval.CodePolicy, func(s *situation, _ *approval.UseCheck) {
			s.gate.Policy = policy(func(approval.PolicyRequest) (approval.PolicyRuling, error) {
				return approval.PolicyRuling{Allowed: true, Need: 3}, nil
			})
		}},
		"the policy says no to the second": {approval.CodePolicy, func(s *situation, _ *approval.UseCheck) {
			s.gate.Policy = policy(func(r approval.PolicyRequest) (approval.PolicyRuling, error) {
				return approval.PolicyRuling{Allowed: r.Approver.Name == "ana"}, nil
			})
		}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, use := approved(t)
			c.wreck(s, &use)
			r, err := s.gate.Use(t.Context(), use)
			require.NoError(t, err)
			require.False(t, r.Allowed)
			require.Equal(t, c.code, r.Code, r.Reason)
			require.NotEmpty(t, r.Reason)
		})
	}
}

func TestUseByThoseWhomItWasEscalatedTo(t *testing.T) {
	s, c := approved(t)
	c.Action.Within, c.Action.Silence, c.Action.Escalate = 1000, approval.SilenceEscalate, []string{"cleo"}
	c.Decision.Votes[1] = voteOf("cleo")
	r, err := s.gate.Use(t.Context(), c)
	require.NoError(t, err)
	require.True(t, r.Allowed, r.Reason)
}

// TestUseOfWhatSilenceApproved: it is the author's choice, and the policy has the last word.
func TestUseOfWhatSilenceApproved(t *testing.T) {
	need := 0
	s, c := approved(t)
	c.Action.Within, c.Action.Silence, c.Action.Default = 1000, approval.SilenceDefault, approval.VerdictApprove
	c.Decision.Votes = nil
	s.gate.Policy = policy(func(r approval.PolicyRequest) (approval.PolicyRuling, error) {
		require.Empty(t, r.Approver.Name)
		return approval.PolicyRuling{Allowed: need >= 0, Need: max(need, 0)}, nil
	})
	for _, step := range []struct {
		need    int
		allowed bool
	}{{0, true}, {3, false}, {-1, false}} {
		need = step.need
		r, err := s.gate.Use(t.Context(), c)
		require.NoError(t, err)
		require.Equal(t, step.allowed, r.Allowed, r.Reason)
	}
}
