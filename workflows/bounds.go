package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

func boundedInvoke(req protocol.InvokeRequest, found *protocol.Found) error {
	if resume := req.Input.Resume; resume != nil {
		given := append(resume.Answers[:len(resume.Answers):len(resume.Answers)], pregel.Answer{Value: resume.Scalar})
		for _, id := range workflow.DeterministicKeys(resume.ByID) {
			given = append(given, pregel.Answer{QuestionID: id, Value: resume.ByID[id]})
		}
		if err := life.BoundAnswers(req.ID, resume.By, given); err != nil {
			return err
		}
	}
	if s := req.Settings; s != nil && s.Problem() != "" {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "%s", s.Problem())
	}
	if problem := req.Misfit(found.MaxState()); problem != "" {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "%s", problem)
	}
	return boundedID(req.ID)
}

func boundedUpdate(req protocol.UpdateStateRequest, found *protocol.Found) error {
	for _, updates := range req.Edits {
		if len(updates) == 0 {
			return protocol.Refuse(protocol.ErrTypeBadUpdate, "a checkpoint needs at least one update")
		}
	}
	switch problem := req.Misfit(found.MaxState()); {
	case len(req.Edits) == 0:
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "there is no update in the request")
	case problem != "":
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "%s", problem)
	case len(req.Within) > protocol.MaxDepth:
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "the path to a subgraph has at most %d names, it has %d", protocol.MaxDepth, len(req.Within))
	}
	return boundedID(req.ID)
}

func boundedID(id string) error {
	if len(id) > protocol.MaxNameBytes {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "the id of a request has at most %d bytes, it has %d", protocol.MaxNameBytes, len(id))
	}
	return nil
}

// boundedAsked says what is wrong with who asks.
func boundedAsked(a protocol.Asked) error {
	if len(a.By) > protocol.MaxNameBytes || len(a.From) > protocol.MaxNameBytes || len(a.Reason) > protocol.MaxReasonBytes || len(a.Token) > protocol.MaxTokenBytes {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "who asks has a name of at most %d bytes, a reason of at most %d and a token of at most %d",
			protocol.MaxNameBytes, protocol.MaxReasonBytes, protocol.MaxTokenBytes)
	}
	return nil
}

// refused is the error with which a sender is told why life refuses a command; nil, and another error, stays what it is.
func refused(err error) error {
	var why *life.Refusal
	switch {
	case !errors.As(err, &why):
		return err
	case why.Ruling != nil:
		return temporal.NewNonRetryableApplicationError(why.Message, string(why.Kind), nil, *why.Ruling)
	}
	return temporal.NewNonRetryableApplicationError(why.Message, string(why.Kind), nil)
}
