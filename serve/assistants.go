package serve

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"superstep.dev/serve/access"
	"superstep.dev/serve/assistant"
	"superstep.dev/thread"
)

// assistantID is the id of a graph's own assistant: the same wherever the graph is served.
func assistantID(graph string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("superstep:graph:"+graph)).String()
}

// made is when assistants of the system were made: they always were.
var made = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// assistantOf is the assistant that each graph has of itself.
func assistantOf(graph string) assistant.Assistant {
	return assistant.Assistant{ID: assistantID(graph), Graph: graph, Config: object{}, Context: object{}, Metadata: object{"created_by": raw("system")},
		Name: graph, Created: made, Updated: made, Version: 1}
}

// assistants are graphs as clients see them: each graph's own, which is kept only once it was changed, and those that were made.
type assistants struct{ *Server }

func (s assistants) routes() []route {
	return []route{
		{"POST", "/assistants", "Makes an assistant", s.createAssistant},
		{"POST", "/assistants/search", "Assistants", s.searchAssistants},
		{"POST", "/assistants/count", "How many assistants there are", s.countAssistants},
		{"GET", "/assistants/{assistant_id}", "An assistant", s.getAssistant},
		{"PATCH", "/assistants/{assistant_id}", "Makes a new version of an assistant", s.patchAssistant},
		{"DELETE", "/assistants/{assistant_id}", "Deletes an assistant with its versions", s.deleteAssistant},
		{"POST", "/assistants/{assistant_id}/versions", "The versions of an assistant, newest first", s.listVersions},
		{"POST", "/assistants/{assistant_id}/latest", "Makes a version the one that counts", s.setLatest},
		{"GET", "/assistants/{assistant_id}/graph", "The nodes and edges of a graph", s.getGraph},
		{"GET", "/assistants/{assistant_id}/schemas", "JSON schemas of a graph's input, output, state and context", s.getSchemas},
		{"GET", "/assistants/{assistant_id}/subgraphs", "The schemas of a graph's subgraphs", s.getSubgraphs},
		{"GET", "/assistants/{assistant_id}/subgraphs/{namespace}", "The schemas of a subgraph", s.getSubgraphs},
	}
}

// ownOf is the assistant of that id which a graph has of itself, nil when no worker serves such a graph.
func (s assistants) ownOf(ctx context.Context, id string) (*assistant.Assistant, error) {
	graphs, err := s.client.Graphs(ctx)
	for _, g := range graphs {
		if assistantID(g) == id {
			a := assistantOf(g)
			return &a, nil
		}
	}
	return nil, err
}

// byID finds an assistant.
func (s assistants) byID(ctx context.Context, id string) (assistant.Assistant, error) {
	a, _, err := s.byIDFor(ctx, id)
	return a, err
}

// byIDFor finds an assistant, and what the caller is granted.
func (s assistants) byIDFor(ctx context.Context, id string) (assistant.Assistant, access.Grant, error) {
	kept, err := s.kept.Get(ctx, id)
	if err == nil {
		return foundFor(ctx, kept.Latest())
	}
	if !errors.Is(err, assistant.ErrMissing) {
		return assistant.Assistant{}, access.Grant{}, err
	}
	own, err := s.ownOf(ctx, id)
	if err == nil && own == nil {
		err = refuse(http.StatusNotFound, "there is no assistant %s", id)
	}
	if err != nil {
		return assistant.Assistant{}, access.Grant{}, err
	}
	return foundFor(ctx, *own)
}

// foundFor is an assistant that is there, if it is there for the caller.
func foundFor(ctx context.Context, a assistant.Assistant) (assistant.Assistant, access.Grant, error) {
	g, err := mayFind(ctx, access.Resource{Kind: access.Assistants, ID: a.ID, Graph: a.Graph, System: a.ID == assistantID(a.Graph), Metadata: a.Metadata})
	if err != nil {
		return assistant.Assistant{}, g, err
	}
	return a, g, nil
}

// named finds the assistant that a run is asked of: by its id, or by the graph's name.
func (s assistants) named(ctx context.Context, name string) (assistant.Assistant, error) {
	if id, err := uuid.Parse(name); err == nil {
		return s.byID(ctx, id.String())
	}
	if _, err := s.spec(ctx, name); errors.Is(err, thread.ErrNoWorker) {
		if _, none := s.client.Graphs(ctx); none != nil {
			return assistant.Assistant{}, none
		}
		return assistant.Assistant{}, refuse(http.StatusUnprocessableEntity, "no worker serves the graph %q", name)
	} else if err != nil {
		return assistant.Assistant{}, err
	}
	kept, err := s.kept.Get(ctx, assistantID(name))
	a := assistantOf(name)
	if err == nil {
		a = kept.Latest()
	} else if !errors.Is(err, assistant.ErrMissing) {
		return assistant.Assistant{}, err
	}
	a, _, err = foundFor(ctx, a)
	return a, err
}

// unknownGraph is the refusal of a graph that no worker serves, as clients know it.
func unknownGraph(graph string, served []string) error {
	names := make([]string, len(served))
	for i, g := range served {
		names[i] = "'" + g + "'"
	}
	slices.Sort(names)
	return refuse(http.StatusNotFound, "Graph '%s' not found. Expected one of: [%s]", graph, strings.Join(names, ", "))
}

// assistantFilter says which assistants are searched for.
type assistantFilter struct {
	Metadata object `json:"metadata"`
	GraphID  string `json:"graph_id" says:"word"`
	Name     string `json:"name"`
}

// assistantCount is the body of a request to count: that of a search, without what a page is.
type assistantCount assistantFilter

type assistantSearch struct {
	page
	assistantFilter
}

// matches reports whether an assistant is searched for.
func (q *assistantFilter) matches(l assistant.Line) bool {
	return (q.GraphID == "" || l.Graph == q.GraphID) && strings.Contains(strings.ToLower(l.Name), strings.ToLower(q.Name)) &&
		(len(q.Metadata) == 0 || contains(raw(l.Metadata), raw(q.Metadata)))
}

// order sorts newest first unless it is asked otherwise.
func (q *assistantSearch) order(a, b assistant.Line) int {
	by := 0
	switch q.SortBy {
	case "assistant_id":
		by = strings.Compare(a.ID, b.ID)
	case "name":
		by = strings.Compare(a.Name, b.Name)
	case "graph_id":
		by = strings.Compare(a.Graph, b.Graph)
	case "updated_at":
		by = a.Updated.Compare(b.Updated)
	}
	by = cmp.Or(by, a.Created.Compare(b.Created), strings.Compare(b.Name, a.Name), bytes.Compare([]byte(a.ID), []byte(b.ID)))
	if q.SortOrder == "asc" {
		return by
	}
	return -by
}

// foundAssistants are those that a search finds, in order. Graphs' own are among them whether they are kept or not.
func (s assistants) foundAssistants(r *http.Request, q assistantSearch) ([]assistant.Line, error) {
	g, err := granted(r.Context(), access.Resource{Kind: access.Assistants})
	if err != nil {
		return nil, err
	}
	graphs, err := s.client.Graphs(r.Context())
	if err != nil && !errors.Is(err, thread.ErrNoWorker) {
		return nil, err
	}
	lines, err := s.known.lines(r.Context(), s.kept.List, func(ctx context.Context, id string) (assistant.Line, error) {
		kept, err := s.kept.Get(ctx, id)
		if err != nil {
			return assistant.Line{}, err
		}
		return kept.Line(), nil
	})
	if err != nil {
		return nil, err
	}
	for _, g := range graphs {
		if id := assistantID(g); !slices.ContainsFunc(lines, func(l assistant.Line) bool { return l.ID == id }) {
			a := assistantOf(g)
			lines = append(lines, assistant.Line{ID: id, Graph: g, Name: g, Metadata: a.Metadata, Created: made, Updated: made})
		}
	}
	if q.GraphID != "" && !slices.ContainsFunc(lines, func(l assistant.Line) bool { return l.Graph == q.GraphID }) {
		return nil, unknownGraph(q.GraphID, graphs)
	}
	found := slices.DeleteFunc(lines, func(l assistant.Line) bool {
		return !q.matches(l) || l.ID != assistantID(l.Graph) && !g.Finds(l.Metadata)
	})
	slices.SortFunc(found, q.order)
	return found, nil
}

func (s assistants) searchAssistants(w http.ResponseWriter, r *http.Request) error {
	var q assistantSearch
	if err := read(w, r, &q); err != nil {
		return err
	}
	if err := errors.Join(q.check("assistant_id", "created_at", "updated_at", "name", "graph_id"), q.selects(of[assistant.Assistant]())); err != nil {
		return err
	}
	found, err := s.foundAssistants(r, q)
	if err != nil {
		return err
	}
	out := []assistant.Assistant{}
	for _, l := range pageOf(w, q.page, found) {
		a := assistantOf(l.Graph)
		if l.Changes > 0 {
			kept, err := s.kept.Get(r.Context(), l.ID)
			if errors.Is(err, assistant.ErrMissing) {
				continue // deleted by another server
			}
			if err != nil {
				return err
			}
			a = kept.Latest()
		}
		out = append(out, a)
	}
	answer(w, http.StatusOK, selected(out, q.Select))
	return nil
}

func (s assistants) countAssistants(w http.ResponseWriter, r *http.Request) error {
	var q assistantCount
	if err := read(w, r, &q); err != nil {
		return err
	}
	found, err := s.foundAssistants(r, assistantSearch{assistantFilter: assistantFilter(q)})
	if err == nil {
		answer(w, http.StatusOK, len(found))
	}
	return err
}

// assistantIn is the assistant that a path names.
func (s assistants) assistantIn(r *http.Request) (assistant.Assistant, error) {
	id, err := idIn(r, "assistant_id")
	if err != nil {
		return assistant.Assistant{}, err
	}
	return s.byID(r.Context(), id)
}

func (s assistants) getAssistant(w http.ResponseWriter, r *http.Request) error {
	a, err := s.assistantIn(r)
	if err == nil {
		answer(w, http.StatusOK, a)
	}
	return err
}
