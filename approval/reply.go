package approval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// maxReply is the most bytes that a reply may have as JSON: its parameters and its reason, every byte of which may be
// escaped.
const maxReply = MaxParams + 6*MaxReason + 100

// ParseReply reads the value of an answer strictly: a field that it does not know is an error. The error is an
// [*InvalidError]. It says nothing about whether the reply counts, which a [Gate] does.
func ParseReply(value json.RawMessage) (Reply, error) {
	if len(value) > maxReply {
		return Reply{}, invalidReply("", fmt.Sprintf("it has at most %d bytes, this one has %d", maxReply, len(value)))
	}
	if !json.Valid(value) {
		return Reply{}, invalidReply("", "it is not one JSON value")
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(value)), maxDepth); err != nil {
		return Reply{}, invalidReply("", err.Error())
	}
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.DisallowUnknownFields()
	var r Reply
	if err := dec.Decode(&r); err != nil {
		return Reply{}, invalidReply("", `it is {"verdict": "approve", "reject" or "edit", "params": ..., "reason": "..."}`)
	}
	return r, r.Check()
}

// Check returns an [*InvalidError] when nobody can say that: a verdict that people cannot give, parameters without
// VerdictEdit or VerdictEdit without them, a reason that is too long, parameters that [Action.Check] would refuse.
func (r Reply) Check() error {
	switch {
	case !oneOf(r.Verdict, VerdictApprove, VerdictReject, VerdictEdit):
		return invalidReply("verdict", unknownWord(r.Verdict, VerdictApprove, VerdictReject, VerdictEdit))
	case r.Verdict == VerdictEdit && len(r.Params) == 0:
		return invalidReply("params", "say which parameters to go on with")
	case r.Verdict != VerdictEdit && len(r.Params) > 0:
		return invalidReply("params", "other parameters are proposed with edit only")
	case len(r.Reason) > MaxReason || !utf8.ValidString(r.Reason):
		return invalidReply("reason", fmt.Sprintf("it is valid UTF-8 of at most %d bytes", MaxReason))
	}
	if problem := paramsProblem(r.Params); problem != "" {
		return invalidReply("params", problem)
	}
	return nil
}

func invalidReply(field, problem string) error {
	return &InvalidError{Of: "reply", Field: field, Problem: problem}
}
