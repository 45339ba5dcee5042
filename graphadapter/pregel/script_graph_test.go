package pregel_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// declare reads a graph:
//
//	channel NAME KIND [REDUCER] [unguarded] [accumulate] [= JSON]
//	node NAME [reads=a,b] [defer] [runs=SUBGRAPH] [attempts=N] [queue=NAME] [fails=HANDLER]
//	handler NAME             an error handler
//	edge FROM TO            START and END stand for the entry and the exit
//	join FROM FROM… TO
//	branch FROM [TARGET…]
//	input|output|before|after [NAME…]
//	memory thread|none
func (s *session) declare(name, text string) (*pregel.Spec, error) {
	spec := &pregel.Spec{Version: pregel.SpecVersion, Name: name, Subgraphs: map[string]*pregel.Spec{}}
	for _, line := range lines(text) {
		words := strings.Fields(line)
		for i, w := range words {
			words[i] = nodeName(w)
		}
		if err := s.declareLine(spec, words[0], words[1:]); err != nil {
			return nil, fmt.Errorf("%s: %w", line, err)
		}
	}
	return spec, nil
}

func nodeName(word string) string {
	switch word {
	case "START":
		return pregel.Start
	case "END":
		return pregel.End
	}
	return word
}

func (s *session) declareLine(spec *pregel.Spec, what string, words []string) error {
	last := len(words) - 1
	switch what {
	case "channel":
		channel, err := channelOf(words)
		spec.Channels = append(spec.Channels, channel)
		return err
	case "node":
		return s.declareNode(spec, words)
	case "handler":
		spec.Nodes = append(spec.Nodes, pregel.NodeSpec{Name: words[0], Handler: true})
	case "edge":
		spec.Edges = append(spec.Edges, pregel.Edge{From: words[0], To: words[1]})
	case "join":
		spec.Joins = append(spec.Joins, pregel.Join{From: words[:last], To: words[last]})
	case "branch":
		b := pregel.Branch{From: words[0], Ordinal: len(spec.BranchesOf(words[0]))}
		b.Targets = append(b.Targets, words[1:]...)
		spec.Branches = append(spec.Branches, b)
	case "input":
		spec.Input = append([]string{}, words...)
	case "output":
		spec.Output = append([]string{}, words...)
	case "before":
		spec.InterruptBefore = words
	case "after":
		spec.InterruptAfter = words
	case "memory":
		spec.Memory = pregel.Memory(words[0])
	default:
		return fmt.Errorf("no such line")
	}
	return nil
}

func channelOf(words []string) (pregel.ChannelSpec, error) {
	c := pregel.ChannelSpec{Name: words[0], Kind: pregel.Kind(words[1])}
	if at := slices.Index(words, "="); at >= 0 {
		c.Default = pregel.Value(strings.Join(words[at+1:], " "))
		words = words[:at]
	}
	for _, w := range words[2:] {
		switch w {
		case "unguarded":
			c.Unguarded = true
		case "accumulate":
			c.Accumulate = true
		default:
			c.Reducer = w
		}
	}
	return c, nil
}

func (s *session) declareNode(spec *pregel.Spec, words []string) error {
	n := pregel.NodeSpec{Name: words[0]}
	for _, w := range words[1:] {
		key, value, _ := strings.Cut(w, "=")
		switch key {
		case "reads":
			n.Reads = strings.Split(value, ",")
		case "defer":
			n.Defer = true
		case "fails":
			n.ErrorHandler = value
		case "queue":
			n.TaskQueue = value
		case "attempts":
			n.Retried = number(value) > 1
		case "runs":
			sub, ok := s.subgraphs[value]
			if !ok {
				return fmt.Errorf("declare subgraph %s first", value)
			}
			n.Subgraph, spec.Subgraphs[value] = value, sub
		default:
			return fmt.Errorf("a node has no %q", key)
		}
	}
	spec.Nodes = append(spec.Nodes, n)
	return nil
}

// customReducers are those that scripts name beside the engine's own.
var customReducers = map[string]pregel.Reducer{
	"longest/v1": reducer{name: "longest/v1", zero: pregel.Value(`""`), reduce: longest},
	"refuses/v1": reducer{name: "refuses/v1", reduce: func(pregel.Value, []pregel.Value) (pregel.Value, error) {
		return nil, errors.New("it takes nothing")
	}},
	"panics/v1": reducer{name: "panics/v1", reduce: func(pregel.Value, []pregel.Value) (pregel.Value, error) {
		panic("out of order")
	}},
	"garbles/v1": reducer{name: "garbles/v1", reduce: func(pregel.Value, []pregel.Value) (pregel.Value, error) {
		return pregel.Value(`{"half":`), nil
	}},
	// sees/v1 shows what a reducer is called with.
	"sees/v1": reducer{name: "sees/v1", reduce: func(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
		if current == nil {
			current = pregel.Value(`"nothing"`)
		}
		return json.Marshal(map[string]any{"had": current, "got": updates})
	}},
}

// reducer is a custom reducer of a test.
type reducer struct {
	name   string
	zero   pregel.Value
	reduce func(pregel.Value, []pregel.Value) (pregel.Value, error)
}

func (r reducer) Name() string       { return r.name }
func (r reducer) Zero() pregel.Value { return r.zero }

func (r reducer) Reduce(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
	return r.reduce(current, updates)
}

// longest keeps the longest text.
func longest(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
	for _, u := range updates {
		if len(u) > len(current) {
			current = u
		}
	}
	return current, nil
}
