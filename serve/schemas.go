package serve

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// schemasOut are the JSON schemas of a graph as clients see its values.
type schemasOut struct {
	Graph   string          `json:"graph_id,omitempty"`
	Input   json.RawMessage `json:"input_schema"`
	Output  json.RawMessage `json:"output_schema"`
	State   json.RawMessage `json:"state_schema"`
	Config  json.RawMessage `json:"config_schema"`
	Context json.RawMessage `json:"context_schema"`
}

// objectSchema is the JSON schema of an object.
type objectSchema struct {
	Title      string `json:"title,omitempty"`
	Type       string `json:"type"`
	Properties object `json:"properties"`
	// Required are the members that have to be there.
	Required []string `json:"required,omitempty"`
}

// messagesSchema is that of a conversation: its values are LangChain's, whatever the worker has.
var messagesSchema = raw(map[string]any{"type": "array", "title": "Messages", "items": map[string]any{"type": "object", "required": []string{"type", "content"},
	"properties": map[string]any{
		"type":    map[string]any{"type": "string", "enum": []string{"human", "ai", "system", "tool"}},
		"content": map[string]any{"anyOf": []any{map[string]string{"type": "string"}, map[string]any{"type": "array", "items": map[string]string{"type": "object"}}}},
		"id":      map[string]any{"type": []string{"string", "null"}},
	}}})

// schemasOf are the schemas of a graph, from what a worker knows of its types. Where it knows none they name the fields alone.
func schemasOf(spec *pregel.Spec, known graphadapter.Schemas) schemasOut {
	conversations := channelsOf(spec, nil)
	all, required := namesOf(spec), requiredOf(spec, conversations)
	out := schemasOut{
		Input:   shownSchema(spec.Name, known.Input, orAll(spec.Input, all), required, conversations),
		Output:  shownSchema(spec.Name, known.Output, orAll(spec.Output, all), required, conversations),
		State:   shownSchema(spec.Name, known.State, all, nil, conversations),
		Config:  raw(objectSchema{Title: "Configurable", Type: "object", Properties: object{}}),
		Context: raw(nil),
	}
	if known.Context != nil {
		out.Config, out.Context = known.Context, known.Context
	}
	return out
}

func orAll(names, all []string) []string {
	if names == nil {
		return all
	}
	return names
}

// requiredOf are the fields that a graph's input has to have, and that its output has therefore: all of an input that is less than the state, and a conversation that is all
// there is. Of a whole state as the input none has to be there: a run goes on with what the thread has.
func requiredOf(spec *pregel.Spec, conversations map[string]bool) []string {
	names := inputOf(spec)
	if len(names) < len(spec.Channels) || len(names) == 1 && conversations[names[0]] {
		return names
	}
	return nil
}

func shownSchema(graph string, known json.RawMessage, names, required []string, conversations map[string]bool) json.RawMessage {
	var s map[string]json.RawMessage
	properties := object{}
	if known != nil && (json.Unmarshal(known, &s) != nil || s["properties"] == nil || json.Unmarshal(s["properties"], &properties) != nil) {
		return known // that of a function, which may take and return anything
	}
	if known == nil {
		for _, n := range names {
			properties[n] = raw(object{})
		}
	}
	for n := range properties {
		if conversations[n] {
			properties[n] = messagesSchema
		}
	}
	there := slices.DeleteFunc(slices.Clone(required), func(name string) bool { return properties[name] == nil })
	return raw(objectSchema{Title: graph, Type: "object", Properties: properties, Required: there})
}

func (s assistants) schemas(ctx context.Context, graph string) (*pregel.Spec, graphadapter.Schemas, error) {
	spec, err := s.spec(ctx, graph)
	if err != nil {
		return nil, graphadapter.Schemas{}, err
	}
	known, err := s.client.GraphSchemas(ctx, graph)
	return spec, known, err
}

func (s assistants) getSchemas(w http.ResponseWriter, r *http.Request) error {
	a, err := s.assistantIn(r)
	if err != nil {
		return err
	}
	spec, known, err := s.schemas(r.Context(), a.Graph)
	if err != nil {
		return err
	}
	out := schemasOf(spec, known)
	out.Graph = a.Graph
	answer(w, http.StatusOK, out)
	return nil
}

// betweenGraphs separates the names of nodes in the path to a subgraph.
const betweenGraphs = "|"

// getSubgraphs answers with the subgraphs of a graph by the nodes that run them: all, or the one at a path.
func (s assistants) getSubgraphs(w http.ResponseWriter, r *http.Request) error {
	a, err := s.assistantIn(r)
	if err != nil {
		return err
	}
	spec, known, err := s.schemas(r.Context(), a.Graph)
	if err != nil {
		return err
	}
	query := r.URL.Query().Get("recurse")
	recurse := query == "true" || query == "True" || query == "1"
	at := r.PathValue("namespace")
	all := map[string]schemasOut{}
	subgraphs(spec, known, "", recurse || at != "", all)
	for path := range all {
		below := recurse && strings.HasPrefix(path, at+betweenGraphs)
		if at != "" && path != at && !below {
			delete(all, path)
		}
	}
	answer(w, http.StatusOK, all)
	return nil
}

// subgraphs collects the subgraphs of a graph by their paths, with those nested in them when deep.
func subgraphs(spec *pregel.Spec, known graphadapter.Schemas, path string, deep bool, into map[string]schemasOut) {
	for name, sub := range spec.Subgraphs {
		inner := known.Subgraphs[name]
		into[path+name] = schemasOf(sub, inner)
		if deep {
			subgraphs(sub, inner, path+name+betweenGraphs, deep, into)
		}
	}
}
