package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"superstep.dev/test/conformance/trace"
)

// caseDoc is one case as it stands in its file: a graph, actions on it, and the answer to each.
type caseDoc struct {
	Name         string               `json:"name"`
	About        string               `json:"about"`
	Tags         []string             `json:"tags"`
	Graph        *graphDoc            `json:"graph"`
	Graphs       map[string]*graphDoc `json:"graphs"`
	Checkpointer *bool                `json:"checkpointer"`
	Actions      []action             `json:"actions"`
	Expect       []json.RawMessage    `json:"expect"`
}

// graphDoc is a GRAPH of the format.
type graphDoc struct {
	Channels channelDocs `json:"channels"`
	Nodes    []nodeDoc   `json:"nodes"`
	Edges    []edgeDoc   `json:"edges"`
	Branches []branchDoc `json:"branches"`
	Compile  compileDoc  `json:"compile"`
	Input    []string    `json:"input"`
	Output   []string    `json:"output"`
}

// channelDoc is one channel with its name.
type channelDoc struct {
	Name    string          `json:"-"`
	Kind    string          `json:"kind"`
	Default json.RawMessage `json:"default"`
}

// channelDocs are the channels in declaration order, which a map would lose.
type channelDocs []channelDoc

type nodeDoc struct {
	Name     string          `json:"name"`
	Script   json.RawMessage `json:"script"`
	Subgraph string          `json:"subgraph"`
	Retry    *retryDoc       `json:"retry"`
	Defer    bool            `json:"defer"`
}

type retryDoc struct {
	MaxAttempts int `json:"max_attempts"`
}

// edgeDoc is [from, to]; a join when from is a list.
type edgeDoc struct {
	from []string
	join bool
	to   string
}

type branchDoc struct {
	From   string          `json:"from"`
	Script json.RawMessage `json:"script"`
	Paths  pathsDoc        `json:"paths"`
}

// pathsDoc are a branch's declared targets: a list, or an object of labels, or neither.
type pathsDoc struct {
	targets []string
	labels  map[string]string
}

type compileDoc struct {
	InterruptBefore nodeList `json:"interrupt_before"`
	InterruptAfter  nodeList `json:"interrupt_after"`
	// Checkpointer is true, false or null; absent means null.
	Checkpointer *bool `json:"checkpointer"`
}

// nodeList is a list of node names, or "*" for all of them. nil means that none was given.
type nodeList []string

// decodeCase decodes one case strictly: what this runner does not know is an error, never ignored.
func decodeCase(text []byte) (*caseDoc, error) {
	var c caseDoc
	if err := trace.DecodeStrict(text, &c); err != nil {
		return nil, fmt.Errorf("decoding the case: %w", err)
	}
	switch {
	case c.Name == "":
		return nil, errors.New("decoding the case: it has no name")
	case c.Graph == nil:
		return nil, fmt.Errorf("decoding the case %s: it has no graph", c.Name)
	case len(c.Actions) == 0:
		return nil, fmt.Errorf("decoding the case %s: it has no actions", c.Name)
	case len(c.Expect) != len(c.Actions) && !c.expectsCompileError():
		return nil, fmt.Errorf("decoding the case %s: %d actions but %d expected results",
			c.Name, len(c.Actions), len(c.Expect))
	}
	for i := range c.Actions {
		if err := c.Actions[i].check(); err != nil {
			return nil, fmt.Errorf("decoding the case %s: action %d: %w", c.Name, i, err)
		}
	}
	return &c, nil
}

// expectsCompileError reports whether the case is about a graph that cannot be built; then no action is run and there
// is one result only.
func (c *caseDoc) expectsCompileError() bool {
	if len(c.Expect) != 1 {
		return false
	}
	var result struct {
		Error struct {
			Type string `json:"type"`
		} `json:"error"`
	}
	return json.Unmarshal(c.Expect[0], &result) == nil && result.Error.Type == typeCompile
}

// checkpointed reports whether the root graph keeps its threads.
func (c *caseDoc) checkpointed() bool { return c.Checkpointer == nil || *c.Checkpointer }

// UnmarshalJSON keeps the channels' order.
func (c *channelDocs) UnmarshalJSON(text []byte) error {
	members, err := trace.Members(text)
	if err != nil {
		return fmt.Errorf("channels: %w", err)
	}
	*c = channelDocs{}
	for _, m := range members {
		channel := channelDoc{Name: m.Name}
		if err := trace.DecodeStrict(m.Value, &channel); err != nil {
			return fmt.Errorf("channel %q: %w", m.Name, err)
		}
		*c = append(*c, channel)
	}
	return nil
}

// UnmarshalJSON takes [from, to] and [[from, ..], to].
func (e *edgeDoc) UnmarshalJSON(text []byte) error {
	var ends []json.RawMessage
	if err := json.Unmarshal(text, &ends); err != nil || len(ends) != 2 {
		return fmt.Errorf("an edge is [from, to], got %s", trace.Brief(string(text)))
	}
	var from string
	if err := json.Unmarshal(ends[0], &from); err == nil {
		e.from = []string{from}
	} else if err := json.Unmarshal(ends[0], &e.from); err != nil {
		return fmt.Errorf("edge %s: from: %w", trace.Brief(string(text)), err)
	} else {
		e.join = true
	}
	if err := json.Unmarshal(ends[1], &e.to); err != nil {
		return fmt.Errorf("edge %s: to: %w", trace.Brief(string(text)), err)
	}
	return nil
}

// UnmarshalJSON takes a list of node names or an object of labels.
func (p *pathsDoc) UnmarshalJSON(text []byte) error {
	if text[0] == '{' {
		return json.Unmarshal(text, &p.labels)
	}
	return json.Unmarshal(text, &p.targets)
}

// UnmarshalJSON takes a list of node names or "*".
func (l *nodeList) UnmarshalJSON(text []byte) error {
	if string(text) == `"*"` {
		*l = nodeList{"*"}
		return nil
	}
	var names []string
	if err := json.Unmarshal(text, &names); err != nil || names == nil {
		return fmt.Errorf("want a list of node names or \"*\", got %s", trace.Brief(string(text)))
	}
	*l = names
	return nil
}
