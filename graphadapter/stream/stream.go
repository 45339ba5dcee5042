// Package stream turns what happens in a run into what LangGraph streams of it: the modes values, updates, messages,
// custom, tasks, checkpoints and debug, in LangGraph's order. It is a function of the events alone, so that a run that
// is under way, one in memory and one that is replayed from its history stream the same.
//
// Payloads are JSON. Where LangGraph has ids of its own these have Superstep's: a task's id is pregel.Task.Key, a
// checkpoint's pregel.Checkpoint.ID, an interrupt's pregel.Question.ID, a namespace the engine's.
package stream

import (
	"encoding/json"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Mode says what of a run is streamed.
type Mode string

// The modes are LangGraph's. Reset comes with messages and custom, and is none to ask for.
const (
	Values      Mode = "values"
	Updates     Mode = "updates"
	Messages    Mode = "messages"
	Custom      Mode = "custom"
	Tasks       Mode = "tasks"
	Checkpoints Mode = "checkpoints"
	Debug       Mode = "debug"
	Reset       Mode = "reset"
)

// Chunk is one item of a stream.
type Chunk struct {
	// Slot is the chunk's place among all that its event can give, whatever modes are asked for. It grows within the
	// chunks of an event.
	Slot int
	// Namespace is the graph's, "" for the root; Nodes are the nodes that lead to it.
	Namespace string
	Nodes     []string
	// Task is the namespace of the subgraph that the chunk's task has or would have, "" for a chunk of the whole graph.
	Task string
	Mode Mode
	// Step is the superstep that runs; of a checkpoint, the checkpoint's own.
	Step int
	Data json.RawMessage
}

// Shaper turns the events of one thread into chunks. It is told of everything in order; see graphadapter.Recorder. It
// is not safe for concurrent use.
type Shaper struct {
	thread    string
	wanted    map[Mode]bool
	subgraphs bool

	program *pregel.Program
	graphs  map[string]*graph // by namespace
	at      map[string]string // each namespace's checkpoint
	exit    bool              // the invocation stores its end only
	begun   bool              // the invocation has shown where it began
	loaded  string            // the checkpoint that it began at
	seen    map[string]bool   // messages by id
	emitted map[string][]string
	about   about
}

// about is the metadata that was told last, which the pieces of one message have in common.
type about struct {
	task *pregel.Task
	step int
	text json.RawMessage
}

// New returns a Shaper for a thread that gives chunks of these modes, and with subgraphs also those of subgraphs.
func New(thread string, modes []Mode, subgraphs bool) *Shaper {
	s := &Shaper{thread: thread, subgraphs: subgraphs, wanted: make(map[Mode]bool, len(modes))}
	for _, m := range modes {
		s.wanted[m] = true
	}
	return s
}

// Began says that an invocation begins.
func (s *Shaper) Began(p *pregel.Program, d graphadapter.Durability) {
	s.program, s.graphs, s.at = p, map[string]*graph{"": newGraph(p, nil)}, map[string]string{}
	s.seen, s.emitted = map[string]bool{}, map[string][]string{}
	s.exit, s.begun, s.loaded = d == graphadapter.DurabilityExit, false, ""
}

// Continued says that the invocation under way, which began at the checkpoint of the id base, goes on in another run, where
// the thread stands at the checkpoint head. A Shaper that was not told of it before does not know which messages have
// come, and what is around a subgraph under way.
func (s *Shaper) Continued(p *pregel.Program, d graphadapter.Durability, base, head string) {
	if s.program != nil {
		return
	}
	s.Began(p, d)
	s.begun, s.loaded, s.at[""] = true, base, head
}

// Shape returns the chunks of an event, which happened at that time. The error says that a value is not JSON.
func (s *Shaper) Shape(e pregel.Event, when time.Time) ([]Chunk, error) {
	if e.Namespace != "" && !s.subgraphs {
		return nil, nil
	}
	b := batch{shaper: s, event: e, graph: s.graphOf(e.Namespace), when: when}
	switch e.Kind {
	case pregel.EventCheckpoint:
		s.began(e.Checkpoint.Checkpoint.Parent)
	case pregel.EventValues:
		b.add(0, Values, b.values)
	case pregel.EventTick:
		b.checkpoint()
	case pregel.EventTaskStart:
		b.started()
	case pregel.EventUpdate:
		b.written()
		b.add(behindMessages, Updates, b.update)
	case pregel.EventTaskEnd:
		b.task("task_result", b.result)
	case pregel.EventInterrupt:
		b.interrupted()
	case pregel.EventCustom:
		b.add(0, Custom, func() any { return e.Value })
	case pregel.EventMessage:
		b.message()
	case pregel.EventReset:
		b.reset()
	}
	return b.chunks, b.err
}

// batch are the chunks of one event.
type batch struct {
	shaper *Shaper
	event  pregel.Event
	graph  *graph
	when   time.Time
	chunks []Chunk
	err    error
}

// add adds a chunk if its mode is wanted.
func (b *batch) add(slot int, mode Mode, data func() any) {
	if !b.shaper.wanted[mode] {
		return
	}
	b.put(slot, mode, b.event.Step, data())
}

func (b *batch) put(slot int, mode Mode, step int, data any) {
	raw, err := encode(data)
	if err != nil && b.err == nil {
		b.err = err
	}
	b.chunk(slot, mode, step, raw)
}

// chunk adds a chunk whose data is JSON.
func (b *batch) chunk(slot int, mode Mode, step int, raw json.RawMessage) {
	c := Chunk{Slot: slot, Namespace: b.event.Namespace, Nodes: b.graph.nodePath, Mode: mode, Step: step, Data: raw}
	if b.event.Task != nil {
		c.Task = b.event.Task.Space()
	}
	b.chunks = append(b.chunks, c)
}

// debugged adds a chunk of a mode that debug wraps, and what it looks like in debug.
func (b *batch) debugged(mode Mode, kind string, step int, data func() any) {
	if !b.shaper.wanted[mode] && !b.shaper.wanted[Debug] {
		return
	}
	payload := data()
	if b.shaper.wanted[mode] {
		b.put(0, mode, step, payload)
	}
	if b.shaper.wanted[Debug] {
		b.put(1, Debug, step, debugChunk{step, b.when.UTC().Format(time.RFC3339Nano), kind, payload})
	}
}

// debugChunk is the payload of a debug chunk.
type debugChunk struct {
	Step      int    `json:"step"`
	Timestamp string `json:"timestamp"`
	Type      string `json:"type"`
	Payload   any    `json:"payload"`
}
