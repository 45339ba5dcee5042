package casegen

import "fmt"

// node draws a node: a script, or a subgraph.
func (g *generator) node(s *shape, name string, depth int) Doc {
	n := Doc{"name": name}
	if name != s.worker && g.chance(8, "defer") {
		n["defer"] = true
	}
	percent := 20
	if g.Wide {
		percent = 35
	}
	if depth < deepest && g.chance(percent, "subgraph") {
		n["subgraph"] = g.child(s, name, depth)
		if g.Wide && g.chance(18, "subgraph's retry") {
			n["retry"] = Doc{"max_attempts": 2}
		}
		return n
	}
	n["script"] = g.script(s, name, depth, n)
	return n
}

// child draws the graph that a node runs and returns its name.
func (g *generator) child(s *shape, node string, depth int) string {
	name := fmt.Sprintf("g%d", len(g.graphs))
	g.graphs[name] = nil // taken
	drawn := g.graph(s, node, depth+1)
	g.graphs[name] = drawn.doc
	g.pending = append(g.pending, drawn.path)
	return name
}

// script draws what a node does. A retry policy goes into the node n.
func (g *generator) script(s *shape, name string, depth int, n Doc) []Doc {
	ops := []Doc{}
	var id any = name
	if name == s.worker {
		id = Doc{"$cat": []any{name, Doc{"$at": []any{Doc{"$arg": true}, "n"}}}}
	}
	said := []any{id}
	if g.chance(12, "custom") {
		ops = append(ops, Doc{"op": "custom", "value": name + " here"})
	}
	if !g.Pure {
		asked, vars := g.questions(s, name)
		ops = append(ops, asked...)
		said = append(said, vars...)
	}
	if g.Wide && depth < deepest && g.chance(4, "call") {
		ops = append(ops, g.call(s, name, depth))
		said = append(said, Doc{"$at": []any{Doc{"$var": "c"}, "n"}})
	}
	if len(s.channels) > 2 && g.chance(35, "reads") {
		said = append(said, Doc{"$get": pick(g, s.channels[2:], "read").name})
	}
	if !g.chance(5, "silent") {
		ops = append(ops, write("log", Doc{"$list": said}), write("n", 1))
	}
	ops = append(ops, g.writes(s, name)...)
	if !g.Pure && !g.failing && !s.sent && name != s.worker && g.chance(10, "fails") {
		ops = append(ops, g.failure(n)...)
	}
	if g.chance(18, "goto") {
		ops = append(ops, g.jump(s, name))
	}
	if g.Wide && g.chance(4, "returns nothing") {
		ops = append(ops, Doc{"op": "return_nothing"})
	}
	return ops
}

func write(channel string, value any) Doc {
	return Doc{"op": "write", "channel": channel, "value": value}
}

// questions draws up to two questions of a node, and the variables that hold their answers.
func (g *generator) questions(s *shape, name string) (ops []Doc, answers []any) {
	if !g.chance(32, "asks") {
		return nil, nil
	}
	first := "q:" + name
	for i, variable := range []string{"v", "w"} {
		if i == 0 && g.chance(15, "only the second") || i == 1 && !g.chance(30, "asks twice") && len(ops) > 0 {
			continue
		}
		ask := Doc{"op": "interrupt", "into": variable}
		switch {
		case i == 1:
			ask["value"] = first + "2"
			g.asks = append(g.asks, first+"2")
		case name == s.worker:
			ask["value"] = Doc{"$cat": []any{first, Doc{"$at": []any{Doc{"$arg": true}, "n"}}}}
			g.numbered(first)
		case g.chance(60, "asks with a number"):
			ask["value"] = Doc{"$cat": []any{first + ":", Doc{"$get": "n"}}}
			g.numbered(first + ":")
		default:
			ask["value"] = first
			g.asks = append(g.asks, first)
		}
		if name == s.worker && g.chance(30, "only one asks") {
			ask = Doc{"op": "if", "cond": Doc{"$eq": []any{Doc{"$at": []any{Doc{"$arg": true}, "n"}}, 2}}, "then": []Doc{ask}}
		}
		ops = append(ops, ask)
		answers = append(answers, Doc{"$var": variable})
	}
	return ops, answers
}

// numbered notes questions that end with a small number.
func (g *generator) numbered(prefix string) {
	for n := range 8 {
		g.asks = append(g.asks, fmt.Sprint(prefix, n))
	}
}

// call draws a graph that is called from code.
func (g *generator) call(s *shape, name string, depth int) Doc {
	before := len(g.pending)
	child := g.child(s, name+"x", depth+deepest-1)
	g.pending = g.pending[:before] // no subgraph of a task
	delete(g.graphs[child].(Doc), "compile")
	return Doc{"op": "call", "graph": child, "input": Doc{"log": []string{"call"}}, "into": "c"}
}

// failure ends a script with a failure that goes away, and sometimes with the retry that makes it.
func (g *generator) failure(n Doc) []Doc {
	g.failing = true
	if g.chance(40, "retry") {
		n["retry"] = Doc{"max_attempts": g.draw(1, 3, "attempts")}
	}
	fail := Doc{"op": "fail", "message": "boom", "times": g.draw(1, 2, "times")}
	if g.Recorded {
		return []Doc{{"op": "sleep", "ms": 60}, fail}
	}
	return []Doc{fail}
}

// writes draws the writes beside log and n.
func (g *generator) writes(s *shape, name string) []Doc {
	var ops []Doc
	for _, c := range s.channels[2:] {
		if g.chance(35, "writes") {
			ops = append(ops, write(c.name, g.value(c, name)))
		}
	}
	if g.chance(4, "overwrite") {
		over := write("n", Doc{"$obj": Doc{"__overwrite__": 1}})
		if g.Wide {
			over = write("log", Doc{"$obj": Doc{"__overwrite__": Doc{"$list": []any{name, "over"}}}})
		}
		ops = append(ops, over)
	}
	return ops
}

// messages are what is written to a channel of messages.
var messages = [][]Doc{
	{{"role": "assistant", "content": "hi"}},
	{{"role": "assistant", "content": "yo"}},
	{{"role": "user", "content": "one", "id": "m1"}},
	{{"role": "assistant", "content": "two", "id": "m1"}},
	{{"role": "user", "content": "two", "id": "m2"}},
	{{"role": "user", "content": "k", "id": "m3"}, {"role": "remove", "id": "m3"}},
	{{"role": "remove", "id": "__remove_all__"}, {"role": "user", "content": "fresh", "id": "m1"}},
}

// value draws what is written to a channel, of the type that its reducer takes.
func (g *generator) value(c channel, name string) any {
	number := g.draw(1, 9, "number")
	switch c.kind {
	case "messages":
		return pick(g, messages, "message")
	case "concat":
		return pick(g, []string{"y", "z"}, "text")
	case "merge":
		return Doc{pick(g, []string{"p", "q"}, "key"): number}
	case "topic", "topic_accumulate":
		if g.chance(25, "several") {
			return []int{number, g.draw(1, 9, "number")}
		}
	case "last":
		if g.chance(50, "grows") {
			return Doc{"$add": []any{Doc{"$get": "n"}, number}}
		}
	}
	return number
}

// jump draws a goto; in a wide case's subgraph sometimes one of the parent graph. It is under a condition half of the
// time: the others lead on until the recursion limit, or nowhere.
func (g *generator) jump(s *shape, name string) Doc {
	to := Doc{"op": "goto", "to": g.targets(s)}
	if g.Wide && s.parent != nil && g.chance(45, "parent") {
		to = Doc{"op": "goto", "to": []any{pick(g, s.parent.nodes, "parent's node")}, "graph": "parent"}
	}
	if !g.chance(50, "always") {
		return Doc{"op": "if", "cond": Doc{"$lt": []any{Doc{"$get": "n"}, g.draw(1, 7, "below")}}, "then": []Doc{to}}
	}
	return to
}

// targets draws the targets of a goto or a branch.
func (g *generator) targets(s *shape) []any {
	if s.worker != "" && g.chance(55, "send") {
		if g.chance(55, "each") {
			return []any{Doc{"send": s.worker, "each": []int{1, 2, 3}[:g.draw(1, 3, "sends")],
				"arg": Doc{"$obj": Doc{"log": []any{}, "n": Doc{"$item": true}}}}}
		}
		return []any{Doc{"send": s.worker, "arg": Doc{"log": []string{"s"}, "n": g.draw(1, 8, "arg")}}}
	}
	return []any{pick(g, append([]string{"__end__"}, s.nodes...), "target")}
}

// branch draws a conditional edge. It leads back for as long as n is small.
func (g *generator) branch(s *shape, from string, later []string) Doc {
	ahead := append([]string{"__end__"}, later...)
	leave := []any{pick(g, ahead, "leaves to")}
	if g.chance(25, "two routes") {
		leave = []any{"__end__", pick(g, ahead, "leaves to")}
	}
	b := Doc{"from": from}
	if g.chance(30, "unconditional") {
		if s.worker != "" && g.chance(60, "sends") {
			leave = g.targets(s)
		}
		b["script"] = []Doc{{"op": "route", "to": leave}}
	} else {
		b["script"] = []Doc{{
			"op": "if", "cond": Doc{"$lt": []any{Doc{"$get": "n"}, g.draw(2, 7, "below")}},
			"then": []Doc{{"op": "route", "to": g.targets(s)}},
			"else": []Doc{{"op": "route", "to": leave}},
		}}
	}
	if g.chance(12, "paths") {
		paths := append([]string{"__end__"}, s.nodes...)
		if s.worker != "" {
			paths = append(paths, s.worker)
		}
		b["paths"] = paths
	}
	return b
}
