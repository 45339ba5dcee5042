package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"

	"github.com/google/uuid"

	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
	"superstep.dev/serve/record"
)

// assistantBody is what callers say of an assistant.
type assistantBody struct {
	ID          string  `json:"assistant_id"`
	GraphID     string  `json:"graph_id" says:"word"`
	Name        *string `json:"name"`
	Description *string `json:"description" says:"null"`
	Config      object  `json:"config"`
	Context     object  `json:"context"`
	Metadata    object  `json:"metadata"`
	IfExists    string  `json:"if_exists" says:"word"`
}

// change is what the body changes. Config and context say the same thing, so they may not say two.
func (b *assistantBody) change() (assistant.Change, error) {
	var of config
	if json.Unmarshal(raw(b.Config), &of) != nil {
		return assistant.Change{}, refuse(http.StatusUnprocessableEntity, "config does not fit: configurable is an object, tags a list of strings and recursion_limit a number")
	}
	if err := fits(raw(b.Config), reflect.TypeOf(of), "config"); err != nil {
		return assistant.Change{}, err
	}
	own := of.Configurable
	if len(own) > 0 && len(b.Context) > 0 && !bytes.Equal(raw(own), raw(b.Context)) {
		return assistant.Change{}, refuse(http.StatusBadRequest, "config.configurable and context are the same thing: give one of them")
	}
	c := assistant.Change{Graph: b.GraphID, Name: b.Name, Description: b.Description, Config: b.Config, Context: b.Context, Metadata: b.Metadata}
	if len(own) > 0 && len(b.Context) == 0 {
		c.Context = nil
	}
	return c, nil
}

// served refuses a graph that no worker serves.
func (s assistants) served(r *http.Request, graph string) error {
	graphs, err := s.client.Graphs(r.Context())
	if err == nil && !slices.Contains(graphs, graph) {
		err = unknownGraph(graph, graphs)
	}
	return err
}

func (s assistants) createAssistant(w http.ResponseWriter, r *http.Request) error {
	var body assistantBody
	if err := read(w, r, &body); err != nil {
		return err
	}
	change, err := body.change()
	if err != nil {
		return err
	}
	switch {
	case body.GraphID == "":
		return refuse(http.StatusUnprocessableEntity, "graph_id is missing")
	case !slices.Contains([]string{"", "raise", "do_nothing"}, body.IfExists):
		return refuse(http.StatusUnprocessableEntity, "if_exists %q is neither raise nor do_nothing", body.IfExists)
	}
	id, err := uuid.NewV7()
	if err == nil && body.ID != "" {
		if id, err = uuid.Parse(body.ID); err != nil {
			return refuse(http.StatusUnprocessableEntity, "assistant_id %q is no UUID", body.ID)
		}
	}
	if err != nil {
		return err
	}
	if err := s.served(r, body.GraphID); err != nil {
		return err
	}
	change.Metadata, err = marked(r.Context(), access.Resource{Kind: access.Assistants, ID: id.String(), Graph: body.GraphID, Metadata: change.Metadata})
	if err != nil {
		return err
	}
	a, err := s.make(r, assistant.Assistant{ID: id.String(), Name: "Untitled"}.With(change), body.IfExists == "do_nothing")
	if err == nil {
		answer(w, http.StatusOK, a)
	}
	return err
}

// make makes an assistant, unless it is there already, be it as a graph's own.
func (s assistants) make(r *http.Request, a assistant.Assistant, exists bool) (assistant.Assistant, error) {
	own, err := s.ownOf(r.Context(), a.ID)
	if err != nil {
		return a, err
	}
	if own != nil {
		if !exists {
			return a, assistant.ErrExists
		}
		return s.byID(as(r.Context(), access.Assistants, access.Read), a.ID)
	}
	kept, err := s.kept.Create(r.Context(), a, exists)
	if err != nil {
		return a, err
	}
	s.known.note(kept.Line())
	a, _, err = foundFor(as(r.Context(), access.Assistants, access.Read), kept.Latest())
	if err != nil {
		err = assistant.ErrExists // it is somebody else's
	}
	return a, err
}

func (s assistants) patchAssistant(w http.ResponseWriter, r *http.Request) error {
	id, err := idIn(r, "assistant_id")
	if err != nil {
		return err
	}
	var body assistantBody
	if err := read(w, r, &body); err != nil {
		return err
	}
	change, err := body.change()
	if err == nil && body.GraphID != "" {
		err = s.served(r, body.GraphID)
	}
	if err != nil {
		return err
	}
	_, g, err := s.byIDFor(r.Context(), id)
	if err != nil {
		return err
	}
	if change.Metadata, err = g.Set(change.Metadata); err != nil {
		return err
	}
	own, err := s.ownOf(r.Context(), id)
	if err != nil {
		return err
	}
	kept, err := s.kept.Change(r.Context(), id, change, own)
	if err != nil {
		return err
	}
	s.known.note(kept.Line())
	answer(w, http.StatusOK, kept.Latest())
	return nil
}

// deleteAssistant deletes an assistant, and its threads where that is asked for. A graph's own goes back to what it was.
func (s assistants) deleteAssistant(w http.ResponseWriter, r *http.Request) error {
	a, err := s.assistantIn(r)
	if err != nil {
		return err
	}
	if affirmed(r, "delete_threads") {
		if err := s.deleteThreads(r, a.ID); err != nil {
			return err
		}
	}
	kept, err := s.kept.Delete(r.Context(), a.ID)
	if errors.Is(err, assistant.ErrMissing) && a.ID == assistantID(a.Graph) {
		return refuse(http.StatusConflict, "the assistant is the graph's own, and there as long as a worker serves the graph")
	}
	if err != nil {
		return err
	}
	s.known.note(kept.Line())
	if a.ID != assistantID(a.Graph) { // which stays, as it was, and so do the crons that everybody has of it
		if err := (crons(s)).endOf(r.Context(), a); err != nil {
			return err
		}
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// deleteThreads deletes the caller's threads that an assistant has run last.
func (s assistants) deleteThreads(r *http.Request, id string) error {
	g, err := granted(r.Context(), access.Resource{Kind: access.Threads})
	if err != nil {
		return err
	}
	lines, err := s.lines(r.Context(), threadSearch{})
	if err != nil {
		return err
	}
	for _, l := range lines {
		if !g.Finds(l.Metadata) || !bytes.Equal(l.Metadata["assistant_id"], raw(id)) {
			continue
		}
		if err := pruning(s).thread(r.Context(), l.ID); err != nil && !errors.Is(err, record.ErrMissing) {
			return err
		}
	}
	return nil
}

// versionSearch says which versions are asked for.
type versionSearch struct {
	page
	Metadata object `json:"metadata"`
}

// latestBody names the version that is to count.
type latestBody struct {
	Version int `json:"version"`
}

func (s assistants) listVersions(w http.ResponseWriter, r *http.Request) error {
	var q versionSearch
	a, err := s.assistantIn(r)
	if err == nil {
		err = read(w, r, &q)
	}
	if err == nil {
		err = q.check()
	}
	if err != nil {
		return err
	}
	all := []assistant.Assistant{a}
	kept, err := s.kept.Get(r.Context(), a.ID)
	if err == nil {
		all = kept.Versions
	} else if !errors.Is(err, assistant.ErrMissing) {
		return err
	}
	out := []assistant.Assistant{}
	for _, v := range slices.Backward(all) {
		if len(q.Metadata) == 0 || contains(raw(v.Metadata), raw(q.Metadata)) {
			out = append(out, v)
		}
	}
	answer(w, http.StatusOK, selected(pageOf(w, q.page, out), q.Select))
	return nil
}

// setLatest makes a version the one that counts. As clients know it, the answer has the context that counted before; whoever reads
// the assistant after it gets the version's, which is what its runs have.
func (s assistants) setLatest(w http.ResponseWriter, r *http.Request) error {
	var body latestBody
	before, err := s.assistantIn(r)
	if err == nil {
		err = read(w, r, &body)
	}
	if err != nil {
		return err
	}
	if before.ID == assistantID(before.Graph) && before.Version == body.Version {
		answer(w, http.StatusOK, before)
		return nil
	}
	kept, err := s.kept.Latest(r.Context(), before.ID, body.Version)
	if err != nil {
		return err
	}
	s.known.note(kept.Line())
	out := kept.Latest()
	out.Context = before.Context
	answer(w, http.StatusOK, out)
	return nil
}
