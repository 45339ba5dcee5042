package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Bounds on what anyone can send to a run. Each junk signal costs four events, and the validator is the shield of
// updates, so all are checked before anything else. The server refuses a message of 2 MiB.
const (
	maxAnswerBytes = 256 << 10
	maxNameBytes   = 256
	maxReasonBytes = 1 << 10
	maxAnswered    = 1000
	maxRefused     = 100
	// maxUpdates bounds the updates of one request, and its checkpoints.
	maxUpdates = 1000
	// maxUpdateBytes bounds input and updates; the state that they start from may fill the rest of the message.
	maxUpdateBytes = 1 << 20
	// maxQueuedUpdates bounds the updates that wait for their turn: the server lets ten be under way.
	maxQueuedUpdates = 10
	// maxDepth bounds the path to a subgraph.
	maxDepth = 32
)

func boundedAnswers(id, by string, answers []pregel.Answer) error {
	size := 0
	for _, a := range answers {
		size += len(a.Value)
		if len(a.QuestionID) > maxNameBytes || len(a.By) > maxNameBytes {
			size += maxAnswerBytes
		}
	}
	if size > maxAnswerBytes || len(by) > maxNameBytes || len(id) > maxNameBytes || len(answers) > maxAnswered {
		return refuse(ErrTypeBadAnswer, "an answer has at most %d bytes, and names at most %d", maxAnswerBytes, maxNameBytes)
	}
	return nil
}

func boundedInvoke(req InvokeRequest) error {
	if resume := req.Input.Resume; resume != nil {
		given := append(resume.Answers[:len(resume.Answers):len(resume.Answers)], pregel.Answer{Value: resume.Scalar})
		for _, id := range workflow.DeterministicKeys(resume.ByID) {
			given = append(given, pregel.Answer{QuestionID: id, Value: resume.ByID[id]})
		}
		if err := boundedAnswers(req.ID, resume.By, given); err != nil {
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
		size += len(s.Context) + names(s.Options.InterruptBefore) + names(s.Options.InterruptAfter)
	}
	if size > maxUpdateBytes || len(req.State) > maxClosingState || len(req.ID) > maxNameBytes {
		return refuse(ErrTypeBadUpdate, "what a run is given to do has at most %d bytes beside its state, it has %d: keep "+
			"large values outside and references in the state", maxUpdateBytes, size)
	}
	return nil
}

func boundedUpdate(req UpdateStateRequest) error {
	count, size := 0, names(req.Within)
	for _, updates := range req.Edits {
		if len(updates) == 0 {
			return refuse(ErrTypeBadUpdate, "a checkpoint needs at least one update")
		}
		for _, u := range updates {
			n, bytes := sizeOf(u)
			count, size = count+n, size+bytes
		}
	}
	switch {
	case len(req.Edits) == 0:
		return refuse(ErrTypeBadUpdate, "there is no update in the request")
	case count > maxUpdates:
		return refuse(ErrTypeBadUpdate, "a request has at most %d updates, it has %d: send several", maxUpdates, count)
	case size > maxUpdateBytes || len(req.State) > maxClosingState || len(req.ID) > maxNameBytes || len(req.Within) > maxDepth:
		return refuse(ErrTypeBadUpdate, "an update of the state has at most %d bytes beside the state, it has %d: keep large "+
			"values outside and references in the state", maxUpdateBytes, size)
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
