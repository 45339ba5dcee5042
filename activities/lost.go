package activities

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

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

// lostWorkers returns the question to ask when too many workers were lost in a row on this task, and what was last said
// about it. A "no" ends the task; it stands until the failed run is retried, which is a person's word too.
func (e *execution) lostWorkers() (*pregel.Question, verdict) {
	asked, last := 0, goOn
	for {
		answer, ok := e.answerTo(e.lostWorkersID(asked))
		if !ok {
			break
		}
		if last = goOn; string(answer) == "false" {
			last = givenUp
		}
		asked++
	}
	if last == givenUp && !e.req.Suspect {
		return nil, givenUp
	}
	if e.owner.workersLost() < lostWorkersBound {
		return nil, goOn
	}
	text, _ := json.Marshal(fmt.Sprintf("%d workers in a row were lost while running node %s of thread %s. Run it again?",
		lostWorkersBound, e.req.Task.Node, e.req.Thread))
	return &pregel.Question{ID: e.lostWorkersID(asked), Key: "superstep.lost-workers", Value: text,
		Schema: pregel.Value(`{"type":"boolean"}`)}, goOn
}

func (e *execution) answerTo(question string) (pregel.Value, bool) {
	for _, a := range e.req.Task.Answers {
		if a.QuestionID == question {
			return a.Value, true
		}
	}
	return nil, false
}

// lostWorkersID differs each time the question comes up on one task: after "run it again" it may come up once more.
func (e *execution) lostWorkersID(asked int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\nlost-workers\n%d", e.req.Thread, e.req.Task.Key(), asked))
	return "q-" + hex.EncodeToString(sum[:4])
}
