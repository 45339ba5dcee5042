package superstep

import (
	"fmt"
	"reflect"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
)

// WithAnswers answers open questions, by their ids, together with a [Thread.Command]. The id "" stands for the one that
// is open.
func WithAnswers(byID map[string]any) RunOption {
	return runOption(func(r *runOptions) { r.answers = byID })
}

func encodeAnswers(g *graphadapter.Graph, thread string, byID map[string]any) (*pregel.Resume, error) {
	if len(byID) == 0 {
		return nil, nil
	}
	out := &pregel.Resume{ByID: make(map[string]pregel.Value, len(byID))}
	for id, answer := range byID {
		raw, err := encodeJSON(answer)
		if err != nil {
			return nil, &Error{Kind: ErrBadInput, Graph: g.Spec.Name, Thread: thread, Question: id,
				Message: "the answer does not encode as JSON", Cause: err}
		}
		out.ByID[id] = raw
	}
	only, scalar := out.ByID[""]
	switch {
	case scalar && len(byID) > 1:
		return nil, &Error{Kind: ErrBadInput, Graph: g.Spec.Name, Thread: thread,
			Message: "an answer without a question's id is for the only one that is open: name the questions of all answers"}
	case scalar:
		return &pregel.Resume{Scalar: only}, nil
	}
	return out, nil
}

// encodeUpdate turns the values of an update into writes: those of a state struct as a node's, those of a JSON object by
// name (see past.WritesOf).
func encodeUpdate(spec *pregel.Spec, r UpdateRequest, values any) ([]pregel.Write, error) {
	spec, err := updatedSpec(spec, r)
	if err != nil {
		return nil, err
	}
	writes, err := updateWrites(spec, values)
	if err != nil {
		return nil, &Error{Kind: ErrBadInput, Graph: r.Graph, Thread: r.Thread, Message: "the update cannot be taken", Cause: err}
	}
	return writes, nil
}

func updateWrites(spec *pregel.Spec, values any) ([]pregel.Write, error) {
	v := reflect.ValueOf(values)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.IsValid() && isState(v.Type()) {
		at := reflect.New(v.Type())
		at.Elem().Set(v)
		return schemaOf(v.Type()).collect(at.Interface(), newScope(spec.Name, ""))
	}
	raw, err := encodeInput(spec.Name, values)
	if err != nil || raw == nil {
		return nil, err
	}
	return namedWrites(spec, raw)
}

// updatedSpec returns the graph that a request updates.
func updatedSpec(spec *pregel.Spec, r UpdateRequest) (*pregel.Spec, error) {
	for _, node := range r.Subgraph {
		sub, ok := nodeSubgraph(spec, node)
		if !ok {
			return nil, &Error{Kind: ErrNotFound, Graph: r.Graph, Thread: r.Thread, Node: node,
				Message: fmt.Sprintf("node %q of graph %q is no subgraph", node, spec.Name)}
		}
		spec = sub
	}
	return spec, nil
}

// nodeSubgraph returns the graph that a node runs.
func nodeSubgraph(spec *pregel.Spec, node string) (*pregel.Spec, bool) {
	for _, n := range spec.Nodes {
		if n.Name == node {
			sub, ok := spec.Subgraphs[n.Subgraph]
			return sub, ok
		}
	}
	return nil, false
}

// checkUpdates refuses updates that no graph of that spec could take.
func checkUpdates(spec *pregel.Spec, r UpdateRequest) error {
	if _, err := updatedSpec(spec, r); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &Error{Kind: ErrBadInput, Graph: r.Graph, Thread: r.Thread, Message: fmt.Sprintf(format, args...)}
	}
	if len(r.Updates) == 0 {
		return refuse("there is no update")
	}
	for _, step := range r.Updates {
		if len(step) == 0 {
			return refuse("a superstep has no update")
		}
	}
	return nil
}

// namedWrites are the writes of a JSON object of channels. A field that the graph does not have is refused here, where
// people give values by name; the engine ignores it, as LangGraph does.
func namedWrites(spec *pregel.Spec, values pregel.Value) ([]pregel.Write, error) {
	writes, err := past.WritesOf(spec, values)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, ch := range spec.Channels {
		known[ch.Name] = true
	}
	for _, w := range writes {
		if !known[w.Channel] {
			return nil, fmt.Errorf("unknown field %q%s", w.Channel, didYouMean(w.Channel, known))
		}
	}
	return writes, nil
}

// encodeControl turns a command from outside into the engine's.
func encodeControl[S any](g *graphadapter.Graph, thread string, c *Command[S]) (*pregel.Command, error) {
	refuse := func(message string, cause error) (*pregel.Command, error) {
		return nil, &Error{Kind: ErrBadInput, Graph: g.Spec.Name, Thread: thread, Message: message, Cause: cause}
	}
	if c.Parent != nil {
		return refuse("a command from outside has no parent graph: leave Parent nil", nil)
	}
	out := &pregel.Command{}
	var err error
	if g.Spec.Function && !reflect.ValueOf(&c.Update).Elem().IsZero() {
		return refuse("a command cannot write to an entrypoint: update its state with Update", nil)
	}
	if isState(reflect.TypeFor[S]()) {
		if out.Update, err = schemaFor[S]().collect(&c.Update, newScope(g.Spec.Name, "")); err != nil {
			return refuse("the command cannot be taken", err)
		}
	}
	r := &router{graph: g.Spec.Name, known: map[string]bool{}, subgraphs: map[string]bool{}}
	for _, n := range g.Spec.Nodes {
		if n.Handler {
			continue // no way leads to it
		}
		r.known[n.Name], r.subgraphs[n.Name] = true, n.Subgraph != ""
	}
	if out.Goto, err = r.resolve(c.Goto); err != nil {
		return refuse("the command cannot be taken", err)
	}
	if len(out.Update) == 0 && len(out.Goto) == 0 {
		return nil, nil
	}
	return out, nil
}
