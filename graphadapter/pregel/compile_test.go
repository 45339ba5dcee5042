package pregel_test

import (
	"errors"
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// TestCompileRefuses: every mistake in a Spec is told, with the graph and the node it is about.
func TestCompileRefuses(t *testing.T) {
	long := strings.Repeat("x", 101)
	for name, c := range map[string]struct {
		spec func(*pregel.Spec)
		want []string
	}{
		"no entry":              {func(s *pregel.Spec) { s.Edges = nil }, []string{"no entry"}},
		"edge from nowhere":     {edge("nowhere", "a"), []string{`node "nowhere"`, "an edge starts at it"}},
		"edge to nowhere":       {edge("a", "nowhere"), []string{`node "nowhere"`, `an edge from "a" ends at it`}},
		"edge from the exit":    {edge(pregel.End, "a"), []string{"an edge starts at it"}},
		"edge to the entry":     {edge("a", pregel.Start), []string{`an edge from "a" ends at it`}},
		"join without sources":  {join(nil, "a"), []string{"no sources"}},
		"join from nowhere":     {join([]string{"a", "nowhere"}, "b"), []string{`node "nowhere"`, "a join starts at it"}},
		"join twice from one":   {join([]string{"a", "a"}, "b"), []string{"a join names it twice"}},
		"join to nowhere":       {join([]string{"a"}, "nowhere"), []string{"a join ends at it"}},
		"branch from nowhere":   {branch(pregel.Branch{From: "nowhere"}), []string{"a conditional edge starts at it"}},
		"branch to nowhere":     {branch(pregel.Branch{From: "a", Targets: []string{"nowhere"}}), []string{`the target "nowhere"`}},
		"label to nowhere":      {branch(pregel.Branch{From: "a", Labels: map[string]string{"yes": "nowhere"}}), []string{`the target "nowhere"`}},
		"breakpoint nowhere":    {func(s *pregel.Spec) { s.InterruptBefore = []string{"nowhere"} }, []string{"an interrupt list names it"}},
		"breakpoint after":      {func(s *pregel.Spec) { s.InterruptAfter = []string{pregel.All, "nowhere"} }, []string{"an interrupt list names it"}},
		"node twice":            {node("a"), []string{`node "a"`, "added twice"}},
		"node without a name":   {node(""), []string{"must not be empty"}},
		"node with a long name": {node(long), []string{"at most 100 bytes"}},
		"node with a dot":       {node("a.b"), []string{`contains '.'`}},
		"node with a bar":       {node("a|b"), []string{`contains '|'`}},
		"node with a colon":     {node("a:b"), []string{`contains ':'`}},
		"node with a slash":     {node("a/b"), []string{`contains '/'`}},
		"node with a mark":      {node("a!b"), []string{`contains '!'`}},
		"node with a newline":   {node("a\nb"), []string{`contains '\n'`}},
		"node named reserved":   {node("__start__"), []string{"is reserved"}},
		"unknown subgraph": {func(s *pregel.Spec) { s.Nodes[0].Subgraph = "nowhere" },
			[]string{`node "a"`, `the unknown subgraph "nowhere"`}},
		"channel twice":        {channel("v", pregel.KindLast), []string{`"v" is declared twice`}},
		"channel without name": {channel("", pregel.KindLast), []string{"is empty, too long or reserved"}},
		"channel long name":    {channel(long, pregel.KindLast), []string{"is empty, too long or reserved"}},
		"channel reserved":     {channel("__pregel_tasks", pregel.KindTopic), []string{"reserved"}},
		"channel like a wake":  {channel("branch:to:a", pregel.KindLast), []string{"reserved"}},
		"channel like a join":  {channel("join:a+b:c", pregel.KindLast), []string{"reserved"}},
		"channel of no kind":   {channel("w", "best"), []string{`the unknown kind "best"`}},
		"reads nothing known":  {func(s *pregel.Spec) { s.Nodes[0].Reads = []string{"w"} }, []string{`reads the unknown channel "w"`}},
		"input of no channel":  {func(s *pregel.Spec) { s.Input = []string{"w"} }, []string{`schema names the unknown channel "w"`}},
		"output of no channel": {func(s *pregel.Spec) { s.Output = []string{"w"} }, []string{`schema names the unknown channel "w"`}},
		"several at once": {func(s *pregel.Spec) { edge("x", "y")(s); node("a")(s) },
			[]string{`node "x"`, `node "y"`, "added twice"}},
		"handler of nobody":    {func(s *pregel.Spec) { s.Nodes[0].ErrorHandler = "x" }, []string{`node "a"`, `"x" is no node that handles`}},
		"handler that is none": {func(s *pregel.Spec) { s.Nodes[0].ErrorHandler = "b" }, []string{`"b" is no node that handles`}},
		"handled handler":      {handled(func(s *pregel.Spec) { s.Nodes[2].ErrorHandler = "h" }), []string{"a handler of its own"}},
		"deferred handler":     {handled(func(s *pregel.Spec) { s.Nodes[2].Defer = true }), []string{"cannot be deferred"}},
		"edge to a handler":    {handled(edge("a", "h")), []string{`node "h"`, "no edge, join or branch"}},
		"edge from a handler":  {handled(edge("h", "a")), []string{`node "h"`, "no edge, join or branch"}},
		"join with a handler":  {handled(join([]string{"h", "a"}, "b")), []string{`node "h"`, "no edge, join or branch"}},
		"branch to a handler":  {handled(branch(pregel.Branch{From: "a", Targets: []string{"h"}})), []string{`node "h"`, "no edge, join or branch"}},
		"breakpoint handler":   {handled(func(s *pregel.Spec) { s.InterruptAfter = []string{"h"} }), []string{"name the node that fails"}},
		"a subgraph's mistake": {func(s *pregel.Spec) {
			s.Nodes[0].Subgraph = "inner"
			s.Subgraphs = map[string]*pregel.Spec{"inner": {Version: 1, Name: "inner"}}
		}, []string{`graph "inner"`, "no entry"}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := small()
			c.spec(spec)
			_, err := pregel.Compile(spec, nil)
			var mistake *pregel.CompileError
			if !errors.As(err, &mistake) {
				t.Fatalf("the error is %v, want a CompileError", err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %s:\n%v", want, err)
				}
			}
		})
	}
}

// small is a right graph.
func small() *pregel.Spec {
	return &pregel.Spec{
		Version: pregel.SpecVersion, Name: "small",
		Channels: []pregel.ChannelSpec{{Name: "v", Kind: pregel.KindLast}},
		Nodes:    []pregel.NodeSpec{{Name: "a"}, {Name: "b"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "a"}},
	}
}

func edge(from, to string) func(*pregel.Spec) {
	return func(s *pregel.Spec) { s.Edges = append(s.Edges, pregel.Edge{From: from, To: to}) }
}

func join(from []string, to string) func(*pregel.Spec) {
	return func(s *pregel.Spec) { s.Joins = append(s.Joins, pregel.Join{From: from, To: to}) }
}

func branch(b pregel.Branch) func(*pregel.Spec) {
	return func(s *pregel.Spec) { s.Branches = append(s.Branches, b) }
}

// handled gives a an error handler before the mistake is made.
func handled(mistake func(*pregel.Spec)) func(*pregel.Spec) {
	return func(s *pregel.Spec) {
		s.Nodes[0].ErrorHandler = "h"
		s.Nodes = append(s.Nodes, pregel.NodeSpec{Name: "h", Handler: true})
		mistake(s)
	}
}

func node(name string) func(*pregel.Spec) {
	return func(s *pregel.Spec) { s.Nodes = append(s.Nodes, pregel.NodeSpec{Name: name}) }
}

func channel(name string, kind pregel.Kind) func(*pregel.Spec) {
	return func(s *pregel.Spec) { s.Channels = append(s.Channels, pregel.ChannelSpec{Name: name, Kind: kind}) }
}

// TestCompileTakes: unreachable nodes, a graph that only has an entry, an entry by a branch.
func TestCompileTakes(t *testing.T) {
	for name, change := range map[string]func(*pregel.Spec){
		"an unreachable node": func(*pregel.Spec) {},
		"nothing but entry and exit": func(s *pregel.Spec) {
			s.Nodes, s.Edges = nil, []pregel.Edge{{From: pregel.Start, To: pregel.End}}
		},
		"an entry by a branch": func(s *pregel.Spec) {
			s.Edges, s.Branches = nil, []pregel.Branch{{From: pregel.Start}}
		},
		"a branch to the exit": branch(pregel.Branch{From: "a", Targets: []string{pregel.End}}),
		"a shared handler": handled(func(s *pregel.Spec) {
			s.Nodes[1].ErrorHandler, s.InterruptBefore = "h", []string{pregel.All}
		}),
		"a name of 100 bytes": node(strings.Repeat("x", 100)),
	} {
		t.Run(name, func(t *testing.T) {
			spec := small()
			change(spec)
			if _, err := pregel.Compile(spec, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestCompileAsksForANewerWorker: what a process lacks is told apart from what is wrong.
func TestCompileAsksForANewerWorker(t *testing.T) {
	spec := small()
	spec.Version = pregel.SpecVersion + 1
	_, err := pregel.Compile(spec, nil)
	var version *pregel.SpecVersionError
	if !errors.As(err, &version) || version.Got != pregel.SpecVersion+1 || version.Most != pregel.SpecVersion {
		t.Errorf("a newer spec: %v", err)
	}
	spec = small()
	spec.Channels[0] = pregel.ChannelSpec{Name: "v", Kind: pregel.KindReduce, Reducer: "longest/v1"}
	_, err = pregel.Compile(spec, nil)
	var unknown *pregel.UnknownReducerError
	if !errors.As(err, &unknown) || unknown.Channel != "v" || unknown.Reducer != "longest/v1" {
		t.Errorf("an unknown reducer: %v", err)
	}
	if _, err := pregel.Compile(spec, customReducers); err != nil {
		t.Errorf("with the reducer: %v", err)
	}
}

// TestCompileRefusesABadBeginning: a channel's value before the first write is JSON, whatever its reducer says.
func TestCompileRefusesABadBeginning(t *testing.T) {
	for name, c := range map[string]struct {
		zero func() pregel.Value
		def  pregel.Value
	}{
		"a zero value that is not JSON": {zero: func() pregel.Value { return pregel.Value("zero") }},
		"a zero value that panics":      {zero: func() pregel.Value { panic("no zero") }},
		"a default that is not JSON":    {zero: func() pregel.Value { return nil }, def: pregel.Value("{")},
	} {
		spec := small()
		spec.Channels[0] = pregel.ChannelSpec{Name: "v", Kind: pregel.KindReduce, Reducer: "own/v1", Default: c.def}
		_, err := pregel.Compile(spec, map[string]pregel.Reducer{"own/v1": zeroed{reducer{name: "own/v1", reduce: longest}, c.zero}})
		var mistake *pregel.CompileError
		if !errors.As(err, &mistake) || !strings.Contains(err.Error(), `"v"`) || !strings.Contains(err.Error(), "own/v1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// zeroed is a reducer with a zero value of its own making.
type zeroed struct {
	reducer
	zero func() pregel.Value
}

func (z zeroed) Zero() pregel.Value { return z.zero() }
