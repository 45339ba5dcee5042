package approval_test

import (
	"encoding/json"
	"testing"

	"superstep.dev/approval"
)

func vote(by string, v approval.Verdict) approval.Vote {
	return approval.Vote{By: by, Verdict: v, Reason: "of " + by}
}

// TestDecide: approvals are counted up to the larger of what action and policy ask for; anything else decides alone.
func TestDecide(t *testing.T) {
	yes := []approval.Vote{vote("ann", approval.VerdictApprove), vote("bob", approval.VerdictApprove), vote("eve", approval.VerdictApprove)}
	for name, c := range map[string]struct {
		quorum, need, votes int
		decided             bool
	}{
		"one is enough":         {0, 0, 1, true},
		"nobody":                {0, 0, 0, false},
		"the action wants two":  {2, 0, 1, false},
		"and has two":           {2, 0, 2, true},
		"the policy wants more": {2, 3, 2, false},
		"and has them":          {2, 3, 3, true},
		"the policy wants less": {2, 1, 1, false},
	} {
		a := approval.Action{Tool: "pay", ParamsHash: "sha256:1", Quorum: c.quorum}
		d, decided := a.Decide("q-1", yes[:c.votes], c.need, nil)
		if decided != c.decided {
			t.Errorf("%s: decided is %v", name, decided)
		}
		if decided && (d.Verdict != approval.VerdictApprove || d.Digest != a.Digest() || d.Question != "q-1" || len(d.Votes) != c.votes) {
			t.Errorf("%s: %+v", name, d)
		}
	}
	a := approval.Action{Tool: "pay", Quorum: 3}
	for _, v := range []approval.Verdict{approval.VerdictReject, approval.VerdictEdit} {
		d, decided := a.Decide("q-1", append(yes[:1:1], vote("bob", v)), 0, json.RawMessage(`{"amount":1}`))
		if !decided || d.Verdict != v || d.Reason != "of bob" {
			t.Errorf("%s: %+v, %v", v, d, decided)
		}
		if (d.Params != nil) != (v == approval.VerdictEdit) {
			t.Errorf("%s goes on with %s", v, d.Params)
		}
	}
}

// TestDecideOnEditedParameters: the task does not know the parameters that an approver proposed.
func TestDecideOnEditedParameters(t *testing.T) {
	a := approval.Action{Tool: "pay", Params: json.RawMessage(`{"amount":1}`), Before: &approval.Before{By: "bob"}}
	d, _ := a.Decide("q-2", []approval.Vote{vote("ann", approval.VerdictApprove)}, 0, nil)
	if string(d.Params) != `{"amount":1}` {
		t.Errorf("the decision has the parameters %s", d.Params)
	}
}

// TestSilent: silence never does more than the action says.
func TestSilent(t *testing.T) {
	for _, c := range []struct {
		silence approval.Silence
		given   approval.Verdict
		want    approval.Verdict
	}{
		{"", "", approval.VerdictExpired},
		{approval.SilenceDeny, approval.VerdictApprove, approval.VerdictExpired},
		{approval.SilenceDefault, approval.VerdictApprove, approval.VerdictApprove},
		{approval.SilenceDefault, approval.VerdictReject, approval.VerdictReject},
		{approval.SilenceDefault, approval.VerdictEdit, approval.VerdictExpired},
		{approval.SilenceDefault, "", approval.VerdictExpired},
		{approval.SilenceEscalate, approval.VerdictApprove, approval.VerdictExpired},
	} {
		a := approval.Action{Silence: c.silence, Default: c.given}
		if d := a.Silent("q-1", nil, now); d.Verdict != c.want || d.Question != "q-1" || d.Digest != a.Digest() {
			t.Errorf("silence %q with default %q decides %+v, want %s", c.silence, c.given, d, c.want)
		}
	}
}
