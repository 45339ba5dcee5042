package serve

import (
	"context"
	"errors"
	"net/http"

	"superstep.dev/graphadapter"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// mostSteps bounds the supersteps with which a thread is made.
const mostSteps = 100

// steps are the supersteps with which a thread is made, as updates of a graph's state. What does not fit is refused before the thread is
// made.
func (s *Server) steps(ctx context.Context, graph string, all []madeStep) ([][]graphadapter.StateUpdate, error) {
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

// stepped makes the state of a thread that was just made. A thread that has a state keeps it, and one whose state cannot be made is
// deleted.
func (s *Server) stepped(ctx context.Context, t record.Thread, steps [][]graphadapter.StateUpdate) (record.Thread, error) {
	if len(steps) == 0 || len(t.Runs) > 0 || t.Stands != "" {
		return t, nil
	}
	v, err := s.client.Update(ctx, thread.UpdateRequest{Graph: madeFor(t), Thread: t.Under, Updates: steps, ID: "supersteps", By: by(ctx)})
	if err != nil {
		gone, deleteErr := s.records.Delete(ctx, t.ID)
		s.index.note(gone.Line())
		return t, errors.Join(err, deleteErr)
	}
	if t, err = s.records.Note(ctx, t.ID, record.StandsOf(v)); err == nil {
		s.index.note(t.Line())
	}
	return t, err
}
