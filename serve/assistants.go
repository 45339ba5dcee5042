package serve

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"superstep.dev/thread"
)

// assistant is a graph as clients see it. Each graph has one, made by the system.
type assistant struct {
	ID          string    `json:"assistant_id"`
	Graph       string    `json:"graph_id"`
	Config      object    `json:"config"`
	Context     object    `json:"context"`
	Metadata    object    `json:"metadata"`
	Name        string    `json:"name"`
	Created     time.Time `json:"created_at"`
	Updated     time.Time `json:"updated_at"`
	Version     int       `json:"version"`
	Description *string   `json:"description"`
}

// assistantID is the id of a graph's assistant: the same wherever the graph is served.
func assistantID(graph string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("superstep:graph:"+graph)).String()
}

// made is when assistants of the system were made: they always were.
var made = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func assistantOf(graph string) assistant {
	return assistant{ID: assistantID(graph), Graph: graph, Config: object{}, Context: object{}, Metadata: object{"created_by": raw("system")},
		Name: graph, Created: made, Updated: made, Version: 1}
}

// assistants are what the server says of graphs.
type assistants struct{ *Server }

func (s assistants) routes() []route {
	return []route{
		{"POST", "/assistants/search", "Assistants", s.searchAssistants},
		{"POST", "/assistants/count", "How many assistants there are", s.countAssistants},
		{"GET", "/assistants/{assistant_id}", "An assistant", s.getAssistant},
		{"GET", "/assistants/{assistant_id}/graph", "The nodes and edges of a graph", s.getGraph},
		{"GET", "/assistants/{assistant_id}/schemas", "JSON schemas of a graph's input, output, state and context", s.getSchemas},
		{"GET", "/assistants/{assistant_id}/subgraphs", "The schemas of a graph's subgraphs", s.getSubgraphs},
		{"GET", "/assistants/{assistant_id}/subgraphs/{namespace}", "The schemas of a subgraph", s.getSubgraphs},
	}
}

// all are the assistants of all graphs that workers serve.
func (s assistants) all(ctx context.Context) ([]assistant, error) {
	graphs, err := s.client.Graphs(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]assistant, len(graphs))
	for i, g := range graphs {
		out[i] = assistantOf(g)
	}
	return out, nil
}

// named finds the assistant that a run is asked of: by its id, or by the graph's name.
func (s assistants) named(ctx context.Context, name string) (assistant, error) {
	all, err := s.all(ctx)
	if err != nil {
		return assistant{}, err
	}
	at := slices.IndexFunc(all, func(a assistant) bool { return a.ID == name || a.Graph == name })
	switch _, err := uuid.Parse(name); {
	case at >= 0:
		return all[at], nil
	case err == nil:
		return assistant{}, refuse(http.StatusNotFound, "there is no assistant %s", name)
	}
	return assistant{}, refuse(http.StatusUnprocessableEntity, "no worker serves the graph %q", name)
}

// unknownGraph is the refusal of a graph that no worker serves, as clients know it.
func unknownGraph(graph string, all []assistant) error {
	names := make([]string, len(all))
	for i, a := range all {
		names[i] = "'" + a.Graph + "'"
	}
	slices.Sort(names)
	return refuse(http.StatusNotFound, "Graph '%s' not found. Expected one of: [%s]", graph, strings.Join(names, ", "))
}

type assistantSearch struct {
	page
	Metadata object `json:"metadata"`
	GraphID  string `json:"graph_id"`
	Name     string `json:"name"`
}

func (s assistants) foundAssistants(w http.ResponseWriter, r *http.Request) ([]assistant, page, error) {
	var q assistantSearch
	if err := read(w, r, &q); err != nil {
		return nil, q.page, err
	}
	if err := q.check("assistant_id", "created_at", "updated_at", "name", "graph_id"); err != nil {
		return nil, q.page, err
	}
	all, err := s.all(r.Context())
	if err != nil && !errors.Is(err, thread.ErrNoWorker) {
		return nil, q.page, err
	}
	if q.GraphID != "" && !slices.ContainsFunc(all, func(a assistant) bool { return a.Graph == q.GraphID }) {
		return nil, q.page, unknownGraph(q.GraphID, all)
	}
	wanted := raw(q.Metadata)
	found := slices.DeleteFunc(all, func(a assistant) bool {
		return q.GraphID != "" && a.Graph != q.GraphID || q.Name != "" && !strings.Contains(strings.ToLower(a.Name), strings.ToLower(q.Name)) ||
			len(q.Metadata) > 0 && !contains(raw(a.Metadata), wanted)
	})
	slices.SortFunc(found, func(a, b assistant) int {
		by := cmp.Compare(a.Name, b.Name)
		if q.SortBy == "assistant_id" {
			by = cmp.Compare(a.ID, b.ID)
		}
		if q.SortOrder == "desc" {
			by = -by
		}
		return by
	})
	return found, q.page, nil
}

func (s assistants) searchAssistants(w http.ResponseWriter, r *http.Request) error {
	found, p, err := s.foundAssistants(w, r)
	if err == nil {
		answer(w, http.StatusOK, selected(pageOf(w, p, found), p.Select))
	}
	return err
}

func (s assistants) countAssistants(w http.ResponseWriter, r *http.Request) error {
	found, _, err := s.foundAssistants(w, r)
	if err == nil {
		answer(w, http.StatusOK, len(found))
	}
	return err
}

func (s assistants) assistantIn(r *http.Request) (assistant, error) {
	id, err := idIn(r, "assistant_id")
	if err != nil {
		return assistant{}, err
	}
	return s.named(r.Context(), id)
}

func (s assistants) getAssistant(w http.ResponseWriter, r *http.Request) error {
	a, err := s.assistantIn(r)
	if err == nil {
		answer(w, http.StatusOK, a)
	}
	return err
}
