package serve

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// event is an event as clients get it.
type event struct {
	name string
	data any
}

// teller makes clients' events of the parts of one run's stream.
type teller struct {
	thread, names string
	graph         string
	run           record.Run
	modes         []string
	subgraphs     bool
	callbacks     *callbacks // nil when they were not asked for
	conversations map[string]bool
	partials      map[string]*partial
	calls         map[string]int
	named         map[string]bool
	// emitted is what each task under way has streamed.
	emitted map[string]*emission
	about   about
}

// emission is what a task has streamed: the ids of its messages, and where they come from.
type emission struct {
	ids   []string
	about json.RawMessage
}

// about is what was told last of where a message comes from: the pieces of one have it in common.
type about struct{ given, shown json.RawMessage }

func newTeller(x *renderer, run record.Run, modes []string, subgraphs bool) *teller {
	t := &teller{thread: x.thread, names: x.names(), graph: x.spec.Name, run: run, modes: modes, subgraphs: subgraphs, conversations: x.conversations,
		partials: map[string]*partial{}, calls: map[string]int{}, named: map[string]bool{}, emitted: map[string]*emission{}}
	if t.wants("events") {
		t.callbacks = newCallbacks(t)
	}
	return t
}

// wants reports whether a mode was asked for.
func (t *teller) wants(mode string) bool { return slices.Contains(t.modes, mode) }

// streamed are the modes of the thread's stream that the modes are made of.
func (t *teller) streamed() []thread.StreamMode {
	of := map[string][]thread.StreamMode{"values": {thread.StreamValues}, "updates": {thread.StreamUpdates}, "custom": {thread.StreamCustom},
		"messages": {thread.StreamMessages}, "messages-tuple": {thread.StreamMessages}, "tasks": {thread.StreamTasks},
		"checkpoints": {thread.StreamCheckpoints}, "debug": {thread.StreamDebug}, "events": {thread.StreamTasks, thread.StreamValues, thread.StreamUpdates, thread.StreamMessages}}
	var out []thread.StreamMode
	for _, m := range t.modes {
		for _, s := range of[m] {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// of are the events of a part. Callback events are told of subgraphs too, whatever was asked for.
func (t *teller) of(p thread.Part) []event {
	var out []event
	if t.subgraphs || len(p.Namespace) == 0 {
		out = t.ownModes(p)
	}
	if t.callbacks != nil {
		out = append(out, t.callbacks.of(p)...)
	}
	return out
}

// ownModes are the events of a part in the modes that show the thread's own.
func (t *teller) ownModes(p thread.Part) []event {
	suffix := ""
	if len(p.Namespace) > 0 {
		suffix = "|" + spaceOf(t.names, p.Namespace)
	}
	var out []event
	add := func(mode string, data any) {
		if t.wants(mode) {
			out = append(out, event{mode + suffix, data})
		}
	}
	switch p.Mode {
	case thread.StreamValues:
		add("values", valuesOut(p.Data, t.conversations))
	case thread.StreamUpdates:
		add("updates", t.update(p.Data))
	case thread.StreamCustom:
		add("custom", p.Data)
	case thread.StreamTasks:
		add("tasks", t.task(p.Data, whyTask))
	case thread.StreamCheckpoints:
		add("checkpoints", t.checkpoint(p.Data))
	case thread.StreamDebug:
		add("debug", t.debug(p.Data))
	case thread.StreamMessages:
		out = append(out, t.message(p.Task, p.Data, suffix)...)
	case thread.StreamReset:
		out = t.void(p.Task, suffix)
	}
	return out
}

// void forgets how far the messages of a task have come: it streams them from their beginning. Clients put chunks of one id behind each
// other, so each message is removed first.
func (t *teller) void(task, suffix string) (out []event) {
	said := t.emitted[task]
	if said == nil {
		return nil
	}
	for _, id := range said.ids {
		delete(t.partials, id)
		delete(t.calls, id)
		if t.wants("messages-tuple") {
			out = append(out, event{"messages" + suffix, pair(raw(map[string]string{"id": id, "type": "remove", "content": ""}), said.about)})
		}
	}
	delete(t.emitted, task)
	return out
}

// update is {node: its writes}.
func (t *teller) update(data json.RawMessage) json.RawMessage {
	var nodes object
	if json.Unmarshal(data, &nodes) != nil {
		return data
	}
	for node, writes := range nodes {
		switch {
		case node == "__interrupt__":
			nodes[node] = questionsOut(writes)
		case !strings.HasPrefix(node, "__"):
			nodes[node] = shownJSON(writes, t.conversations)
		}
	}
	return raw(nodes)
}

// task is the start or the end of a task. why writes why it failed.
func (t *teller) task(data json.RawMessage, why func(record.Failure) any) object {
	var task object
	if json.Unmarshal(data, &task) != nil {
		return object{}
	}
	if id := task.text("id"); id != "" {
		task["id"] = raw(taskID(t.names, id))
	}
	for _, name := range []string{"input", "result"} {
		if v, ok := task[name]; ok {
			task[name] = shownJSON(v, t.conversations)
		}
	}
	if v, ok := task["interrupts"]; ok {
		task["interrupts"] = questionsOut(v)
	}
	if _, begins := task["triggers"]; begins {
		task["metadata"] = raw(t.runMetadata())
	}
	var failure struct{ Type, Message string }
	if v := task["error"]; given(v) && json.Unmarshal(v, &failure) == nil {
		task["error"] = raw(why(record.Failure{Type: failure.Type, Message: failure.Message}))
	}
	return task
}

// Why a task failed is told whole of a task, and in one line within a state.
func whyTask(f record.Failure) any  { return f }
func whyState(f record.Failure) any { return f.Type + ": " + f.Message }

func (t *teller) checkpoint(data json.RawMessage) object {
	var c object
	if json.Unmarshal(data, &c) != nil {
		return object{}
	}
	c["values"] = valuesOut(c["values"], t.conversations)
	var tasks []json.RawMessage
	if json.Unmarshal(c["tasks"], &tasks) == nil {
		for i := range tasks {
			task := t.task(tasks[i], whyState)
			if at := t.placeIn(task["state"], nil); at != nil {
				at.Run = ""
				task["state"] = raw(configured{*at})
			}
			tasks[i] = raw(task)
		}
		c["tasks"] = raw(tasks)
	}
	metadata, parents := t.around(c["metadata"])
	c["metadata"] = metadata
	for _, name := range []string{"config", "parent_config"} {
		if at := t.placeIn(c[name], parents); at != nil {
			c[name] = raw(configured{*at})
		}
	}
	return c
}

// configured is a place as it stands in a configuration.
type configured struct {
	Configurable place `json:"configurable"`
}

// around is the metadata of a checkpoint in which the checkpoints around it are named as clients see them, and these.
func (t *teller) around(metadata json.RawMessage) (json.RawMessage, map[string]string) {
	var m object
	var inner, outer map[string]string
	if json.Unmarshal(metadata, &m) != nil || json.Unmarshal(m["parents"], &inner) != nil {
		return metadata, nil
	}
	outer = make(map[string]string, len(inner))
	for space, checkpoint := range inner {
		outer[spaceOf(t.names, splitSpace(space))] = checkpointOut(t.names, checkpoint)
	}
	m["parents"] = raw(outer)
	return raw(m), outer
}

// placeIn is the checkpoint that a configuration of the engine names, with those around it; nil for none.
func (t *teller) placeIn(config json.RawMessage, parents map[string]string) *place {
	var at configured
	if !given(config) || json.Unmarshal(config, &at) != nil {
		return nil
	}
	p := &at.Configurable
	p.Thread, p.Run = t.thread, t.run.ID
	p.Namespace, p.Checkpoint = spaceOf(t.names, splitSpace(p.Namespace)), checkpointOut(t.names, p.Checkpoint)
	if len(parents) > 0 {
		p.Map = maps.Clone(parents)
		p.Map[p.Namespace] = p.Checkpoint
	}
	return p
}

func (t *teller) debug(data json.RawMessage) object {
	var d object
	if json.Unmarshal(data, &d) != nil {
		return object{}
	}
	if d.text("type") == "checkpoint" {
		c := t.checkpoint(d["payload"])
		for name, from := range map[string]string{"checkpoint": "config", "parent_checkpoint": "parent_config"} {
			var at struct {
				Configurable *place `json:"configurable"`
			}
			if json.Unmarshal(c[from], &at) == nil {
				c[name] = raw(at.Configurable)
			}
		}
		d["payload"] = raw(c)
		return d
	}
	d["payload"] = raw(t.task(d["payload"], whyTask))
	return d
}

// message is a message or a piece of one, in the two forms that clients can ask for.
func (t *teller) message(task string, data json.RawMessage, suffix string) []event {
	message, ok := t.apart(data)
	var p piece
	if !ok || json.Unmarshal(message, &p) != nil {
		return nil
	}
	streams := p.Role == "assistant"
	whole := sync.OnceValue(func() json.RawMessage { return messageOut(message) })
	var out []event
	if t.wants("messages-tuple") {
		var shown json.RawMessage
		if streams {
			shown = raw(p.chunk(t.calls[p.ID]))
		} else {
			shown = whole()
		}
		out = append(out, event{"messages" + suffix, pair(shown, t.about.shown)})
	}
	t.emits(task, p.ID)
	for _, c := range p.ToolCalls {
		if c.ID != "" {
			t.calls[p.ID]++
		}
	}
	if t.wants("messages") {
		out = append(out, t.wholeMessage(p, streams, whole, suffix)...)
	}
	return out
}

// emits notes that a task streams a message.
func (t *teller) emits(task, id string) {
	said := t.emitted[task]
	if said == nil {
		said = &emission{}
		t.emitted[task] = said
	}
	if said.about = t.about.shown; !slices.Contains(said.ids, id) {
		said.ids = append(said.ids, id)
	}
}

// apart takes the metadata off a message. It reports false for what is not both.
func (t *teller) apart(data json.RawMessage) (message json.RawMessage, ok bool) {
	if t.about.given != nil { // most are pieces that have the metadata of the one before
		head, same := bytes.CutSuffix(data, slices.Concat([]byte(","), t.about.given, []byte("]")))
		if message, list := bytes.CutPrefix(head, []byte("[")); same && list {
			return message, true
		}
	}
	var both []json.RawMessage
	if json.Unmarshal(data, &both) != nil || len(both) != 2 || !t.describe(both[1]) {
		return nil, false
	}
	return both[0], true
}

// pair is a list of two values.
func pair(a, b json.RawMessage) json.RawMessage {
	return slices.Concat([]byte("["), a, []byte(","), b, []byte("]"))
}

// wholeMessage shows a message as far as it has come.
func (t *teller) wholeMessage(p piece, streams bool, whole func() json.RawMessage, suffix string) []event {
	var out []event
	if !t.named[p.ID] {
		t.named[p.ID] = true
		out = append(out, event{"messages/metadata" + suffix, map[string]any{p.ID: map[string]any{"metadata": t.about.shown}}})
	}
	if !streams {
		return append(out, event{"messages/complete" + suffix, []json.RawMessage{whole()}})
	}
	if t.partials[p.ID] == nil {
		t.partials[p.ID] = &partial{id: p.ID}
	}
	t.partials[p.ID].add(p)
	return append(out, event{"messages/partial" + suffix, []object{t.partials[p.ID].whole()}})
}

// runMetadata is what events say of the run.
func (t *teller) runMetadata() object {
	out := object{}
	maps.Copy(out, t.run.Metadata)
	out["run_id"], out["graph_id"], out["assistant_id"] = raw(t.run.ID), raw(t.graph), raw(t.run.Assistant)
	return out
}

// describe makes of the metadata of a message what clients look for. It reports false for what is none.
func (t *teller) describe(given json.RawMessage) bool {
	var meta object
	if json.Unmarshal(given, &meta) != nil || meta == nil {
		return false
	}
	if space := meta.text("langgraph_checkpoint_ns"); space != "" {
		meta["langgraph_checkpoint_ns"] = raw(spaceOf(t.names, splitSpace(space)))
	}
	for name, v := range t.run.Metadata {
		if _, ok := meta[name]; !ok {
			meta[name] = v
		}
	}
	meta["run_id"], meta["thread_id"] = raw(t.run.ID), raw(t.thread)
	meta["graph_id"], meta["assistant_id"] = raw(t.graph), raw(t.run.Assistant)
	t.about = about{given, raw(meta)}
	return true
}
