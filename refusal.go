package superstep

import (
	"errors"
	"fmt"

	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
)

// refusal explains why the engine refused what a thread was given; nil stays nil.
func refusal(graph, thread string, err error) error {
	var (
		explained *Error
		empty     *pregel.EmptyInputError
		several   *pregel.MultipleInterruptsError
		update    *pregel.InvalidUpdateError
		missing   *pregel.NoCheckpointError
		node      *pregel.NodeError
	)
	e := &Error{Kind: ErrBadInput, Graph: graph, Thread: thread, Cause: err, Message: fmt.Sprintf("thread %q", thread)}
	switch {
	case err == nil || errors.As(err, &explained):
		return err
	case errors.As(err, &missing):
		return noCheckpoint(graph, thread, missing.Checkpoint)
	case errors.As(err, &several):
		e.Do, e.Command = "Answer by id", []string{"show", thread}
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

// checkResume refuses answers that do not fit the open questions they are for. Those of unknown questions answer nothing.
func checkResume(open []pregel.OpenQuestion, graph, id string, resume *pregel.Resume) error {
	for _, a := range life.AnswersTo(open, resume) {
		for _, q := range open {
			if q.ID != a.QuestionID {
				continue
			}
			if err := life.InputRefusal(q, a.Value); err != nil {
				return refusedByLife(graph, id, err)
			}
		}
	}
	return nil
}

// refusedByLife says in a caller's words why life refuses what it is asked for; nil, and another error, stays what it is.
func refusedByLife(graph, thread string, err error) error {
	var refused *life.Refusal
	if !errors.As(err, &refused) {
		return err
	}
	return refusedAs(refused.Kind, graph, thread, refused.Message, refused.Ruling)
}

// refusedAs is refusedByLife of what came over the wire.
func refusedAs(kind life.Kind, graph, thread, message string, r *life.Ruling) *Error {
	e := &Error{Kind: ErrAnswerRefused, Graph: graph, Thread: thread, Message: message}
	switch kind {
	case life.BadAnswer, life.BadRequest:
		e.Kind = ErrBadInput
	case life.UnknownQuestion:
		e.Kind = ErrNotFound
	case life.Busy:
		e.Kind = ErrRunning
	case life.NotFailed:
		e.Kind = ErrNotFailed
	case life.NotAllowed:
		e.Do, e.Command = "Look at it", []string{"show", thread}
	}
	if r != nil {
		e.Question, e.Code = r.Question, r.Code
		e.addCode()
	}
	return e
}
