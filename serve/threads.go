package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"

	"superstep.dev/serve/access"
	"superstep.dev/serve/record"
)

func (s *Server) threadRoutes() []route {
	return []route{
		{"POST", "/threads", "Makes a thread", s.createThread},
		{"POST", "/threads/search", "Threads by metadata and status", s.searchThreads},
		{"POST", "/threads/count", "How many threads there are", s.countThreads},
		{"POST", "/threads/prune", "Deletes the threads of a list", pruning{s}.threads},
		{"GET", "/threads/{thread_id}", "A thread", s.getThread},
		{"PATCH", "/threads/{thread_id}", "Merges metadata", s.patchThread},
		{"DELETE", "/threads/{thread_id}", "Deletes a thread with its runs and checkpoints", s.deleteThread},
		{"POST", "/threads/{thread_id}/copy", "Copies a thread that rests", s.copyThread},
	}
}

// record returns the record of the thread that a path names.
func (s *Server) record(r *http.Request) (record.Thread, error) {
	t, _, err := s.recordFor(r)
	return t, err
}

// recordFor returns the record of the thread that a path names, and what the caller is granted.
func (s *Server) recordFor(r *http.Request) (record.Thread, access.Grant, error) {
	id, err := threadIn(r)
	if err != nil {
		return record.Thread{}, access.Grant{}, err
	}
	return s.recordOf(r.Context(), id)
}

// recordOf returns the record of a thread that the caller finds.
func (s *Server) recordOf(ctx context.Context, id string) (record.Thread, access.Grant, error) {
	t, err := s.records.Get(ctx, id)
	if errors.Is(err, record.ErrMissing) {
		err = refuse(http.StatusNotFound, "there is no thread %s", id)
	}
	if err != nil {
		return t, access.Grant{}, err
	}
	g, err := mayFind(ctx, resourceOf(t))
	if err != nil {
		return record.Thread{}, g, err
	}
	return t, g, nil
}

func resourceOf(t record.Thread) access.Resource {
	return access.Resource{Kind: access.Threads, ID: t.ID, Graph: t.Graph, Metadata: t.Metadata}
}

// threadBody is what callers say of a thread that is made.
type threadBody struct {
	ThreadID string `json:"thread_id"`
	Metadata object `json:"metadata"`
	IfExists string `json:"if_exists" says:"word"`
	// TTL is taken, and not acted upon: threads stay until they are deleted.
	TTL threadTTL `json:"ttl"`
	// Steps make a state without a run: one checkpoint each.
	Steps []madeStep `json:"supersteps"`
}

// madeStep is what one step of a state that is made without a run writes.
type madeStep struct {
	Updates []stepUpdate `json:"updates" says:"always"`
}

// threadTTL is for how long a thread is wanted.
type threadTTL struct {
	Strategy string  `json:"strategy" says:"word"`
	Minutes  float64 `json:"ttl"`
}

// check refuses what is to happen then and is not known.
func (t threadTTL) check() error {
	if !slices.Contains([]string{"", "delete", "keep_latest"}, t.Strategy) {
		return refuse(http.StatusUnprocessableEntity, "ttl.strategy %q is neither delete nor keep_latest", t.Strategy)
	}
	return nil
}

type stepUpdate struct {
	Values json.RawMessage `json:"values" says:"null"`
	// Command writes too. It routes and answers nothing: that is refused.
	Command *command `json:"command" says:"null"`
	AsNode  string   `json:"as_node" says:"always"`
}

// metadataBody is metadata that is merged into what is there.
type metadataBody struct {
	Metadata object    `json:"metadata"`
	TTL      threadTTL `json:"ttl"`
}

func (s *Server) createThread(w http.ResponseWriter, r *http.Request) error {
	var body threadBody
	if err := read(w, r, &body); err != nil {
		return err
	}
	if err := body.TTL.check(); err != nil {
		return err
	}
	switch {
	case !slices.Contains([]string{"", "raise", "do_nothing"}, body.IfExists):
		return refuse(http.StatusUnprocessableEntity, "if_exists %q is neither raise nor do_nothing", body.IfExists)
	case body.ThreadID == "":
		id, err := uuid.NewV7()
		if err != nil {
			return err
		}
		body.ThreadID = id.String()
	}
	var err error
	if body.ThreadID, err = kept("thread_id", body.ThreadID); err != nil {
		return err
	}
	metadata, err := marked(r.Context(), access.Resource{Kind: access.Threads, ID: body.ThreadID, Metadata: body.Metadata})
	if err != nil {
		return err
	}
	graph := object(metadata).text("graph_id")
	steps, err := making{s}.steps(r.Context(), graph, body.Steps)
	if err != nil {
		return err
	}
	fresh := false
	if len(steps) > 0 {
		_, err := s.records.Get(r.Context(), body.ThreadID)
		fresh = errors.Is(err, record.ErrMissing)
	}
	t, err := s.records.Create(r.Context(), body.ThreadID, metadata, body.IfExists == "do_nothing")
	if err != nil {
		return err
	}
	s.index.note(t.Line())
	if _, err := mayFind(as(r.Context(), access.Threads, access.Read), resourceOf(t)); err != nil {
		return record.ErrExists // it is somebody else's
	}
	if t, err = (making{s}).stepped(r.Context(), t, steps, graph); err != nil {
		if fresh {
			making{s}.unmake(r, t)
		}
		return err
	}
	return s.showThread(w, r, t)
}

// unmake deletes a thread that was just made by a request that is refused.
func (s making) unmake(r *http.Request, t record.Thread) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(r.Context()), leaving)
	defer stop()
	if err := pruning(s).thread(ctx, t.ID); err != nil {
		s.log.Warnw("a thread whose state was refused is left behind", "thread", t.ID, "error", err)
	}
}

func (s *Server) showThread(w http.ResponseWriter, r *http.Request, t record.Thread) error {
	out, err := s.threadOf(r.Context(), t)
	if err == nil {
		answer(w, http.StatusOK, out)
	}
	return err
}

func (s *Server) getThread(w http.ResponseWriter, r *http.Request) error {
	t, err := s.record(r)
	if err != nil {
		return err
	}
	return s.showThread(w, r, t)
}

func (s *Server) patchThread(w http.ResponseWriter, r *http.Request) error {
	var body metadataBody
	t, g, err := s.recordFor(r)
	if err == nil {
		err = read(w, r, &body)
	}
	if err == nil {
		err = body.TTL.check()
	}
	if err != nil {
		return err
	}
	metadata, err := g.Set(body.Metadata)
	if err != nil {
		return err
	}
	t, err = s.records.Patch(r.Context(), t.ID, metadata)
	if err != nil {
		return err
	}
	s.index.note(t.Line())
	if wantsNothing(r) {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	return s.showThread(w, r, t)
}

func (s *Server) deleteThread(w http.ResponseWriter, r *http.Request) error {
	t, err := s.record(r)
	if err != nil {
		return err
	}
	if err := (pruning{s}).thread(r.Context(), t.ID); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// threadFilter says which threads are searched for.
type threadFilter struct {
	Metadata object `json:"metadata"`
	Values   object `json:"values"`
	Status   string `json:"status" says:"word"`
}

// threadCount is the body of a request to count: that of a search, without what a page is.
type threadCount threadFilter

type threadSearch struct {
	page
	threadFilter
	IDs []string `json:"ids"`
	// Extract are paths into a thread, by the names under which what is there is told.
	Extract map[string]string `json:"extract"`
}

// threadSearchIn reads the body of a search.
func threadSearchIn(w http.ResponseWriter, r *http.Request) (q threadSearch, err error) {
	if err := read(w, r, &q); err != nil {
		return q, err
	}
	if err := errors.Join(q.check("thread_id", "status", "created_at", "updated_at", "state_updated_at"), q.selects(of[threadOut](), "context")); err != nil {
		return q, err
	}
	if err := q.checkExtract(); err != nil {
		return q, err
	}
	if err := allKept("ids", q.IDs); err != nil {
		return q, refuse(http.StatusBadRequest, "%v", err)
	}
	return q, nil
}

// foundThreads are the threads that a search finds, as the index has them, in order.
func (s *Server) foundThreads(r *http.Request, q threadSearch) ([]record.Line, error) {
	if !slices.Contains([]string{"", record.Idle, record.Busy, record.Waits, record.Errors}, q.Status) {
		return nil, refuse(http.StatusUnprocessableEntity, "status %q is none of idle, busy, interrupted and error", q.Status)
	}
	g, err := granted(r.Context(), access.Resource{Kind: access.Threads})
	if err != nil {
		return nil, err
	}
	lines, err := s.lines(r.Context(), q)
	if err != nil {
		return nil, err
	}
	wanted := raw(q.Metadata)
	lines = slices.DeleteFunc(lines, func(l record.Line) bool {
		return !g.Finds(l.Metadata) || len(q.IDs) > 0 && !slices.Contains(q.IDs, l.ID) || q.Status != "" && l.Status != q.Status ||
			len(q.Metadata) > 0 && !contains(raw(l.Metadata), wanted)
	})
	if len(q.Values) > 0 {
		lines, err = s.withValues(r.Context(), lines, raw(q.Values))
	}
	slices.SortFunc(lines, q.order)
	return lines, err
}

// lines are all threads, or those whose ids are asked for.
func (s *Server) lines(ctx context.Context, q threadSearch) ([]record.Line, error) {
	if len(q.IDs) == 0 {
		return s.index.lines(ctx, s.records.List, func(ctx context.Context, id string) (record.Line, error) {
			t, err := s.records.Get(ctx, id)
			return t.Line(), err
		})
	}
	var out []record.Line
	for _, id := range slices.Compact(slices.Sorted(slices.Values(q.IDs[:min(len(q.IDs), mostListed)]))) {
		t, err := s.records.Get(ctx, id)
		if errors.Is(err, record.ErrMissing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, t.Line())
	}
	return out, nil
}

// withValues leaves the threads whose values have what is wanted. Each thread's state is read: so many are looked at, and no more.
func (s *Server) withValues(ctx context.Context, lines []record.Line, wanted json.RawMessage) ([]record.Line, error) {
	if len(lines) > mostListed {
		return nil, refuse(http.StatusUnprocessableEntity, "a search by values looks at %d threads at most: narrow it by metadata or status", mostListed)
	}
	var out []record.Line
	for _, l := range lines {
		t, err := s.threadOf(ctx, record.Thread{ID: l.ID, Under: l.Under})
		if err != nil {
			return nil, err
		}
		if contains(raw(t.Values), wanted) {
			out = append(out, l)
		}
	}
	return out, nil
}

// order sorts by the last change, newest first, unless it is asked otherwise.
func (q threadSearch) order(a, b record.Line) int {
	by := 0
	switch cmp.Or(q.SortBy, "updated_at") {
	case "thread_id":
		by = strings.Compare(a.ID, b.ID)
	case "status":
		by = strings.Compare(a.Status, b.Status)
	case "updated_at":
		by = a.Updated.Compare(b.Updated)
	case "state_updated_at":
		by = a.Moved.Compare(b.Moved)
	}
	by = cmp.Or(by, a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	if q.SortOrder == "asc" {
		return by
	}
	return -by
}

func (s *Server) searchThreads(w http.ResponseWriter, r *http.Request) error {
	q, err := threadSearchIn(w, r)
	if err != nil {
		return err
	}
	lines, err := s.foundThreads(r, q)
	if err != nil {
		return err
	}
	out := []threadOut{}
	for _, l := range pageOf(w, q.page, lines) {
		t, err := s.records.Get(r.Context(), l.ID)
		if errors.Is(err, record.ErrMissing) {
			continue // deleted by another server
		}
		if err != nil {
			return err
		}
		shown, err := s.threadOf(r.Context(), t)
		if err != nil {
			return err
		}
		shown.Extracted = q.extracted(shown)
		out = append(out, shown)
	}
	fields := q.Select
	if len(fields) > 0 && len(q.Extract) > 0 {
		fields = append(fields, "extracted")
	}
	answer(w, http.StatusOK, selected(out, fields))
	return nil
}

func (s *Server) countThreads(w http.ResponseWriter, r *http.Request) error {
	var q threadCount
	if err := read(w, r, &q); err != nil {
		return err
	}
	lines, err := s.foundThreads(r, threadSearch{threadFilter: threadFilter(q)})
	if err == nil {
		answer(w, http.StatusOK, len(lines))
	}
	return err
}

// copyThread makes a thread with the state and the history of another one. It stands where that one stands now: nothing runs until
// somebody goes on with it.
func (s *Server) copyThread(w http.ResponseWriter, r *http.Request) error {
	id, err := threadIn(r)
	if err != nil {
		return err
	}
	t, _, err := s.recordOf(as(r.Context(), access.Threads, access.Read), id)
	if err == nil {
		t.Metadata, err = marked(r.Context(), access.Resource{Kind: access.Threads, Graph: t.Graph, Metadata: t.Metadata})
	}
	if err != nil {
		return err
	}
	own, err := uuid.NewV7()
	if err != nil {
		return err
	}
	made, err := s.records.Copy(r.Context(), own.String(), t, by(r.Context()))
	if err != nil {
		return err
	}
	s.index.note(made.Line())
	return s.showThread(w, r, made)
}
