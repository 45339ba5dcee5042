package superstep

import (
	"reflect"

	"superstep.dev/graphadapter/pregel"
)

// channelSet is the union of a graph's schemas.
type channelSet struct {
	fields []schemaField
	byName map[string]int
	// input and output are the graph's schemas.
	input, output *schema
	reducers      map[string]pregel.Reducer
	kinds         map[string]reflect.Type // custom reducer's name → its Go type
}

// addChannels merges the state's channels with those of the input and output schemas and of the nodes' own inputs. The
// state comes first: what it declares is what the graph has.
func (c *compiler) addChannels() {
	c.channels = channelSet{byName: map[string]int{}, input: c.state, output: c.state,
		reducers: map[string]pregel.Reducer{}, kinds: map[string]reflect.Type{}}
	c.addSchema(c.state, "", c.call)
	if c.options.input != nil {
		c.channels.input = schemaOf(c.options.input)
		c.addSchema(c.channels.input, "", c.at)
	}
	if c.options.output != nil {
		c.channels.output = schemaOf(c.options.output)
		c.addSchema(c.channels.output, "", c.at)
	}
	for _, n := range c.nodes {
		if n.reads != nil && n.reads != c.state {
			c.addSchema(n.reads, n.name, n.call)
		}
	}
	for _, b := range c.branches {
		if b.reads != nil && b.reads != c.state {
			c.addSchema(b.reads, "", b.call)
		}
	}
	for _, h := range c.handlers {
		if h.reads != nil && h.reads != c.state {
			c.addSchema(h.reads, handledNode(h), h.call)
		}
	}
}

func (c *compiler) addSchema(s *schema, node, call string) {
	for _, problem := range s.problems {
		c.fail(node, call, "%s", problem)
	}
	for _, f := range s.fields {
		c.addReducer(f, node, call)
		at, known := c.channels.byName[f.name]
		if !known {
			c.channels.byName[f.name] = len(c.channels.fields)
			c.channels.fields = append(c.channels.fields, f)
			continue
		}
		c.checkSame(c.channels.fields[at], f, node, call)
	}
}

// checkSame holds two declarations of one channel against each other: the values must be of the same type, and the
// update rules the same, except that a superstep.Value only looks at what another schema declares (LangGraph's rule).
func (c *compiler) checkSame(have, other schemaField, node, call string) {
	if have.value != other.value {
		c.fail(node, call, "%s and %s share the channel %q, but one holds %s and the other %s",
			have.path, other.path, have.name, typeName(have.value), typeName(other.value))
		return
	}
	if other.spec.Kind != pregel.KindLast && !sameRule(have.spec, other.spec) {
		c.fail(node, call, "%s and %s share the channel %q with different update rules (%s and %s): "+
			"declare the second as superstep.Value", have.path, other.path, have.name, ruleName(have.spec), ruleName(other.spec))
	}
}

func sameRule(a, b pregel.ChannelSpec) bool {
	return a.Kind == b.Kind && a.Reducer == b.Reducer && a.Accumulate == b.Accumulate && a.Unguarded == b.Unguarded
}

func ruleName(s pregel.ChannelSpec) string {
	if s.Reducer != "" {
		return s.Reducer
	}
	return string(s.Kind)
}

// addReducer registers a field's custom reducer.
func (c *compiler) addReducer(f schemaField, node, call string) {
	if f.reducer != nil && c.claimReducer(f.reducer, f.path, node, call) {
		c.channels.reducers[f.reducer.Name()] = f.reducer
	}
}

// claimReducer refuses a name that stands for another implementation, here or in a subgraph: stored data knows
// reducers by name only.
func (c *compiler) claimReducer(r pregel.Reducer, where, node, call string) bool {
	name, t := r.Name(), reflect.TypeOf(r)
	if custom, ok := r.(customReducer); ok {
		t = custom.implementation()
	}
	if other, taken := c.channels.kinds[name]; taken && other != t {
		c.fail(node, call, "%s uses the reducer name %q for %s, which is already that of %s",
			where, name, typeName(t), typeName(other))
		return false
	}
	c.channels.kinds[name] = t
	return true
}

// messages returns the channels that hold conversations.
func (s *channelSet) messages() []string {
	var out []string
	for _, f := range s.fields {
		if f.spec.Reducer == messagesReducer {
			out = append(out, f.name)
		}
	}
	return out
}

// subset returns the merged channels of a schema.
func (s *channelSet) subset(of *schema) []schemaField {
	out := make([]schemaField, len(of.fields))
	for i, f := range of.fields {
		out[i] = s.fields[s.byName[f.name]]
	}
	return out
}

// reads returns the channels of a schema for a NodeSpec: nil when they are all that the graph has.
func (s *channelSet) reads(of *schema) []string {
	if of == nil || len(of.fields) == len(s.fields) {
		return nil
	}
	return of.names()
}
