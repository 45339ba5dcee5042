package serve

import (
	"context"
	"net/http"

	"github.com/google/uuid"
)

// pruneBody names the threads that are to be pruned.
type pruneBody struct {
	ThreadIDs []string `json:"thread_ids" says:"always"`
	// Strategy is delete, the default: checkpoints of a thread that stays are its history, and stay.
	Strategy string `json:"strategy" says:"word"`
}

// prunedOut says how many threads were deleted.
type prunedOut struct {
	Count int `json:"pruned_count"`
}

// pruning deletes threads.
type pruning struct{ *Server }

// threads deletes the threads of a list. Those that are not there, or not there for the caller, are passed over.
func (s pruning) threads(w http.ResponseWriter, r *http.Request) error {
	var body pruneBody
	if err := read(w, r, &body); err != nil {
		return err
	}
	switch {
	case body.Strategy != "" && body.Strategy != "delete":
		return refuse(http.StatusUnprocessableEntity, "strategy %q is not delete, the one that there is", body.Strategy)
	case len(body.ThreadIDs) > mostListed:
		return refuse(http.StatusUnprocessableEntity, "%d threads at once: at most %d", len(body.ThreadIDs), mostListed)
	}
	for _, id := range body.ThreadIDs {
		if _, err := uuid.Parse(id); err != nil {
			return refuse(http.StatusUnprocessableEntity, "thread_ids: %q is no UUID", id)
		}
	}
	var out prunedOut
	for _, id := range body.ThreadIDs {
		t, _, err := s.recordOf(r.Context(), id)
		if err == nil {
			err = s.thread(r.Context(), t.ID)
		}
		switch {
		case err == nil:
			out.Count++
		case faultOf(err).status != http.StatusNotFound:
			return err
		}
	}
	answer(w, http.StatusOK, out)
	return nil
}

// thread deletes one thread.
func (s pruning) thread(ctx context.Context, id string) error {
	t, err := s.records.Delete(ctx, id)
	if err == nil {
		s.index.note(t.Line())
	}
	return err
}
