package pregel

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Program is a compiled Spec: names became ordinals, edges became writes. It is read-only and safe to share.
type Program struct {
	Spec *Spec

	channels []channel
	index    map[string]int // channel ordinal by name
	state    int            // channels[:state] are the graph's own
	start    int            // ordinal of the input channel
	tasks    int            // ordinal of the Sends
	nodes    []node         // nodes[0] is the entry
	nodeAt   map[string]int
	triggers int   // of all nodes together
	declared []int // node ordinals as they are declared
	byName   []int // node ordinals in order of name
	rank     []int // the inverse of byName
	inputs   []bool
	outputs  []bool
	before   breakpoints
	after    breakpoints
	subs     map[string]*Program
}

// node is a compiled node.
type node struct {
	name     string
	spec     *NodeSpec // nil for the entry
	trigger  int       // its branch:to channel; -1 for the entry
	triggers []int
	seenAt   int   // where a checkpoint has what it has seen of its triggers
	reads    []int // nil means every state channel
	static   []staticWrite
	branches []Branch
	sub      *Program
	memory   string // the path of nodes, from this one, to the first subgraph that remembers for the thread's life; "" for none
	handler  int    // its error handler, 0 for none
}

// handles reports whether the node is an error handler: it runs for a failed task only, nothing else leads to it.
func (n *node) handles() bool { return n.spec != nil && n.spec.Handler }

// staticWrite is an edge: what a node writes after each run besides its state.
type staticWrite struct {
	channel int
	source  int // a join's source index
}

// Compile checks a Spec and compiles it. reducers are looked up by name before the engine's own. The error joins a
// *CompileError for each mistake, or is a *SpecVersionError or *UnknownReducerError.
func Compile(spec *Spec, reducers map[string]Reducer) (*Program, error) {
	if spec == nil {
		return nil, &CompileError{Message: "there is no spec of it"}
	}
	if spec.Version > SpecVersion {
		return nil, &SpecVersionError{Graph: spec.Name, Got: spec.Version, Most: SpecVersion}
	}
	if err := validate(spec); err != nil {
		return nil, err
	}
	p := &Program{Spec: spec, index: map[string]int{}, nodeAt: map[string]int{}, subs: map[string]*Program{}}
	if err := p.addChannels(reducers); err != nil {
		return nil, err
	}
	for _, name := range sortedKeys(spec.Subgraphs) {
		sub, err := Compile(spec.Subgraphs[name], reducers)
		if err != nil {
			return nil, err
		}
		p.subs[name] = sub
	}
	p.addNodes()
	p.addJoins()
	p.addEdges()
	p.addWakes()
	p.inputs = p.selection(spec.Input)
	p.outputs = p.selection(spec.Output)
	p.before, p.after = p.breakpoints(spec.InterruptBefore), p.breakpoints(spec.InterruptAfter)
	return p, nil
}

func (p *Program) addChannels(reducers map[string]Reducer) error {
	for _, spec := range p.Spec.Channels {
		c := channel{name: spec.Name, guard: !spec.Unguarded, accumulate: spec.Accumulate}
		c.rule = ruleOf[spec.Kind]
		if c.rule == ruleReduce {
			reducer, ok := reducers[spec.Reducer]
			if !ok {
				reducer, ok = Builtin(spec.Reducer)
			}
			if !ok {
				return &UnknownReducerError{Graph: p.Spec.Name, Channel: spec.Name, Reducer: spec.Reducer}
			}
			c.reducer, c.zero = reducer, spec.Default
			if c.zero == nil {
				c.zero = zeroOf(reducer)
			}
			if c.zero != nil && !json.Valid(c.zero) {
				return &CompileError{Graph: p.Spec.Name, Message: fmt.Sprintf("the channel %q begins with %q, which is not JSON: "+
					"mend its default, or the zero value of the reducer %q", spec.Name, brief(c.zero), spec.Reducer)}
			}
		}
		p.add(c)
	}
	p.state = len(p.channels)
	p.start = p.add(channel{name: startChannel, rule: ruleEphemeral, guard: true})
	p.tasks = p.add(channel{name: tasksChannel, rule: ruleSends})
	return nil
}

func (p *Program) add(c channel) int {
	at := len(p.channels)
	p.channels = append(p.channels, c)
	p.index[c.name] = at
	return at
}

func (p *Program) addNodes() {
	p.nodeAt[Start] = 0
	p.nodes = append(p.nodes, node{name: Start, trigger: -1, triggers: []int{p.start}, branches: p.Spec.BranchesOf(Start)})
	for i := range p.Spec.Nodes {
		spec := &p.Spec.Nodes[i]
		rule := ruleTrigger
		if spec.Defer {
			rule = ruleTriggerAfter
		}
		trigger := p.add(channel{name: triggerPrefix + spec.Name, rule: rule})
		n := node{name: spec.Name, spec: spec, trigger: trigger, triggers: []int{trigger},
			branches: p.Spec.BranchesOf(spec.Name), sub: p.subs[spec.Subgraph]}
		n.memory = n.firstMemory()
		for _, name := range spec.Reads {
			n.reads = append(n.reads, p.index[name])
		}
		p.nodeAt[spec.Name] = len(p.nodes)
		p.nodes = append(p.nodes, n)
	}
	for i := range p.Spec.Nodes {
		if name := p.Spec.Nodes[i].ErrorHandler; name != "" {
			p.nodes[i+1].handler = p.nodeAt[name]
		}
	}
	p.declared = make([]int, len(p.nodes))
	for i := range p.declared {
		p.declared[i] = i
	}
	p.byName = slices.Clone(p.declared)
	slices.SortFunc(p.byName, func(a, b int) int { return strings.Compare(p.nodes[a].name, p.nodes[b].name) })
	p.rank = make([]int, len(p.nodes))
	for at, n := range p.byName {
		p.rank[n] = at
	}
}

// firstMemory returns the memory key, within the node's graph, of the node's subgraph when that remembers, else of the
// first declared one within.
func (n *node) firstMemory() string {
	switch {
	case n.sub == nil:
		return ""
	case n.sub.Spec.Memory == MemoryThread:
		return memoryKey(nil, n.name)
	}
	for i := range n.sub.nodes {
		if inner := n.sub.nodes[i].memory; inner != "" {
			return memoryKey([]string{n.name}, inner)
		}
	}
	return ""
}

func (p *Program) addJoins() {
	for _, j := range p.Spec.Joins {
		if j.To == End {
			continue
		}
		to := &p.nodes[p.nodeAt[j.To]]
		rule := ruleJoin
		if to.spec.Defer {
			rule = ruleJoinAfter
		}
		name := joinPrefix + strings.Join(j.From, "+") + ":" + j.To
		if _, twice := p.index[name]; twice {
			continue
		}
		at := p.add(channel{name: name, rule: rule, sources: j.From})
		to.triggers = append(to.triggers, at)
		for i, from := range j.From {
			source := &p.nodes[p.nodeAt[from]]
			source.static = append(source.static, staticWrite{channel: at, source: i})
		}
	}
}

func (p *Program) addEdges() {
	for _, e := range p.Spec.Edges {
		if e.To == End {
			continue
		}
		from := &p.nodes[p.nodeAt[e.From]]
		from.static = append(from.static, staticWrite{channel: p.nodes[p.nodeAt[e.To]].trigger})
	}
}

func (p *Program) addWakes() {
	for i := range p.nodes {
		p.nodes[i].seenAt = p.triggers
		p.triggers += len(p.nodes[i].triggers)
		for _, t := range p.nodes[i].triggers {
			p.channels[t].wakes = append(p.channels[t].wakes, i)
		}
	}
}

// seenBy is what a node has seen of its triggers.
func (p *Program) seenBy(c *Checkpoint, at int) []int64 {
	n := &p.nodes[at]
	return c.seen[n.seenAt : n.seenAt+len(n.triggers)]
}

// selection marks the named state channels; nil names mean all of them.
func (p *Program) selection(names []string) []bool {
	out := make([]bool, p.state)
	for i := range out {
		out[i] = names == nil
	}
	for _, name := range names {
		out[p.index[name]] = true
	}
	return out
}

// Subgraph returns the program of a subgraph by its path of names from this one.
func (p *Program) Subgraph(path []string) (*Program, bool) {
	for _, name := range path {
		sub, ok := p.subs[name]
		if !ok {
			return nil, false
		}
		p = sub
	}
	return p, true
}

// breakpoints is a compiled interrupt list.
type breakpoints struct {
	all   bool
	some  bool // it holds anything at all
	nodes []bool
}

func (p *Program) breakpoints(names []string) breakpoints {
	b := breakpoints{some: len(names) > 0, nodes: make([]bool, len(p.nodes))}
	for _, name := range names {
		if name == All {
			b.all = true
			continue
		}
		if at, ok := p.nodeAt[name]; ok && !p.nodes[at].handles() {
			b.nodes[at] = true
		}
	}
	return b
}

// hit reports whether a breakpoint holds one of the tasks. [All] leaves out the entry, which no user wrote. Error handlers
// are in no list; they stop with the node whose failure they handle.
func (b breakpoints) hit(tasks []*Task) bool {
	return slices.ContainsFunc(tasks, func(t *Task) bool { return b.nodes[t.node] || b.all && t.node != 0 })
}

// memoryKey names a remembering subgraph: the nodes that lead to it, whatever the superstep.
func memoryKey(nodes []string, node string) string {
	return strings.Join(append(slices.Clip(nodes), node), "|")
}

// byMemoryKey returns the subgraph that a memory key names.
func (p *Program) byMemoryKey(key string) (*Program, bool) {
	for _, name := range strings.Split(key, "|") {
		at, ok := p.nodeAt[name]
		if !ok || p.nodes[at].sub == nil {
			return nil, false
		}
		p = p.nodes[at].sub
	}
	return p, true
}

// TaskQueue returns the task queue that a task's node is pinned to, "" for the run's own.
func (p *Program) TaskQueue(t *Task) string {
	sub, ok := p.Subgraph(t.Graph)
	if !ok {
		return ""
	}
	if at, ok := sub.nodeAt[t.Node]; ok && at > 0 {
		return sub.nodes[at].spec.TaskQueue
	}
	return ""
}
