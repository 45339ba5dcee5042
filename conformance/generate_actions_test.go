package main

// actions draws what is done with the graph: a first run, and then whatever people do.
func (g *generator) actions(root doc) []doc {
	nodes := []string{}
	for _, n := range root["nodes"].([]doc) {
		nodes = append(nodes, n["name"].(string))
	}
	out := []doc{g.options(doc{"invoke": g.input()}, nodes)}
	if g.pure {
		return out
	}
	for range g.count(0, 4, "actions") {
		out = append(out, g.action(nodes))
	}
	return append(out, doc{"history": true})
}

// input draws the input of a run.
func (g *generator) input() doc {
	in := doc{}
	if g.chance(50, "n") {
		in["n"] = g.count(0, 3, "input")
	}
	if g.chance(30, "log") {
		in["log"] = []string{"in"}
	}
	return in
}

// limit keeps loops short.
const limit = 8

// options adds the options of a run action.
func (g *generator) options(a doc, nodes []string) doc {
	a["recursion_limit"] = limit
	if g.pure {
		return a
	}
	if g.chance(15, "breaks") {
		a[pick(g, []string{"interrupt_before", "interrupt_after"}, "where")] = []string{pick(g, nodes, "at")}
	}
	if g.chance(25, "modes") {
		a["modes"] = []string{modeValues, modeUpdates, modeCustom, modeTasks}
	}
	if g.chance(30, "subgraphs") {
		a["subgraphs"] = true
	}
	if g.chance(20, "durability") {
		a["durability"] = pick(g, []string{"sync", "async", "exit"}, "mode")
	}
	return a
}

// action draws one more action. Whether it makes sense depends on what ran before; engines have to agree on nonsense too.
func (g *generator) action(nodes []string) doc {
	a := doc{}
	switch g.count(0, 9, "action") {
	case 0, 1:
		a = g.options(doc{"resume": pick(g, []string{"yes", "no"}, "answer")}, nodes)
	case 2, 3:
		answers := doc{}
		for _, q := range g.asks {
			if g.chance(75, "answered") {
				answers[q] = "ok"
			}
		}
		a = g.options(doc{"resume_map": answers}, nodes)
	case 4:
		a = g.options(doc{"invoke": nil}, nodes)
	case 5:
		a = g.options(doc{"invoke": g.input()}, nodes)
	case 6:
		u := doc{"values": doc{"log": []string{"edit"}}}
		if g.chance(70, "as") {
			u["as_node"] = pick(g, append([]string{"__end__"}, nodes...), "as node")
			if u["as_node"] == "__end__" {
				u["values"] = nil
			}
		}
		a = doc{"update_state": u}
	case 7:
		a = g.options(doc{"command": doc{"update": doc{"log": []string{"command"}}, "goto": []string{pick(g, nodes, "goto")}}}, nodes)
	case 8:
		return doc{"get_state": "subgraphs"}
	case 9:
		return doc{"history": true}
	}
	if g.chance(20, "from a checkpoint") {
		a["from_checkpoint"] = g.count(0, 2, "back")
	}
	return a
}
