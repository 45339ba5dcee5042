package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
)

// verdict is what a person said about a task that keeps losing its workers.
type verdict int

const (
	goOn verdict = iota
	givenUp
)

// lostTask is a task, of that thread, with so many losses in a row (graphadapter.Losses.Counted). It is suspect when the thread
// continues a run that ended with it.
type lostTask struct {
	*pregel.Task
	thread  string
	lost    int
	suspect bool
}

func (t lostTask) ask() (*pregel.Question, verdict) {
	asked, last := 0, goOn
	for range t.Answers {
		answer, ok := t.answerTo(t.questionID(asked))
		if !ok {
			break
		}
		if last = goOn; string(answer) == "false" {
			last = givenUp
		}
		asked++
	}
	if last == givenUp && !t.suspect {
		return nil, givenUp
	}
	if t.lost < graphadapter.MostLosses {
		return nil, goOn
	}
	text, _ := json.Marshal(fmt.Sprintf("%d workers in a row were lost while running node %s of thread %s. Run it again?",
		graphadapter.MostLosses, t.Node, t.thread))
	return &pregel.Question{ID: t.questionID(asked), Key: taskrun.LostWorkersKey, Value: text,
		Schema: pregel.Value(`{"type":"boolean"}`)}, goOn
}

func (t lostTask) answerTo(question string) (pregel.Value, bool) {
	for _, a := range t.Answers {
		if a.QuestionID == question {
			return a.Value, true
		}
	}
	return nil, false
}

// questionID differs each time the question comes up on one task: after "run it again" it may come up once more.
func (t lostTask) questionID(asked int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\nlost-workers\n%d", t.thread, t.Key(), asked))
	return "q-" + hex.EncodeToString(sum[:4])
}

// lostFor is the failure of a task that a person gave up.
func lostFor(graph, node string) *pregel.NodeError {
	return &pregel.NodeError{Type: graphadapter.LostWorkersType, Graph: graph, Node: node,
		Message: fmt.Sprintf("given up after %d lost workers in a row", graphadapter.MostLosses)}
}

// Stored reads what the heartbeats of activities have stored. The server forgets it when it is asked to cancel an activity
// that no worker has at that moment, so a run asks before.
func (n *Nodes) Stored(ctx context.Context, req segment.StoredRequest) (segment.StoredReply, error) {
	described, err := n.client.DescribeWorkflowExecution(ctx, req.Thread, req.Run)
	if err != nil {
		return segment.StoredReply{}, err
	}
	found, sizes := map[string]segment.Stored{}, map[string]int{}
	for _, pending := range described.GetPendingActivities() {
		id, details := pending.GetActivityId(), pending.GetHeartbeatDetails()
		if !slices.Contains(req.ActivityIDs, id) {
			continue
		}
		one := segment.Stored{Begun: begun(pending), Known: details != nil}
		if err := n.converter.FromPayloads(details, &one.Progress, &one.Record); err != nil {
			return segment.StoredReply{}, fmt.Errorf("what activity %q of thread %s stored cannot be read (is its codec "+
				"configured?): %w", id, req.Thread, err)
		}
		found[id], sizes[id] = one, details.Size()
	}
	return req.Page(found, sizes), nil
}

// begun counts the executions of an activity that a worker began.
func begun(a *workflowpb.PendingActivityInfo) int32 {
	switch a.GetState() {
	case enumspb.PENDING_ACTIVITY_STATE_SCHEDULED, enumspb.PENDING_ACTIVITY_STATE_PAUSED:
		return a.GetAttempt() - 1 // this one waits for a worker
	}
	return a.GetAttempt()
}
