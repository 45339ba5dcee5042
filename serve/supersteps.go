package serve

import (
	"context"
	"net/http"
	"slices"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// making makes threads that have a state from the start.
type making struct{ *Server }

// mostSteps bounds the supersteps with which a thread is made.
const mostSteps = 100

// steps are the supersteps with which a thread is made, as updates of a graph's state. What does not fit is refused before the thread is
// made.
func (s making) steps(ctx context.Context, graph string, all []madeStep) ([][]graphadapter.StateUpdate, error) {
	switch {
	case len(all) == 0:
		return nil, nil
	case len(all) > mostSteps:
		return nil, refuse(http.StatusUnprocessableEntity, "%d supersteps: at most %d", len(all), mostSteps)
	case graph == "":
		return nil, refuse(http.StatusBadRequest, "supersteps need a graph: name it in metadata.graph_id")
	}
	spec, err := s.spec(ctx, graph)
	if err != nil {
		return nil, err
	}
	var out [][]graphadapter.StateUpdate
	for i, step := range all {
		if len(step.Updates) == 0 {
			return nil, refuse(http.StatusUnprocessableEntity, "superstep %d has no updates", i)
		}
		var updates []graphadapter.StateUpdate
		for _, u := range step.Updates {
			if !takesUpdate(spec, u.AsNode) {
				return nil, refuse(http.StatusBadRequest, "superstep %d: graph %q has no node %q", i, graph, u.AsNode)
			}
			one, err := updatesOf(spec, u.Values, u.AsNode)
			if err != nil {
				return nil, err
			}
			updates = append(updates, one...)
		}
		out = append(out, updates)
	}
	return out, nil
}

// takesUpdate reports whether a state can be updated in the name of a node, "" for whichever it can be inferred to be.
func takesUpdate(spec *pregel.Spec, node string) bool {
	return slices.Contains([]string{"", pregel.Start, pregel.End, pregel.AsInput}, node) ||
		slices.ContainsFunc(spec.Nodes, func(n pregel.NodeSpec) bool { return n.Name == node })
}

// stepped makes the state of a thread that was just made for a graph. A thread that has a state, or is another graph's, stays as it is. A
// server that is killed in between leaves a thread without a state, which the same request with if_exists do_nothing then makes.
func (s making) stepped(ctx context.Context, t record.Thread, steps [][]graphadapter.StateUpdate, graph string) (record.Thread, error) {
	if len(steps) == 0 || len(t.Runs) > 0 || t.Stands != "" || madeFor(t) != graph {
		return t, nil
	}
	v, err := s.client.Update(ctx, thread.UpdateRequest{Graph: graph, Thread: t.Under, Updates: steps, ID: "supersteps", By: by(ctx)})
	if err != nil {
		return t, err
	}
	if t, err = s.records.Note(ctx, t.ID, record.StandsOf(v)); err == nil {
		s.index.note(t.Line())
	}
	return t, err
}
