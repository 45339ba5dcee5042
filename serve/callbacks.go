package serve

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"superstep.dev/thread"
)

// callbacks makes the callback events of LangChain of one run's stream: those of the graph, of its subgraphs, of their nodes, and of the
// models that nodes stream. A run that is read again gives the same ones.
type callbacks struct {
	*teller
	// called are the nodes and models under way, by task; graphs are the subgraphs that have begun, by the task that they are of.
	called, models map[string]*call
	graphs         map[string]*call
	// values are those that each graph showed last, by its namespace.
	values map[string]json.RawMessage
}

// call is what callback events are of.
type call struct {
	name, id string
	parents  []string
	tags     []string
	metadata object
	input    json.RawMessage
	// message is what a model has said so far, in pieces that hold so many calls of tools.
	message *partial
	calls   int
}

func newCallbacks(t *teller) *callbacks {
	return &callbacks{teller: t, called: map[string]*call{}, models: map[string]*call{}, graphs: map[string]*call{}, values: map[string]json.RawMessage{}}
}

// id is the id of what callback events are of.
func (c *callbacks) id(kind, of string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("superstep:callback:"+c.run.ID+"\n"+kind+"\n"+of)).String()
}

// tell is an event of a call.
func (c *callbacks) tell(of *call, name string, data object) event {
	return event{"events", map[string]any{"event": name, "name": of.name, "run_id": of.id, "tags": of.tags, "metadata": of.metadata,
		"parent_ids": of.parents, "data": data}}
}

// whole is the call of the graph itself.
func (c *callbacks) whole() *call {
	return &call{name: c.graph, id: c.run.ID, parents: []string{}, tags: []string{}, metadata: c.runMetadata()}
}

// begins says that the run begins, with what it was asked for.
func (c *callbacks) begins() event {
	var asked struct {
		Input, Command json.RawMessage
	}
	input := raw(nil)
	if json.Unmarshal(c.run.Kwargs, &asked) == nil {
		switch {
		case given(asked.Command):
			input = asked.Command
		case given(asked.Input):
			input = asked.Input
		}
	}
	return c.tell(c.whole(), "on_chain_start", object{"input": input})
}

// ends says that the run has come to its end, or to a question.
func (c *callbacks) ends() event {
	return c.tell(c.whole(), "on_chain_end", object{"output": c.valuesOf("")})
}

// valuesOf are the values that a graph showed last.
func (c *callbacks) valuesOf(space string) json.RawMessage {
	var values object
	if json.Unmarshal(c.values[space], &values) != nil || values == nil {
		return raw(object{})
	}
	delete(values, "__interrupt__")
	return raw(shown(values, c.conversations))
}

// of are the events of a part.
func (c *callbacks) of(p thread.Part) []event {
	switch p.Mode {
	case thread.StreamValues:
		c.values[strings.Join(p.Namespace, "|")] = p.Data
	case thread.StreamTasks:
		return c.ofTask(p)
	case thread.StreamMessages:
		return c.ofMessage(p)
	case thread.StreamUpdates:
		return c.ofUpdate(p)
	case thread.StreamReset:
		delete(c.models, p.Task)
	}
	return nil
}

// parents are the ids of the calls around a part: the graph's, and for each node around it that node's and its subgraph's.
func (c *callbacks) parents(p thread.Part) []string {
	out := []string{c.run.ID}
	for i := range p.Namespace {
		at := strings.Join(p.Namespace[:i+1], "|")
		out = append(out, c.id("node", at), c.id("graph", at))
	}
	return out
}

// entered says that the subgraph of a part begins, if it has not before.
func (c *callbacks) entered(p thread.Part) []event {
	at := strings.Join(p.Namespace, "|")
	node := c.called[at]
	if at == "" || node == nil || c.graphs[at] != nil {
		return nil
	}
	inner := *node
	inner.id, inner.parents, inner.tags = c.id("graph", at), append(append([]string{}, node.parents...), node.id), []string{"seq:step:1"}
	c.graphs[at] = &inner
	return []event{c.tell(&inner, "on_chain_start", object{"input": inner.input})}
}

// ofTask are the events of a node's start or end. A node that asks, or fails, has no end.
func (c *callbacks) ofTask(p thread.Part) []event {
	task := c.task(p.Data, whyTask)
	if _, begins := task["triggers"]; begins {
		out := c.entered(p)
		metadata := c.runMetadata()
		metadata["thread_id"], metadata["langgraph_step"], metadata["langgraph_node"] = raw(c.thread), raw(p.Step), task["name"]
		metadata["langgraph_triggers"], metadata["langgraph_checkpoint_ns"] = task["triggers"], raw(spaceOf(c.names, splitSpace(p.Task)))
		node := &call{name: task.text("name"), id: c.id("node", p.Task), parents: c.parents(p), tags: []string{"graph:step:" + itoa(p.Step)},
			metadata: metadata, input: task["input"]}
		c.called[p.Task] = node
		return append(out, c.tell(node, "on_chain_start", object{"input": node.input}))
	}
	node := c.called[p.Task]
	delete(c.called, p.Task)
	delete(c.graphs, p.Task)
	if node == nil || given(task["error"]) || !isEmpty(task["interrupts"]) {
		return nil
	}
	return []event{c.tell(node, "on_chain_end", object{"output": task["result"], "input": node.input})}
}

// ofUpdate are the events of what a node wrote: its model has come to its end, and its subgraph.
func (c *callbacks) ofUpdate(p thread.Part) []event {
	var nodes object
	if json.Unmarshal(c.update(p.Data), &nodes) != nil || nodes["__interrupt__"] != nil {
		return nil
	}
	out := c.said(p.Task)
	if inner := c.graphs[p.Task]; inner != nil {
		out = append(out, c.tell(inner, "on_chain_end", object{"output": c.valuesOf(p.Task), "input": inner.input}))
	}
	node := c.called[p.Task]
	for _, name := range sortedKeys(nodes) {
		if node != nil && !strings.HasPrefix(name, "__") {
			out = append(out, c.tell(node, "on_chain_stream", object{"chunk": nodes[name]}))
		}
	}
	return out
}

// said says that the model of a task has come to its end, if it has one.
func (c *callbacks) said(task string) []event {
	model := c.models[task]
	if model == nil {
		return nil
	}
	delete(c.models, task)
	return []event{c.tell(model, "on_chat_model_end", object{"output": raw(model.message.whole()), "input": model.input})}
}

// ofMessage are the events of a piece of what a model says: the first one begins it.
func (c *callbacks) ofMessage(p thread.Part) []event {
	var both []json.RawMessage
	var said piece
	node := c.called[p.Task]
	if json.Unmarshal(p.Data, &both) != nil || len(both) != 2 || json.Unmarshal(both[0], &said) != nil || said.Role != "assistant" || node == nil {
		return nil
	}
	var out []event
	model := c.models[p.Task]
	if model != nil && model.message.id != said.ID {
		out, model = c.said(p.Task), nil
	}
	if model == nil {
		inner := *node
		model = &inner
		model.id, model.parents, model.tags = c.id("model", p.Task+"\n"+said.ID), append(append([]string{}, node.parents...), node.id), []string{"seq:step:1"}
		model.message, model.input = &partial{id: said.ID}, raw(map[string]any{"messages": []any{c.conversation(node.input)}})
		c.models[p.Task] = model
		out = append(out, c.tell(model, "on_chat_model_start", object{"input": model.input}))
	}
	out = append(out, c.tell(model, "on_chat_model_stream", object{"chunk": raw(said.chunk(model.calls))}))
	for _, one := range said.ToolCalls {
		if one.ID != "" {
			model.calls++
		}
	}
	model.message.add(said)
	return out
}

// conversation are the messages in what a node was given.
func (c *callbacks) conversation(input json.RawMessage) json.RawMessage {
	var fields object
	if json.Unmarshal(input, &fields) == nil {
		for _, name := range sortedKeys(fields) {
			if c.conversations[name] {
				return fields[name]
			}
		}
	}
	return raw([]any{})
}
