package pregel

// The channels of a graph that is one function.
const (
	FunctionInput    = "input"    // of the run; gone once the function has ended
	FunctionOutput   = "output"   // what the function returned last
	FunctionPrevious = "previous" // what it keeps for the thread's next run
)

// FunctionSpec returns the Spec of a graph that is one function, its only node (section 11 of the semantics). Where other
// graphs take and show objects of channels, this one's input and the values of an update are any JSON except null: the
// function's argument, and what it is to have returned and kept.
func FunctionSpec(name string, node NodeSpec) *Spec {
	node.Reads = []string{FunctionInput, FunctionPrevious}
	return &Spec{Version: SpecVersion, Name: name, Function: true,
		Channels: []ChannelSpec{{Name: FunctionInput, Kind: KindEphemeral}, {Name: FunctionOutput, Kind: KindLast},
			{Name: FunctionPrevious, Kind: KindLast}},
		Nodes: []NodeSpec{node}, Edges: []Edge{{From: Start, To: node.Name}},
		Input: []string{FunctionInput}, Output: []string{FunctionOutput}}
}

// FunctionWrites are the writes of a function that returned and keeps these.
func FunctionWrites(output, kept Value) []Write {
	return []Write{{Channel: FunctionOutput, Value: output}, {Channel: FunctionPrevious, Value: kept}}
}

// checkFunction holds a function's Spec to its form: what goes on from its one node would not be reached by its input.
func (c *checker) checkFunction() {
	if !c.spec.Function {
		return
	}
	want := FunctionSpec(c.spec.Name, NodeSpec{})
	same := len(c.spec.Nodes) == 1 && len(c.spec.Edges) == 1 && len(c.spec.Branches)+len(c.spec.Joins) == 0 &&
		len(c.spec.Channels) == len(want.Channels) && len(c.spec.Input) == 1 && len(c.spec.Output) == 1 &&
		c.spec.Input[0] == FunctionInput && c.spec.Output[0] == FunctionOutput
	for i := range want.Channels {
		same = same && c.spec.Channels[i].Name == want.Channels[i].Name && c.spec.Channels[i].Kind == want.Channels[i].Kind
	}
	if !same {
		c.fail("", "it says that it is one function, but does not have the channels, the node and the edge of one")
	}
}
