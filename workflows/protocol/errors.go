package protocol

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
)

// The types of the application errors with which messages are refused and runs fail.
const (
	// ErrTypeBadInput: a run could not begin with what it was given; its message says what to send.
	ErrTypeBadInput        = "superstep.BadInput"
	ErrTypeNodeFailed      = "superstep.NodeFailed"
	ErrTypeRunFailed       = "superstep.RunFailed"
	ErrTypeUnknownQuestion = "superstep.UnknownQuestion"
	ErrTypeAnswered        = "superstep.AlreadyAnswered"
	ErrTypeBadAnswer       = "superstep.BadAnswer"
	// ErrTypeNotAllowed: a reply to an approval does not count, or the rules do not let who asks do something. Its detail is an
	// AnswerRefusal.
	ErrTypeNotAllowed = "superstep.AnswerNotAllowed"
	ErrTypeBusy       = "superstep.RunBusy"
	// ErrTypeNotFailed: there is nothing to retry.
	ErrTypeNotFailed = "superstep.NotFailed"
	// ErrTypeBadUpdate: an update of the state cannot be applied; nothing was.
	ErrTypeBadUpdate = "superstep.BadUpdate"
	// ErrTypeJobFailed: the job has failed; the error's detail is a [LeaderResult].
	ErrTypeJobFailed = "superstep.JobFailed"
	// ErrTypeJobRefused: a message does not fit where the job stands; nothing was changed. Its detail is a job.RefusedError.
	ErrTypeJobRefused = "superstep.JobRefused"
)

// Refuse builds the error of one of these types with which a message is turned away.
func Refuse(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}
