package serve

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// drawnNode and drawnEdge are what a graph is drawn of.
type drawnNode struct {
	ID   string            `json:"id"`
	Type string            `json:"type"`
	Data map[string]string `json:"data,omitempty"`
}

type drawnEdge struct {
	Source      string `json:"source"`
	Target      string `json:"target"`
	Conditional bool   `json:"conditional,omitempty"`
}

// drawing is a graph as it is drawn.
type drawing struct {
	Nodes []drawnNode `json:"nodes"`
	Edges []drawnEdge `json:"edges"`
}

// getGraph draws the graph of an assistant, which may be named by its graph here: RemoteGraph asks so.
func (s assistants) getGraph(w http.ResponseWriter, r *http.Request) error {
	a, err := s.named(r.Context(), r.PathValue("assistant_id"))
	if err != nil {
		return err
	}
	spec, err := s.spec(r.Context(), a.Graph)
	if err != nil {
		return err
	}
	depth := 0
	switch x := r.URL.Query().Get("xray"); x {
	case "", "false", "0":
	case "true":
		depth = 100
	default:
		if json.Unmarshal([]byte(x), &depth) != nil || depth < 0 {
			return refuse(http.StatusUnprocessableEntity, "xray %q is neither true nor false nor a number", x)
		}
	}
	nodes, edges := drawn(spec, depth)
	answer(w, http.StatusOK, drawing{nodes, edges})
	return nil
}

// drawn are the nodes and edges of a graph, with those of subgraphs down to a depth in the place of their node.
func drawn(spec *pregel.Spec, depth int) ([]drawnNode, []drawnEdge) {
	nodes, below := []drawnNode{{ID: pregel.Start, Type: "runnable", Data: map[string]string{"name": pregel.Start}}}, []drawnNode(nil)
	edges := edgesOf(spec)
	for _, n := range spec.Nodes {
		sub := spec.Subgraphs[n.Subgraph]
		if n.Subgraph == "" || depth == 0 || sub == nil {
			nodes = append(nodes, drawnNode{ID: n.Name, Type: "runnable", Data: map[string]string{"name": n.Name}})
			continue
		}
		inner, ways := drawn(sub, depth-1)
		for _, i := range inner {
			if i.ID != pregel.Start && i.ID != pregel.End {
				i.ID = n.Name + ":" + i.ID
				below = append(below, i)
			}
		}
		edges = within(edges, ways, n.Name)
	}
	return append(append(nodes, drawnNode{ID: pregel.End, Type: "runnable"}), below...), edges
}

// within puts the edges of a subgraph in the place of its node: those from outside and to it, and behind all others its own.
func within(edges, inner []drawnEdge, node string) []drawnEdge {
	var own, out, first, last []drawnEdge
	for _, e := range inner {
		switch {
		case e.Source == pregel.Start:
			first = append(first, e)
		case e.Target == pregel.End:
			last = append(last, e)
		default:
			own = append(own, drawnEdge{node + ":" + e.Source, node + ":" + e.Target, e.Conditional})
		}
	}
	for _, e := range edges {
		switch node {
		case e.Target:
			for _, f := range first {
				out = append(out, drawnEdge{e.Source, node + ":" + f.Target, e.Conditional || f.Conditional})
			}
		case e.Source:
			for _, l := range last {
				out = append(out, drawnEdge{node + ":" + l.Source, e.Target, e.Conditional || l.Conditional})
			}
		default:
			out = append(out, e)
		}
	}
	return append(out, own...)
}

// edgesOf are the edges, joins and branches of a graph by their nodes, and behind them those of nodes that lead to the end alone.
func edgesOf(spec *pregel.Spec) []drawnEdge {
	out := []drawnEdge{}
	leads := map[string]bool{}
	add := func(e drawnEdge) {
		leads[e.Source] = true
		if !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	for _, e := range spec.Edges {
		add(drawnEdge{Source: e.From, Target: e.To})
	}
	for _, j := range spec.Joins {
		for _, from := range j.From {
			add(drawnEdge{Source: from, Target: j.To})
		}
	}
	for _, b := range spec.Branches {
		targets := slices.Clone(b.Targets)
		for _, t := range b.Labels {
			targets = append(targets, t)
		}
		slices.Sort(targets)
		for _, t := range slices.Compact(targets) {
			add(drawnEdge{b.From, t, true})
		}
	}
	slices.SortStableFunc(out, func(a, b drawnEdge) int {
		ends := func(e drawnEdge) int {
			if e.Target == pregel.End && !e.Conditional {
				return 1
			}
			return 0
		}
		return cmp.Or(ends(a)-ends(b), strings.Compare(a.Source, b.Source), strings.Compare(a.Target, b.Target))
	})
	for _, n := range spec.Nodes {
		if !leads[n.Name] && !n.Handler {
			add(drawnEdge{Source: n.Name, Target: pregel.End})
		}
	}
	return out
}
