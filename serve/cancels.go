package serve

import (
	"context"
	"net/http"
	"slices"

	"superstep.dev/serve/access"
	"superstep.dev/serve/record"
)

// cancels end runs before they have ended by themselves.
type cancels struct{ *Server }

func (s cancels) cancelRun(w http.ResponseWriter, r *http.Request) error {
	action, err := actionIn(r)
	if err != nil {
		return err
	}
	t, run, err := s.runIn(r)
	if err != nil {
		return err
	}
	if t, err = s.records.Cancel(r.Context(), t.ID, by(r.Context()), action, run.ID); err != nil {
		return err
	}
	s.index.note(t.Line())
	if affirmed(r, "wait") {
		answer(w, http.StatusOK, object{})
		return nil
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func actionIn(r *http.Request) (string, error) {
	action := r.URL.Query().Get("action")
	if !slices.Contains([]string{"", record.Interrupt, record.Rollback}, action) {
		return "", refuse(http.StatusUnprocessableEntity, "action %q is neither interrupt nor rollback", action)
	}
	if action == "" {
		action = record.Interrupt
	}
	return action, nil
}

// cancelBody names the runs that are to be cancelled: runs of one thread, or by their status those of all threads.
type cancelBody struct {
	ThreadID string   `json:"thread_id" says:"uuid"`
	RunIDs   []string `json:"run_ids"`
	Status   string   `json:"status" says:"word"`
}

func (s cancels) cancelRuns(w http.ResponseWriter, r *http.Request) error {
	var body cancelBody
	action, err := actionIn(r)
	if err == nil {
		err = read(w, r, &body)
	}
	if err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	if body.ThreadID != "" {
		body.ThreadID, err = kept("thread_id", body.ThreadID)
	}
	if err != nil {
		return err
	}
	if body.Status != "" {
		err = s.cancelAll(r.Context(), action, body.Status)
	} else {
		err = s.cancelOf(r.Context(), body.ThreadID, action, body.RunIDs)
	}
	if err == nil {
		w.WriteHeader(http.StatusNoContent)
	}
	return err
}

// check refuses what names no runs.
func (c *cancelBody) check() error {
	named := c.ThreadID != "" && c.RunIDs != nil
	switch {
	case c.Status != "" && (c.ThreadID != "" || len(c.RunIDs) > 0):
		return refuse(http.StatusUnprocessableEntity, "status says which runs of all threads, thread_id and run_ids which of one: send either")
	case c.Status != "" && !slices.Contains([]string{record.Pending, record.Running, "all"}, c.Status):
		return refuse(http.StatusUnprocessableEntity, "status %q is none of pending, running and all", c.Status)
	case c.Status == "" && !named:
		return refuse(http.StatusUnprocessableEntity, "thread_id and run_ids are needed, or a status")
	case c.Status == "" && len(c.RunIDs) == 0:
		return refuse(http.StatusNotFound, "run_ids names no run")
	}
	return allKept("run_ids", c.RunIDs)
}

func (s cancels) cancelOf(ctx context.Context, threadID, action string, runs []string) error {
	t, _, err := s.recordOf(ctx, threadID)
	if err == nil {
		t, err = s.records.Cancel(ctx, t.ID, by(ctx), action, runs...)
	}
	if err == nil {
		s.index.note(t.Line())
	}
	return err
}

// cancelAll cancels the runs of that status on all threads that the caller finds. A run that ends by itself meanwhile is none.
func (s cancels) cancelAll(ctx context.Context, action, status string) error {
	g, err := granted(ctx, access.Resource{Kind: access.Threads})
	if err != nil {
		return err
	}
	lines, err := s.lines(ctx, threadSearch{})
	if err != nil {
		return err
	}
	found := false
	for _, l := range lines {
		if l.Status != record.Busy || !g.Finds(l.Metadata) {
			continue
		}
		t, _, err := s.recordOf(ctx, l.ID)
		var runs []string
		for _, run := range t.Runs {
			if run.Status == status || status == "all" && !run.Over() {
				runs = append(runs, run.ID)
			}
		}
		if err == nil && len(runs) > 0 {
			found = true
			err = s.cancelOf(ctx, l.ID, action, runs)
		}
		if err != nil && faultOf(err).status != http.StatusNotFound {
			return err
		}
	}
	if !found {
		return refuse(http.StatusNotFound, "no run is under way that may be cancelled")
	}
	return nil
}

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
	if err := allKept("thread_ids", body.ThreadIDs); err != nil {
		return err
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
