package life

import (
	"fmt"
	"strings"

	"superstep.dev/approval"
)

// Kind is why a command is not done. Kinds go over the wire as the types of errors.
type Kind string

// The kinds of refusals.
const (
	// UnknownQuestion: nobody asks that.
	UnknownQuestion Kind = "superstep.UnknownQuestion"
	// AlreadyAnswered: somebody else was first.
	AlreadyAnswered Kind = "superstep.AlreadyAnswered"
	// BadAnswer: an answer or an event does not fit what waits for it, or is too large.
	BadAnswer Kind = "superstep.BadAnswer"
	// Busy: the run cannot do it now, and perhaps later.
	Busy Kind = "superstep.RunBusy"
	// NotFailed: there is nothing to retry.
	NotFailed Kind = "superstep.NotFailed"
	// BadRequest: nobody can do that to a run.
	BadRequest Kind = "superstep.BadUpdate"
	// NotAllowed: a gate refuses it. The refusal has a [Ruling].
	NotAllowed Kind = "superstep.AnswerNotAllowed"
)

// Refusal is why a command was not done. The run is as it was.
type Refusal struct {
	Kind    Kind
	Message string
	// Ruling is what a gate said, with NotAllowed.
	Ruling *Ruling
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Ruling is why a gate does not let something count: a reply to the approval Question, or with "" what was to be done to the
// run.
type Ruling struct {
	Question string `json:"question"`
	approval.Ruling
}

func refuse(kind Kind, format string, args ...any) error {
	return &Refusal{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Denied refuses what the rules for control do not allow.
func Denied(op approval.Op, ruling approval.Ruling) error {
	return &Refusal{Kind: NotAllowed, Message: fmt.Sprintf("%s is not allowed: %s", op, ruling.Reason), Ruling: &Ruling{Ruling: ruling}}
}

// notCounted refuses a reply to an approval.
func notCounted(r Ruling) error {
	text := "the answer to question " + r.Question + " does not count"
	if r.By != "" {
		text += ", given by " + r.By
	}
	return &Refusal{Kind: NotAllowed, Message: text + ": " + strings.TrimSuffix(r.Reason, "."), Ruling: &r}
}

// Unsigned is the ruling on a command that takes a token and has none.
func Unsigned(op approval.Op) approval.Ruling {
	return approval.Ruling{Code: approval.CodeUnsigned,
		Reason: fmt.Sprintf("the rules say who may %s a run, and this request has no token to prove who asks", op)}
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}
