package serve

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"superstep.dev/serve/blocks"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

// happened is an event of the second version, before it has its number.
type happened struct {
	channel string
	// method is the channel's name, but for questions.
	method string
	// name is that of something custom, "" for none.
	name  string
	space []string
	at    time.Time
	data  any
}

// narrator makes the events of one run of the parts of its stream. It says the same however often the run is read.
type narrator struct {
	names         string // see renderer.names
	graph         string
	run           record.Run
	conversations map[string]bool
	// open are the subgraphs that have begun and not ended, by the engine's namespace.
	open []string
	// said are the messages that are not finished, by task.
	said map[string]*saying
	// asked are the questions that were told.
	asked map[string]bool
	// waits are the subgraphs that ended in a question: clients know their end behind that of the root graph.
	waits []happened
	// again are the values beside the questions, which clients are told once more behind the end of the root graph.
	again []happened
}

// saying is a message that a task streams.
type saying struct {
	id      string
	space   []string
	message blocks.Message
}

func newNarrator(x *renderer, run record.Run) *narrator {
	return &narrator{names: x.names(), graph: x.spec.Name, run: run, conversations: x.conversations, said: map[string]*saying{}, asked: map[string]bool{}}
}

// narrated are the modes of the thread's stream that all channels together are made of.
var narrated = []thread.StreamMode{thread.StreamValues, thread.StreamUpdates, thread.StreamMessages, thread.StreamCustom}

// space is a namespace as clients write it.
func (n *narrator) space(path []string) []string {
	if len(path) == 0 {
		return []string{}
	}
	return strings.Split(spaceOf(n.names, path), "|")
}

// lifecycle is a change of the root graph's, or of a subgraph's.
func lifecycle(space []string, at time.Time, data map[string]any) happened {
	return happened{channel: channelLifecycle, method: channelLifecycle, space: space, at: at, data: data}
}

// began says that the run goes on.
func (n *narrator) began() happened {
	return lifecycle([]string{}, n.run.Began, map[string]any{"event": "running", "graph_name": n.graph})
}

// ended says how the run has ended: a run that the record has no more was taken back. What ended in a question comes behind it.
func (n *narrator) ended(run *record.Run) []happened {
	data := map[string]any{"event": "interrupted", "graph_name": n.graph}
	at := time.Now()
	if run != nil {
		at = run.Ended
	}
	switch {
	case run == nil:
	case run.Failure != nil:
		data["event"], data["error"] = "failed", run.Failure.Message
	case run.Status == record.Success && run.Stands != record.Waits:
		data["event"] = "completed"
	}
	return slices.Concat([]happened{lifecycle([]string{}, at, data)}, n.again, n.waits)
}

// rest says what was still under way when the run's parts had come to their end.
func (n *narrator) rest(run *record.Run) []happened {
	at, how := time.Now(), map[string]any{"event": "interrupted"}
	if run != nil {
		at = run.Ended
	}
	if run != nil && run.Failure != nil {
		how = map[string]any{"event": "failed", "error": run.Failure.Message}
	}
	var out []happened
	for _, task := range sortedKeys(n.said) {
		out = append(out, n.finished(task, at)...)
	}
	for _, space := range slices.Backward(slices.Clone(n.open)) {
		out = append(out, n.closed(space, at, how)...)
	}
	return out
}

// of are the events of a part.
func (n *narrator) of(p thread.Part) []happened {
	entered := n.entered(p)
	var out []happened
	if p.Mode != thread.StreamValues {
		out = entered
	}
	add := func(channel string, data any) {
		out = append(out, happened{channel: channel, method: channel, space: n.space(p.Namespace), at: p.Time, data: data})
	}
	switch p.Mode {
	case thread.StreamValues:
		if values, asks := besideQuestions(p.Data); asks || n.toldAgain(p.Namespace) {
			n.again = append(n.again, happened{channel: channelValues, method: channelValues, space: n.space(p.Namespace), at: p.Time, data: n.values(values)})
		} else {
			add(channelValues, n.values(values))
		}
		out = append(out, entered...) // clients know a subgraph's first values before its beginning
	case thread.StreamCustom:
		add(channelCustom, map[string]any{"payload": p.Data})
		if name := nameIn(p.Data); name != "" {
			last := &out[len(out)-1]
			last.name, last.data = name, map[string]any{"name": name, "payload": p.Data}
		}
	case thread.StreamMessages:
		out = append(out, n.message(p)...)
	case thread.StreamReset:
		delete(n.said, p.Task)
	case thread.StreamUpdates:
		out = append(out, n.update(p)...)
	}
	return out
}

// toldAgain reports whether values of a graph are told behind the end of the root graph: those that follow are told behind them, so that
// the newest ones come last.
func (n *narrator) toldAgain(path []string) bool {
	space := n.space(path)
	return slices.ContainsFunc(n.again, func(e happened) bool { return slices.Equal(e.space, space) })
}

// besideQuestions are the values of a part that tells them once more, for the questions beside them: those have events of their own. It
// reports false for other values, which it leaves as they are.
func besideQuestions(values json.RawMessage) (json.RawMessage, bool) {
	var all object
	if json.Unmarshal(values, &all) != nil || all["__interrupt__"] == nil {
		return values, false
	}
	delete(all, "__interrupt__")
	return raw(all), true
}

// entered says that subgraphs have begun that a part is the first of.
func (n *narrator) entered(p thread.Part) []happened {
	var out []happened
	for i := range p.Namespace {
		at := strings.Join(p.Namespace[:i+1], "|")
		if slices.Contains(n.open, at) {
			continue
		}
		n.open = append(n.open, at)
		space := n.space(p.Namespace[:i+1])
		node, task, _ := strings.Cut(space[i], ":")
		out = append(out, lifecycle(space, p.Time, map[string]any{"event": "started", "namespace": space, "graph_name": node, "trigger_call_id": task}))
	}
	return out
}

// closed says that a task's subgraph has ended, if it has one.
func (n *narrator) closed(task string, at time.Time, how map[string]any) []happened {
	i := slices.Index(n.open, task)
	if task == "" || i < 0 {
		return nil
	}
	n.open = slices.Delete(n.open, i, i+1)
	space := n.space(splitSpace(task))
	node, _, _ := strings.Cut(space[len(space)-1], ":")
	data := map[string]any{"namespace": space, "graph_name": node}
	maps.Copy(data, how)
	return []happened{lifecycle(space, at, data)}
}

// update is what a task wrote when it ended, or what it asks.
func (n *narrator) update(p thread.Part) []happened {
	var nodes object
	if json.Unmarshal(p.Data, &nodes) != nil {
		return nil
	}
	out := n.finished(p.Task, p.Time)
	if asks, ok := nodes["__interrupt__"]; ok {
		n.waits = append(n.waits, n.closed(p.Task, p.Time, map[string]any{"event": "interrupted"})...)
		return append(out, n.questions(p, asks)...)
	}
	for _, node := range sortedKeys(nodes) {
		if strings.HasPrefix(node, "__") {
			continue
		}
		for _, values := range n.written(nodes[node]) {
			out = append(out, happened{channel: channelUpdates, method: channelUpdates, space: n.space(p.Namespace), at: p.Time,
				data: map[string]any{"node": node, "values": values}})
		}
	}
	return append(out, n.closed(p.Task, p.Time, map[string]any{"event": "completed"})...)
}

// written are a node's writes, as objects: what wrote one field more than once comes as several.
func (n *narrator) written(writes json.RawMessage) []any {
	var each []json.RawMessage
	if json.Unmarshal(writes, &each) != nil || each == nil {
		each = []json.RawMessage{writes}
	}
	var out []any
	for _, w := range each {
		out = append(out, n.values(w))
	}
	return out
}

// questions are those that were not told yet: a question in a subgraph is asked there, and not again by the graphs around it.
func (n *narrator) questions(p thread.Part, asks json.RawMessage) []happened {
	var all []asked
	if json.Unmarshal(asks, &all) != nil {
		return nil
	}
	var out []happened
	for _, q := range all {
		if n.asked[q.ID] {
			continue
		}
		n.asked[q.ID] = true
		out = append(out, happened{channel: channelInput, method: "input.requested", space: n.space(p.Namespace), at: p.Time,
			data: map[string]any{"interrupt_id": questionOut(q.ID), "payload": q.Value}})
	}
	return out
}

// message is a message or a piece of one. People's messages, and those of tools, come with the values only.
func (n *narrator) message(p thread.Part) []happened {
	var both []json.RawMessage
	var said piece
	if json.Unmarshal(p.Data, &both) != nil || len(both) != 2 || json.Unmarshal(both[0], &said) != nil || said.Role != "assistant" {
		return nil
	}
	var out []happened
	at := n.said[p.Task]
	if at != nil && at.id != said.ID {
		out, at = n.finished(p.Task, p.Time), nil
	}
	if at == nil {
		at = &saying{id: said.ID, space: n.space(p.Namespace)}
		n.said[p.Task] = at
	}
	return append(out, at.events(at.message.Add(said.block()), p.Time)...)
}

// finished ends the message that a task streams, if there is one.
func (n *narrator) finished(task string, at time.Time) []happened {
	said := n.said[task]
	if said == nil {
		return nil
	}
	delete(n.said, task)
	return said.events(said.message.Finish(), at)
}

func (s *saying) events(all []blocks.Data, at time.Time) []happened {
	var out []happened
	for _, data := range all {
		out = append(out, happened{channel: channelMessages, method: channelMessages, space: s.space, at: at, data: data})
	}
	return out
}

// values are values as clients of the second version see them: without questions, and messages without what is empty.
func (n *narrator) values(v json.RawMessage) any {
	var all object
	if json.Unmarshal(v, &all) != nil {
		return v
	}
	out := object{}
	for name, v := range all {
		switch {
		case name == "__interrupt__":
			continue
		case n.conversations[name]:
			v = trimmed(messagesOut(v))
		}
		out[name] = v
	}
	return out
}
