package superstep

import (
	"errors"
	"fmt"

	"superstep.dev/graphadapter"
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
func checkResume(program *pregel.Program, thread *pregel.Thread, graph, id string, resume *pregel.Resume) error {
	for i, q := range program.OpenQuestions(thread) {
		given, ok := answerTo(resume, q.ID, i == 0)
		if !ok {
			continue
		}
		if q.Event != "" {
			return waitsForEvent(graph, id, q.Question)
		}
		if q.Approval != nil {
			return approvalPastGate(graph, id, q.ID)
		}
		if err := graphadapter.CheckAnswer(q.Question, given); err != nil {
			return badAnswer(graph, id, q.ID, err)
		}
	}
	return nil
}

func badAnswer(graph, thread, question string, err error) error {
	return &Error{Kind: ErrBadInput, Graph: graph, Thread: thread, Question: question, Message: fmt.Sprintf("thread %q", thread), Cause: err}
}

// answerTo finds the answer to a question; a scalar is for the first one.
func answerTo(resume *pregel.Resume, question string, first bool) (pregel.Value, bool) {
	if resume == nil {
		return nil, false
	}
	if first && resume.Scalar != nil {
		return resume.Scalar, true
	}
	for _, a := range resume.Answers {
		if a.QuestionID == question {
			return a.Value, true
		}
	}
	given, ok := resume.ByID[question]
	return given, ok
}
