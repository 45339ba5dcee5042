package serve

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/serve/access"
	"superstep.dev/serve/record"
)

func (s *Server) runRoutes() []route {
	return []route{
		{"POST", "/threads/{thread_id}/runs", "Asks for a run", s.createRun},
		{"POST", "/threads/{thread_id}/runs/wait", "Asks for a run, and waits for its values", s.waitRun},
		{"POST", "/runs", "Asks for a run on a thread of its own", s.createRun},
		{"POST", "/runs/wait", "Asks for a run on a thread of its own, and waits for its values", s.waitRun},
		{"POST", "/runs/batch", "Asks for runs, each on a thread of its own", s.batchRuns},
		{"POST", "/runs/cancel", "Cancels runs", cancels{s}.cancelRuns},
		{"GET", "/threads/{thread_id}/runs", "Runs, newest first", s.listRuns},
		{"GET", "/threads/{thread_id}/runs/{run_id}", "A run", s.getRun},
		{"DELETE", "/threads/{thread_id}/runs/{run_id}", "Forgets a run that has ended", s.deleteRun},
		{"GET", "/threads/{thread_id}/runs/{run_id}/join", "Waits for a run's values", s.joinRun},
		{"POST", "/threads/{thread_id}/runs/{run_id}/cancel", "Cancels a run", cancels{s}.cancelRun},
	}
}

// runOut is a run.
type runOut struct {
	ID        string          `json:"run_id"`
	Thread    string          `json:"thread_id"`
	Assistant string          `json:"assistant_id"`
	Metadata  object          `json:"metadata"`
	Status    string          `json:"status"`
	Kwargs    json.RawMessage `json:"kwargs"`
	Strategy  string          `json:"multitask_strategy"`
	Created   shownTime       `json:"created_at"`
	Updated   shownTime       `json:"updated_at"`
}

func runOf(t record.Thread, r record.Run) runOut {
	return runOut{ID: r.ID, Thread: t.ID, Assistant: r.Assistant, Metadata: runMetadata(t, r), Status: r.Status, Kwargs: r.Kwargs, Strategy: r.Strategy,
		Created: shownTime(r.Created), Updated: shownTime(r.Updated)}
}

// runMetadata is what is known of a run: what was given with it, and under that what the thread has.
func runMetadata(t record.Thread, r record.Run) object {
	out := object{}
	maps.Copy(out, t.Metadata)
	maps.Copy(out, r.Metadata)
	out["assistant_id"] = raw(r.Assistant)
	return out
}

func (s *Server) createRun(w http.ResponseWriter, r *http.Request) error {
	var body runRequest
	if err := read(w, r, &body); err != nil {
		return err
	}
	a, err := s.ask(r, body, "")
	if err != nil {
		return err
	}
	at := a.location()
	if a.apart {
		at = "/runs/" + a.run.ID
	}
	w.Header().Set("Content-Location", at)
	answer(w, http.StatusOK, runOf(a.thread, *a.thread.Run(a.run.ID)))
	return nil
}

// batchRuns asks for runs. Nothing runs where one of them is refused.
func (s *Server) batchRuns(w http.ResponseWriter, r *http.Request) error {
	bodies, err := readBatch(w, r)
	if err != nil {
		return err
	}
	all := make([]*asking, len(bodies))
	for i, b := range bodies {
		if all[i], err = takenIn(r, s, b); err != nil {
			return refusedAt(i, err)
		}
	}
	out := []runOut{}
	for _, a := range all {
		if err := a.begin(r.Context(), s, ""); err != nil {
			return err
		}
		out = append(out, runOf(a.thread, *a.thread.Run(a.run.ID)))
	}
	answer(w, http.StatusOK, out)
	return nil
}

// readBatch reads a body that asks for several runs. How many they are is known before they are decoded, which takes more room than their
// text.
func readBatch(w http.ResponseWriter, r *http.Request) ([]runRequest, error) {
	text, err := readText(w, r)
	if err != nil {
		return nil, err
	}
	var each []json.RawMessage
	if json.Unmarshal(text, &each) != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "the body is no list of runs")
	}
	if len(each) == 0 || len(each) > mostBatched {
		return nil, refuse(http.StatusUnprocessableEntity, "%d runs at once: at least 1 and at most %d", len(each), mostBatched)
	}
	bodies := make([]runRequest, len(each))
	for i, one := range each {
		err := decode(one, &bodies[i])
		if err == nil {
			err = bodies[i].check()
		}
		if err != nil {
			return nil, refusedAt(i, err)
		}
	}
	return bodies, nil
}

// refusedAt says which of several runs is refused.
func refusedAt(i int, err error) error {
	if f := faultOf(err); f.status < http.StatusInternalServerError {
		return refuse(f.status, "run %d of the list: %s", i, f.detail)
	}
	return err
}

// mostBatched is how many runs may be asked for at once.
const mostBatched = 100

func (s *Server) listRuns(w http.ResponseWriter, r *http.Request) error {
	t, err := s.record(r)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	p := page{Select: listed(r, "select"), empty: true}
	for name, into := range map[string]*int{"limit": new(int), "offset": &p.Offset} {
		if given := query.Get(name); given != "" {
			if *into, err = strconv.Atoi(given); err != nil {
				return refuse(http.StatusUnprocessableEntity, "%s %q is no number", name, given)
			}
			if name == "limit" {
				p.Limit = into
			}
		}
	}
	if err := errors.Join(p.check(), p.selects(of[runOut](), "cancel_reason")); err != nil {
		return err
	}
	status := query.Get("status")
	if status != "" && !slices.Contains(statusesOfRuns, status) {
		return refuse(http.StatusUnprocessableEntity, "status %q is none of %s", status, strings.Join(statusesOfRuns, ", "))
	}
	out := []runOut{}
	byAge := slices.Clone(t.Runs) // one that was put off came before those that went first
	slices.SortStableFunc(byAge, func(a, b record.Run) int { return a.Created.Compare(b.Created) })
	for _, run := range slices.Backward(byAge) {
		if status == "" || status == run.Status {
			out = append(out, runOf(t, run))
		}
	}
	answer(w, http.StatusOK, selected(pageOf(w, p, out), p.Select))
	return nil
}

// statusesOfRuns are those that clients know. No run here has the last one.
var statusesOfRuns = []string{record.Pending, record.Running, record.Success, record.Failed, record.Interrupted, "timeout"}

// runIn is the run that a path names, nil when the thread has none such.
func (s *Server) runIn(r *http.Request) (record.Thread, *record.Run, error) {
	id, err := idIn(r, "run_id")
	if err != nil {
		return record.Thread{}, nil, err
	}
	t, err := s.record(r)
	if err != nil {
		return t, nil, err
	}
	run := t.Run(id)
	if run == nil {
		err = refuse(http.StatusNotFound, "the thread has no run %s", id)
	}
	return t, run, err
}

func (s *Server) getRun(w http.ResponseWriter, r *http.Request) error {
	t, run, err := s.runIn(r)
	if err == nil {
		s.index.note(t.Line())
		answer(w, http.StatusOK, runOf(t, *run))
	}
	return err
}

func (s *Server) deleteRun(w http.ResponseWriter, r *http.Request) error {
	t, run, err := s.runIn(r)
	if err != nil {
		return err
	}
	if !run.Over() {
		if _, err := s.records.Cancel(r.Context(), t.ID, by(r.Context()), record.Interrupt, run.ID); err != nil && !errors.Is(err, record.ErrMissing) {
			return err
		}
	}
	if _, err := s.records.Remove(r.Context(), t.ID, run.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// joined is the run that a path names, to be waited for, and whether it is to be cancelled when the caller goes: that takes more than
// reading it.
func (s *Server) joined(r *http.Request) (t record.Thread, run *record.Run, cancel bool, err error) {
	if cancel = affirmed(r, "cancel_on_disconnect"); cancel {
		r = r.WithContext(as(r.Context(), access.Threads, access.Run))
	}
	t, run, err = s.runIn(r)
	return t, run, cancel, err
}

func (s *Server) joinRun(w http.ResponseWriter, r *http.Request) error {
	t, run, cancel, err := s.joined(r)
	if err != nil {
		return err
	}
	end := make(chan outcome, 1)
	go func() { end <- untilOver(r.Context(), s.records, t, run.ID) }()
	return s.awaitValues(w, r, locationOf(t.ID, run.ID), run.ID, end, func() { s.leave(t.ID, run.ID, by(r.Context()), cancel) })
}
