package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// lostWorkersBound is how many workers in a row one task may take down before a person is asked: a node that kills its
// worker would otherwise take down one after the other.
const lostWorkersBound = 10

// verdict is what a person said about a task that keeps losing its workers.
type verdict int

const (
	goOn verdict = iota
	givenUp
)

// lostWorkers returns the question to ask when too many workers were lost in a row on this task.
func (e *execution) lostWorkers() (*pregel.Question, verdict) {
	answers := e.req.Task.Answers
	for before := range answers {
		id := e.lostWorkersID(before)
		if slices.ContainsFunc(answers, func(a pregel.Answer) bool { return a.QuestionID == id && string(a.Value) == "false" }) {
			return nil, givenUp
		}
	}
	if e.owner.lost() < lostWorkersBound {
		return nil, goOn
	}
	text, _ := pregelString(fmt.Sprintf("%d workers in a row were lost while running node %s of thread %s. Run it again?",
		lostWorkersBound, e.req.Task.Node, e.req.Thread))
	return &pregel.Question{ID: e.lostWorkersID(len(answers)), Key: "superstep.lost-workers", Value: text, Schema: pregel.Value(`{"type":"boolean"}`)}, goOn
}

// lostWorkersID is that of the question asked after so many answers. It differs each time the question comes up on one
// task: after "run it again" it may come up once more.
func (e *execution) lostWorkersID(answers int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\nlost-workers\n%d", e.req.Thread, e.req.Task.Key(), answers))
	return "q-" + hex.EncodeToString(sum[:4])
}
