package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
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
	size := len(req.Input.Value)
	if c := req.Input.Control; c != nil {
		size += writtenBytes(c.Update)
		for _, target := range c.Goto {
			size += len(target.Node) + len(target.Arg)
		}
	}
	if s := req.Settings; s != nil {
		if problem := s.Problem(); problem != "" {
			return protocol.Refuse(protocol.ErrTypeBadUpdate, "%s", problem)
		}
		size += len(s.Context) + names(s.Options.InterruptBefore) + names(s.Options.InterruptAfter)
	}
	if size > protocol.MaxUpdateBytes || len(req.State) > found.MaxState() || len(req.ID) > protocol.MaxNameBytes {
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "what a run is given to do has at most %d bytes beside its state, it has %d: keep "+
			"large values outside and references in the state", protocol.MaxUpdateBytes, size)
	}
	return nil
}

func boundedUpdate(req protocol.UpdateStateRequest, found *protocol.Found) error {
	count, size := 0, names(req.Within)
	for _, updates := range req.Edits {
		if len(updates) == 0 {
			return protocol.Refuse(protocol.ErrTypeBadUpdate, "a checkpoint needs at least one update")
		}
		for _, u := range updates {
			n, bytes := sizeOf(u)
			count, size = count+n, size+bytes
		}
	}
	switch {
	case len(req.Edits) == 0:
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "there is no update in the request")
	case count > protocol.MaxUpdates:
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "a request has at most %d updates, it has %d: send several", protocol.MaxUpdates, count)
	case size > protocol.MaxUpdateBytes || len(req.State) > found.MaxState() || len(req.ID) > protocol.MaxNameBytes || len(req.Within) > protocol.MaxDepth:
		return protocol.Refuse(protocol.ErrTypeBadUpdate, "an update of the state has at most %d bytes beside the state, it has %d: keep large "+
			"values outside and references in the state", protocol.MaxUpdateBytes, size)
	}
	return nil
}

func sizeOf(u graphadapter.StateUpdate) (count, bytes int) {
	count, bytes = 1, len(u.AsNode)+len(u.Input)+writtenBytes(u.Values)
	for _, c := range u.Copied {
		n, b := sizeOf(c)
		count, bytes = count+n, bytes+b
	}
	return count, bytes
}

func writtenBytes(writes []pregel.Write) int {
	size := 0
	for _, w := range writes {
		size += len(w.Channel) + len(w.Value)
	}
	return size
}

func names(all []string) int {
	size := 0
	for _, n := range all {
		size += len(n)
	}
	return size
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
