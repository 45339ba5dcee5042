package casegen

// actions draws what is done with the graph: a first run, and then whatever people do.
func (g *generator) actions(root *shape) []Doc {
	options := g.options(root)
	out := []Doc{with(Doc{"invoke": g.input(0)}, options)}
	if g.Pure {
		return out
	}
	most := 4
	if g.Wide {
		most = 5
	}
	for i := range g.draw(most/2, most, "actions") {
		a, runs := g.action(root, i+1)
		if runs {
			a = with(a, options)
			if g.chance(6, "breaks") {
				a[pick(g, []string{"interrupt_before", "interrupt_after"}, "where")] = []string{pick(g, root.nodes, "at")}
			}
		}
		out = append(out, a)
	}
	return append(out, Doc{"history": true})
}

// input draws the input of a run.
func (g *generator) input(i int) Doc {
	in := Doc{"log": []string{[]string{"in", "in1", "in2", "in3", "in4", "in5"}[i]}}
	if g.chance(15, "n") {
		in["n"] = g.draw(0, 3, "input")
	}
	return in
}

// Limit is the recursion limit of pure cases, and of most others. It keeps loops short.
const Limit = 9

// options draws the options of a case's runs: people seldom change them from one run to the next.
func (g *generator) options(root *shape) Doc {
	o := Doc{"recursion_limit": Limit}
	if g.Pure {
		return o
	}
	if g.chance(8, "low limit") {
		o["recursion_limit"] = g.draw(2, 5, "limit")
	}
	if g.chance(10, "modes") {
		o["modes"] = []string{"values", "updates", "tasks"}
		if g.chance(50, "custom") {
			o["modes"] = []string{"values", "updates", "custom", "tasks"}
		}
	}
	if g.chance(30, "subgraphs") {
		o["subgraphs"] = true
	}
	if g.chance(30, "durability") {
		o["durability"] = pick(g, []string{"sync", "async", "exit"}, "mode")
	}
	if g.Recorded && o["durability"] == "sync" && g.forgets {
		delete(o, "durability") // LangGraph fails there: it waits for a checkpoint that such a subgraph does not write
	}
	return o
}

func with(a, options Doc) Doc {
	for k, v := range options {
		a[k] = v
	}
	return a
}

// answers are what people answer.
var answers = []any{"yes", "no", 7, 0, "", Doc{"ok": true}, []any{1}}

// action draws one more action, and reports whether it is a run. Whether it makes sense depends on what ran before;
// engines have to agree on nonsense too.
func (g *generator) action(root *shape, i int) (a Doc, runs bool) {
	kinds := []func(*shape, int) (Doc, bool){
		g.resume, g.resume, g.resume, g.goOn, g.goOn, g.goOn, g.again, g.answersByName, g.update, g.command, g.look,
	}
	if g.Wide {
		kinds = append(kinds, g.resume, g.update, g.command, g.command, g.answersByName)
	}
	return pick(g, kinds, "action")(root, i)
}

func (g *generator) resume(*shape, int) (Doc, bool) {
	return g.back(Doc{"resume": pick(g, answers, "answer")}, 10), true
}

func (g *generator) goOn(*shape, int) (Doc, bool) { return g.back(Doc{"invoke": nil}, 30), true }

func (g *generator) again(_ *shape, i int) (Doc, bool) {
	return g.back(Doc{"invoke": g.input(i)}, 10), true
}

func (g *generator) answersByName(*shape, int) (Doc, bool) {
	given, none := Doc{}, pick(g, answers, "answer")
	for _, q := range g.asks {
		if g.chance(60, "answered") {
			given[q] = none
			none = pick(g, answers, "answer")
		}
	}
	return Doc{"resume_map": given}, true
}

// update draws an update of the thread's state or, in wide cases, of a subgraph's.
func (g *generator) update(root *shape, _ int) (Doc, bool) {
	u := Doc{"values": Doc{"log": []string{"edit"}}}
	a := Doc{"update_state": u}
	switch {
	case g.Wide && len(g.pending) > 0 && g.chance(35, "subgraph"):
		u["values"] = Doc{"log": []string{"subedit"}}
		a["subgraph"] = pick(g, g.pending, "which")
		return a, false
	case g.chance(20, "nothing"):
		u["values"] = nil
		if g.chance(60, "the end") {
			u["as_node"] = "__end__"
		} else if g.chance(50, "as") {
			u["as_node"] = pick(g, root.nodes, "as node")
		}
	case g.chance(60, "as"):
		u["as_node"] = pick(g, root.nodes, "as node")
	}
	return g.back(a, 12), false
}

// command draws a command: an answer, an update, targets, or several of them.
func (g *generator) command(root *shape, _ int) (Doc, bool) {
	c := Doc{}
	if g.chance(50, "answers") {
		c["resume"] = pick(g, answers, "answer")
	}
	if g.chance(45, "updates") {
		c["update"] = pick(g, []Doc{{"n": 1}, {"log": []string{"cmd"}}}, "update")
	}
	if g.chance(40, "goes to") || len(c) == 0 {
		c["goto"] = []any{pick(g, root.nodes, "target")}
		if root.worker != "" && g.chance(15, "send") {
			c["goto"] = []any{Doc{"send": root.worker, "arg": Doc{"log": []string{"s"}, "n": 5}}}
		}
	}
	return g.back(Doc{"command": c}, 12), true
}

// look draws an action that only reads.
func (g *generator) look(*shape, int) (Doc, bool) {
	a := Doc{"get_state": "subgraphs"}
	switch g.draw(0, 5, "look") {
	case 0, 1:
		a = Doc{"history": true}
	case 2:
		return g.back(Doc{"get_state": true}, 60), false
	}
	if g.Wide && len(g.pending) > 0 && g.chance(40, "subgraph") {
		a["subgraph"] = pick(g, g.pending, "which")
		if a["get_state"] != nil {
			a["get_state"] = true
		}
	}
	return a, false
}

// back lets an action name an earlier checkpoint now and then.
func (g *generator) back(a Doc, percent int) Doc {
	if g.chance(percent, "from a checkpoint") {
		most := 2
		if g.Wide {
			most = 4
		}
		a["from_checkpoint"] = g.draw(0, most, "back")
	}
	return a
}
