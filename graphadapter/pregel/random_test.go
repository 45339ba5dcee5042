package pregel_test

import (
	"fmt"
	"hash/fnv"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

// world is a random graph and what its nodes do: a function of the task and of how often it ran before, so that every
// way of running it can be compared with every other.
type world struct {
	spec *pregel.Spec
	salt uint64
	// drains lets tasks ask the run to stop. What a subgraph gets done until then is a matter of time.
	drains bool
	// claims lets tasks give themselves back to own a key, and keep something under it once.
	claims bool
	// pays lets tasks do something outside, which is in their ledgers then.
	pays bool
	// calm lets nothing fail or ask, and tells apart neither branches nor supersteps: what runs again does the same.
	calm bool
}

var stateChannels = []pregel.ChannelSpec{
	{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"},
	{Name: "sum", Kind: pregel.KindReduce, Reducer: "sum/v1"},
	{Name: "any", Kind: pregel.KindAny},
	{Name: "flash", Kind: pregel.KindEphemeral, Unguarded: true},
	{Name: "list", Kind: pregel.KindTopic},
	{Name: "all", Kind: pregel.KindTopic, Accumulate: true},
	{Name: "one", Kind: pregel.KindLast}, // two writers in one superstep are a conflict
}

// drawWorld draws a graph of a few nodes; with subgraphs one of them is a graph itself.
func drawWorld(t *rapid.T, subgraphs bool) world {
	w := world{spec: drawSpec(t, "g"), salt: rapid.Uint64().Draw(t, "salt")}
	if subgraphs {
		inner := drawSpec(t, "inner")
		inner.Memory = rapid.SampledFrom([]pregel.Memory{pregel.MemoryRun, pregel.MemoryThread, pregel.MemoryNone}).Draw(t, "memory")
		// What it read and gives back doubles with every run: numbers bear that, lists do not. And what it gives back
		// are the values as last shown, which for channels that empty themselves depends on where a run was cut.
		inner.Output = []string{"sum"}
		w.spec.Subgraphs = map[string]*pregel.Spec{"inner": inner}
		n := &w.spec.Nodes[0]
		n.Subgraph, n.Retried = "inner", rapid.Bool().Draw(t, "retried")
	}
	return w
}

func drawSpec(t *rapid.T, name string) *pregel.Spec {
	spec := &pregel.Spec{Version: pregel.SpecVersion, Name: name, Channels: stateChannels}
	count := rapid.IntRange(1, 5).Draw(t, name+" nodes")
	for i := range count {
		spec.Nodes = append(spec.Nodes, pregel.NodeSpec{
			Name: fmt.Sprintf("n%d", (i*3+1)%count+i*10), Defer: rapid.IntRange(0, 5).Draw(t, "defer") == 0,
		})
	}
	if rapid.Bool().Draw(t, "handler") {
		for i := range spec.Nodes {
			if rapid.Bool().Draw(t, "handled") {
				spec.Nodes[i].ErrorHandler = "mend"
			}
		}
		spec.Nodes = append(spec.Nodes, pregel.NodeSpec{Name: "mend", Handler: true})
	}
	node := func(label string) string { return spec.Nodes[rapid.IntRange(0, count-1).Draw(t, label)].Name }
	spec.Edges = append(spec.Edges, pregel.Edge{From: pregel.Start, To: spec.Nodes[0].Name})
	for range rapid.IntRange(0, 2*count).Draw(t, "edges") {
		spec.Edges = append(spec.Edges, pregel.Edge{From: node("from"), To: node("to")})
	}
	if count > 2 && rapid.Bool().Draw(t, "join") {
		spec.Joins = append(spec.Joins, pregel.Join{From: []string{spec.Nodes[0].Name, spec.Nodes[1].Name}, To: node("join to")})
	}
	return spec
}

// outcome is what a task comes back with when it ran that often before.
func (w world) outcome(t *pregel.Task, before int) pregel.Outcome {
	o := w.ending(t, before)
	if w.pays && t.Retry == nil && !t.RouteOnly && !o.Yielded {
		o.Ledger = paid // whatever the ending
	}
	return o
}

// paid is the ledger of a task that did something outside.
var paid = pregel.Value(`"paid"`)

func (w world) ending(t *pregel.Task, before int) pregel.Outcome {
	dice := func(what string, sides uint64) uint64 {
		h := fnv.New64a()
		key := t.Key()
		if w.calm {
			key = fmt.Sprintf("%s %s %s", t.Path, t.State["sum"], t.State["log"])
		}
		fmt.Fprintf(h, "%d %s %s %s", w.salt, key, t.Arg, what)
		return h.Sum64() % sides
	}
	if t.Retry != nil {
		return pregel.Outcome{Again: t.Attempt < 20} // some fail for good
	}
	if !w.calm && before == 0 && dice("fails", 12) == 0 {
		return pregel.Outcome{Error: &pregel.NodeError{Type: "Boom", Message: "first time", Graph: "g", Node: t.Node}}
	}
	if !w.calm && dice("asks", 8) == 0 && len(t.Answers) == 0 {
		return pregel.Outcome{Questions: []pregel.Question{{ID: "q-" + t.Key(), Value: pregel.Null}}}
	}
	text := pregel.Value(fmt.Sprintf("%q", t.Path))
	o := pregel.Outcome{Emitted: []pregel.Emission{{Value: text}}, Cached: dice("cached", 20) == 0}
	if w.claims && dice("claims", 4) == 0 {
		for i := range dice("keys", 2) + 1 {
			key := fmt.Sprintf("k%d", (dice("key", 3)+i)%3)
			kept, owned := t.Kept[key]
			if !owned {
				o := pregel.Outcome{Yielded: true, Claim: key}
				if t.Ledger == nil {
					o.Ledger = text
				}
				return o
			}
			if o.Kept == nil {
				o.Kept = map[string]pregel.Value{}
			}
			if pregel.IsNull(kept) {
				o.Kept[key] = pregel.Value(`"done"`)
			}
		}
	}
	if w.drains && before == 0 && dice("drains", 12) == 0 {
		o.Drain = "enough"
	}
	write := func(channel string, v pregel.Value, sides uint64) {
		if dice(channel, sides) == 0 {
			o.Update = append(o.Update, pregel.Write{Channel: channel, Value: v, Overwrite: dice("over "+channel, 15) == 0})
		}
	}
	write("log", pregel.Value("["+string(text)+"]"), 1)
	write("sum", pregel.Value("1"), 2)
	write("any", text, 3)
	write("flash", text, 3)
	write("list", text, 2)
	write("all", text, 3)
	write("one", text, 6)
	for i := range w.spec.Nodes {
		node := w.spec.Nodes[i].Name
		if dice("goto "+node, 10) == 0 {
			o.Goto = append(o.Goto, pregel.Target{Node: node})
		}
		if i > 0 && dice("send "+node, 9) == 0 { // not to the subgraph: see the scripts for that
			o.Goto = append(o.Goto, pregel.Target{Node: node, Send: true, Arg: text})
		}
	}
	return o
}
