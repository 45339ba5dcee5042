package runtime

import (
	"errors"
	"fmt"
	"strings"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
	"superstep.dev/thread"
)

// Refusal explains why the engine refused what a thread was given; nil stays nil.
func Refusal(graph, threadID string, err error) error {
	var (
		explained *thread.Error
		empty     *pregel.EmptyInputError
		several   *pregel.MultipleInterruptsError
		update    *pregel.InvalidUpdateError
		missing   *pregel.NoCheckpointError
		node      *pregel.NodeError
	)
	e := &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: threadID, Cause: err, Message: fmt.Sprintf("thread %q", threadID)}
	switch {
	case err == nil || errors.As(err, &explained):
		return err
	case errors.As(err, &missing):
		return NoCheckpoint(graph, threadID, missing.Checkpoint)
	case errors.As(err, &several):
		e.Do, e.Command = "Answer by id", []string{"show", threadID}
	case errors.As(err, &empty):
		e.Do = "Give it input"
	case errors.As(err, &node):
		e.Node = node.Node
	case errors.As(err, &update):
	default:
		return err
	}
	return e
}

// CheckResume refuses answers that do not fit the open questions they are for. Those of unknown questions answer nothing.
func CheckResume(open []pregel.OpenQuestion, graph, id string, resume *pregel.Resume) error {
	for _, a := range life.AnswersTo(open, resume) {
		for _, q := range open {
			if q.ID != a.QuestionID {
				continue
			}
			if err := life.InputRefusal(q, a.Value); err != nil {
				return RefusedByLife(graph, id, err)
			}
		}
	}
	return nil
}

// RefusedByLife says in a caller's words why life refuses what it is asked for; nil, and another error, stays what it is.
func RefusedByLife(graph, thread string, err error) error {
	var refused *life.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	return RefusedAs(refused.Kind, graph, thread, refused.Message, refused.Ruling)
}

// RefusedAs is RefusedByLife of what came over the wire.
func RefusedAs(kind life.Kind, graph, threadID, message string, r *life.Ruling) *thread.Error {
	e := &thread.Error{Kind: thread.ErrAnswerRefused, Graph: graph, Thread: threadID, Message: message}
	switch kind {
	case life.BadAnswer, life.BadRequest:
		e.Kind = thread.ErrBadInput
	case life.UnknownQuestion:
		e.Kind = thread.ErrNotFound
	case life.Busy:
		e.Kind = thread.ErrRunning
	case life.NotFailed:
		e.Kind = thread.ErrNotFailed
	case life.NotAllowed:
		e.Do, e.Command = "Look at it", []string{"show", threadID}
	}
	if r != nil {
		e.Question, e.Code = r.Question, r.Code
		addCode(e)
	}
	return e
}

// addCode says what to do about what a gate refuses.
func addCode(e *thread.Error) {
	e.Do, e.Command = "Look at it", []string{"show", e.Thread}
	switch e.Code {
	case approval.CodeUnsigned, approval.CodeMalformed, approval.CodeExpired, approval.CodeUsed, approval.CodeRetiredKey,
		approval.CodeWrongHash, approval.CodeWrongRun, approval.CodeWrongThread:
		e.Do = "Ask with a new token, for how it is asked now"
	case approval.CodeBadReply:
		e.Kind, e.Do, e.Command = thread.ErrBadInput, "See what is asked, and answer with what fits it", []string{"question", e.Thread, e.Question}
	case approval.CodeUnavailable:
		e.Do = "Ask again when the workers can verify it"
	case approval.CodeNotYours, approval.CodePermission, approval.CodeSamePerson, approval.CodeAlreadyGiven, approval.CodeUnknown:
		e.Do = "Somebody else has to do it"
	}
}

// NoCheckpoint says that a thread has no such checkpoint.
func NoCheckpoint(graph, threadID, checkpoint string) error {
	return &thread.Error{Kind: thread.ErrNotFound, Graph: graph, Thread: threadID,
		Message: fmt.Sprintf("thread %q has no checkpoint %q", threadID, checkpoint), Do: "List them", Command: []string{"history", threadID}}
}

// CheckFork refuses a fork that says too little.
func CheckFork(graph string, r thread.ForkRequest) error {
	switch {
	case r.Copy && r.As == "":
		return &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: r.Thread, Message: "a copy needs the id of a new thread",
			Do: "Name that thread: As in a request, --as on the command line"}
	case !r.Copy && r.Checkpoint == "":
		return NoCheckpoint(graph, r.Thread, "")
	}
	return nil
}

// NoSubgraph says that no subgraph is under way at those nodes.
func NoSubgraph(graph, threadID string, path []string, cause error) error {
	return &thread.Error{Kind: thread.ErrNotFound, Graph: graph, Thread: threadID, Node: path[len(path)-1], Cause: cause,
		Message: fmt.Sprintf("thread %q has no subgraph under way at %s", threadID, strings.Join(path, "/")),
		Do:      "See what is", Command: []string{"state", threadID, "--subgraphs"}}
}

// NotNew refuses to begin a thread that is there.
func NotNew(req Start) error {
	return &thread.Error{Kind: thread.ErrBadInput, Graph: req.Graph, Thread: req.Thread,
		Message: fmt.Sprintf("there is a thread %q already, and a new one was asked for", req.Thread), Do: "Look at it, or take another id",
		Command: []string{"show", req.Thread}}
}

// NotBegun refuses to continue a thread that is not there.
func NotBegun(req Start) error {
	return &thread.Error{Kind: thread.ErrNotFound, Graph: req.Graph, Thread: req.Thread,
		Message: fmt.Sprintf("there is no thread %q to continue", req.Thread), Do: "Give it input to begin it"}
}

// ExistsAlready refuses a fork to a thread that is there.
func ExistsAlready(graph, threadID string) error {
	return &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: threadID, Message: fmt.Sprintf("thread %q exists already", threadID),
		Do: "Choose an id that no thread has"}
}

// Halted refuses to go on with a thread whose state stands behind effects that were undone.
func Halted(graph, threadID, why string) error {
	return &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: threadID, Do: "Cancel it again in the same way, or run it from a checkpoint before them",
		Command: []string{"history", threadID},
		Message: fmt.Sprintf("thread %q cannot go on by itself: effects of it were undone, and its state stands behind them: %s", threadID, why)}
}

// JobRefusal is the error of a call that a board refused.
func JobRefusal(leader string, err error) error {
	var refused *job.RefusedError
	if !errors.As(err, &refused) {
		return err
	}
	e := &thread.Error{Kind: thread.ErrBadInput, Graph: leader, Thread: job.WorkflowID(refused.Job), Message: "nothing was changed", Cause: refused}
	switch refused.Code {
	case "unknown_subjob", "unknown_expert":
		e.Kind = thread.ErrNotFound
	case "wrong_plan_version":
		e.Kind = thread.ErrAnswerRefused
	case "not_recoverable":
		e.Kind = thread.ErrNotFailed
	}
	if refused.Code != "bad_job" {
		e.Command = []string{"job", "show", refused.Job}
		if refused.Do == "" {
			e.Do = "Look at it"
		}
	}
	return e
}

// NewAnswer is the answer of a finished job that is made of those parts.
func NewAnswer(v job.View, parts []job.Input) thread.JobAnswer {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = strings.TrimSpace(p.Text)
	}
	return thread.JobAnswer{View: v, Text: strings.Join(texts, "\n"), Parts: parts}
}
