package approval_test

import (
	"encoding/json"
	"testing"
	"time"

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

// TestUseOfWhatHasLapsed: an approval counts as long as the action or the policy lets it, from its oldest vote on.
func TestUseOfWhatHasLapsed(t *testing.T) {
	for name, c := range map[string]struct {
		risk        approval.Risk
		own, policy time.Duration
		age         time.Duration
		lapsed      bool
	}{
		"a medium risk, a year ago":        {approval.RiskMedium, 0, 0, 8760 * time.Hour, false},
		"a high risk, the last moment":     {approval.RiskHigh, 0, 0, approval.DefaultValidity - 1, false},
		"a high risk, a moment later":      {approval.RiskHigh, 0, 0, approval.DefaultValidity, true},
		"a critical risk":                  {approval.RiskCritical, 0, 0, approval.DefaultValidity, true},
		"a high risk that may wait a week": {approval.RiskHigh, 168 * time.Hour, 0, 167 * time.Hour, false},
		"and did":                          {approval.RiskHigh, 168 * time.Hour, 0, 168 * time.Hour, true},
		"a low risk for an hour":           {approval.RiskLow, time.Hour, 0, time.Hour, true},
		"the policy wants less":            {approval.RiskHigh, 0, time.Hour, time.Hour, true},
		"the policy alone":                 {approval.RiskLow, 0, time.Hour, time.Hour, true},
		"the policy wants more":            {approval.RiskLow, time.Hour, 2 * time.Hour, time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, use := approved(t)
			use.Action.Risk, use.Action.ValidFor = c.risk, c.own.Milliseconds()
			use.Decision.Votes[0].At = now.Add(-c.age) // the other one is fresh
			s.gate.Policy = policy(func(r approval.PolicyRequest) (approval.PolicyRuling, error) {
				require.Equal(t, now, r.Now)
				return approval.PolicyRuling{Allowed: true, ValidFor: c.policy}, nil
			})
			r, err := s.gate.Use(t.Context(), use)
			require.NoError(t, err)
			require.Equal(t, !c.lapsed, r.Allowed, r.Reason)
			if c.lapsed {
				require.Equal(t, approval.CodeLapsed, r.Code, r.Reason)
				require.True(t, r.Code.AsksAnew())
			}
			if c.policy == 0 {
				require.Equal(t, !c.lapsed, approval.UseWithoutGate(use, now).Allowed)
			}
		})
	}
}

// TestUseOfWhatARevokedKeySigned: what is known of the key now counts.
func TestUseOfWhatARevokedKeySigned(t *testing.T) {
	for name, c := range map[string]struct {
		code  approval.Code
		wreck func(*situation)
	}{
		"taken away":            {approval.CodeRevoked, func(s *situation) { delete(s.keys, "bob-1") }},
		"another's":             {approval.CodeWrongKey, func(s *situation) { s.own("bob-1", approval.Owner{Person: "eve"}) }},
		"keys cannot be read":   {approval.CodeUnavailable, func(s *situation) { s.gate.Keys = shut{} }},
		"no keys":               {approval.CodeUnavailable, func(s *situation) { s.gate.Keys = nil }},
		"his own, as it should": {"", func(s *situation) { s.own("bob-1", approval.Owner{Person: "bob"}) }},
	} {
		s, use := approved(t)
		c.wreck(s)
		r, err := s.gate.Use(t.Context(), use)
		require.NoError(t, err)
		require.Equal(t, c.code, r.Code, "%s: %s", name, r.Reason)
	}
}

// TestVotesLapseWhileOthersAreAwaited: whose vote has lapsed may give it again, and others may not give theirs twice.
func TestVotesLapseWhileOthersAreAwaited(t *testing.T) {
	s := open(t)
	s.check.Action.ValidFor = time.Hour.Milliseconds()
	old := voteOf("ana")
	old.At = now.Add(-time.Hour)
	s.check.Votes = []approval.Vote{old, voteOf("bob")}
	r, err := s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.True(t, r.Allowed, r.Reason)
	standing, lapsed := r.Standing(s.check.Votes)
	require.Equal(t, []approval.Vote{voteOf("bob")}, standing)
	require.Equal(t, []approval.Vote{old}, lapsed)
	s.check.Token = "bob-1"
	r, err = s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.Equal(t, approval.CodeAlreadyGiven, r.Code)
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

// TestVotesAreRevokedWhileOthersAreAwaited: a vote whose key was taken away makes no quorum, is not among those that the policy sees, and
// can be given again with another key.
func TestVotesAreRevokedWhileOthersAreAwaited(t *testing.T) {
	s := open(t)
	stolen := voteOf("ana")
	stolen.KeyID = "ana-stolen"
	s.check.Votes = []approval.Vote{stolen, voteOf("bob")}
	s.gate.Policy = policy(func(r approval.PolicyRequest) (approval.PolicyRuling, error) {
		require.Equal(t, []approval.Vote{voteOf("bob")}, r.Votes)
		return approval.PolicyRuling{Allowed: true}, nil
	})
	r, err := s.gate.Reply(t.Context(), s.check)
	require.NoError(t, err)
	require.True(t, r.Allowed, r.Reason)
	standing, lapsed := r.Standing(s.check.Votes)
	require.Equal(t, []approval.Vote{voteOf("bob")}, standing)
	require.Equal(t, []approval.Vote{stolen}, lapsed)
	require.Equal(t, approval.CodeRevoked, r.Lapsed(stolen, "q", s.check.Action).Code)
}
