package thread

import (
	"encoding/json"
	"time"
)

// StreamMode says what of a run is streamed: LangGraph's modes.
type StreamMode string

// The stream modes.
const (
	// StreamValues: the output fields, after each superstep that wrote one.
	StreamValues StreamMode = "values"
	// StreamUpdates: what each node wrote, when it ended; and the questions of those that ask.
	StreamUpdates StreamMode = "updates"
	// StreamMessages: chat messages, and pieces of them, as nodes emit or write them.
	StreamMessages StreamMode = "messages"
	// StreamCustom: what nodes emit.
	StreamCustom StreamMode = "custom"
	// StreamTasks: the start and the end of each task.
	StreamTasks StreamMode = "tasks"
	// StreamCheckpoints: each checkpoint as it is made.
	StreamCheckpoints StreamMode = "checkpoints"
	// StreamDebug: checkpoints and tasks, with superstep and time.
	StreamDebug StreamMode = "debug"
	// StreamReset is no mode to ask for: it comes with messages and custom, and says that a task is attempted again, so
	// that what its earlier attempt emitted is void.
	StreamReset StreamMode = "reset"
)

// ApplyStream makes a mode an option of one stream: it asks for that mode.
func (m StreamMode) ApplyStream(r *StreamRequest) { r.Modes = append(r.Modes, m) }

// StreamRequest asks for what a thread's runs stream.
type StreamRequest struct {
	Thread string
	// Modes are those wanted; none means updates.
	Modes []StreamMode
	// Subgraphs asks for the streams of subgraphs too.
	Subgraphs bool
	// Invocation is the place where an invocation began, as Client.Offset says: the stream ends with that invocation, also when
	// the thread goes on with another one at once. "" streams whatever the thread does until it rests.
	Invocation string
	// Ordered has the parts come in one order on every reading, so that a reader can count them. What nodes emit comes while they run
	// only where it is certain what comes next: of one node at a time. Without it what nodes emit beside each other comes as they
	// do, and another reading may have it in another order.
	Ordered bool
	// From is an Offset of an earlier part, to go on behind it in any process; "" begins with the newest run.
	From string
}

// Part is one part of a stream.
type Part struct {
	// Offset is the place behind this part.
	Offset string `json:"offset"`
	// Namespace leads to the graph: one element for each subgraph, outermost first; empty for the root graph.
	Namespace []string        `json:"ns,omitempty"`
	Mode      StreamMode      `json:"mode"`
	Step      int             `json:"step"`
	Data      json.RawMessage `json:"data"`
	// Task leads to the task that the part is of, as a Namespace joined by "|": that of the task's subgraph, if it has one. "" is a
	// part of the whole graph. The JSON of a part leaves it out, and Time.
	Task string `json:"-"`
	// Time is when it happened; of what came before the history told it, when it came.
	Time time.Time `json:"-"`
}
