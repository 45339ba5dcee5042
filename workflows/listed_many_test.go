package workflows_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// attributeMost is the most bytes that the server takes for one search attribute: it ends a run that sends more.
const attributeMost = 2 << 10

// nodesListed are the nodes that lists show of a thread that waits.
func (r *rig) nodesListed(thread string) (names []string) {
	r.t.Helper()
	r.settled(thread)
	_, attributes := r.noted(thread)
	text := attributes[protocol.AttributeNodes]
	if len(text) > attributeMost {
		r.t.Errorf("the nodes take %d bytes", len(text))
	}
	if err := json.Unmarshal([]byte(text), &names); err != nil {
		r.t.Fatalf("the nodes %s: %v", text, err)
	}
	return names
}

// answerTogether answers all that a thread asks by one update.
func (r *rig) answerTogether(thread string, open []pregel.OpenQuestion) {
	r.t.Helper()
	req := protocol.ResumeRequest{ID: "all", By: "somebody"}
	for _, q := range open {
		req.Answers = append(req.Answers, pregel.Answer{QuestionID: q.ID, Value: pregel.Value(`"yes"`)})
	}
	r.taken(thread, req)
}

// TestManyTasksOfANodeAsk: lists show their node once, whatever the number of its tasks, and answers end the run.
func TestManyTasksOfANodeAsk(t *testing.T) {
	t.Parallel()
	const many = 300
	plan := says("plan")
	plan.Branches = []graphadapter.BranchFunc{func(context.Context, graphadapter.State) (targets []pregel.Target, _ error) {
		for i := range many {
			targets = append(targets, pregel.Target{Node: "the one who asks", Send: true, Arg: pregel.Value(fmt.Sprint(i))})
		}
		return targets, nil
	}}
	g := graph("many", map[string]graphadapter.Node{"plan": plan, "the one who asks": asking("x", "sure?")}, []string{"plan", "the one who asks"},
		to(pregel.Start, "plan"))
	g.Spec.Branches = []pregel.Branch{{From: "plan", Targets: []string{"the one who asks"}}}
	r := newRig(t)
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "many", Found: &protocol.Found{Lists: true, Inbox: true}, Input: input(`{}`),
		Durability: graphadapter.DurabilityAsync})
	open := r.asks(thread, many).Questions
	if names := r.nodesListed(thread); !slices.Equal(names, []string{"the one who asks"}) {
		t.Errorf("lists show %q", names)
	}
	r.answerTogether(thread, open)
	if log := string(r.finished(run).Output["log"]); strings.Count(log, "yes") != many {
		t.Errorf("%d of %d answers are in the log", strings.Count(log, "yes"), many)
	}
}

// TestManyNodesAsk: lists show as many of them as the server takes, each as it is named, and answers end the run.
func TestManyNodesAsk(t *testing.T) {
	t.Parallel()
	for what, long := range map[string]string{"plain": strings.Repeat("n", 90), "marked up": strings.Repeat("<", 90), "other letters": strings.Repeat("ß", 45)} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			nodes, order, edges := map[string]graphadapter.Node{}, []string(nil), []pregel.Edge(nil)
			for i := range 60 {
				name := fmt.Sprintf("%s%02d", long, i)
				nodes[name], order, edges = asking("x", "sure?"), append(order, name), append(edges, to(pregel.Start, name))
			}
			r := newRig(t)
			r.work(graph("many", nodes, order, edges...))
			thread := testserver.Queue(t)
			run := r.start(thread, protocol.GraphInput{Graph: "many", Found: &protocol.Found{Lists: true, Inbox: true}, Input: input(`{}`),
				Durability: graphadapter.DurabilityAsync})
			open := r.asks(thread, len(order)).Questions
			names := r.nodesListed(thread)
			if len(names) == 0 || !slices.Equal(names, order[:len(names)]) {
				t.Errorf("lists show %q", names)
			}
			r.answerTogether(thread, open)
			if log := string(r.finished(run).Output["log"]); strings.Count(log, "yes") != len(order) {
				t.Errorf("the run ended with %s", log)
			}
		})
	}
}
