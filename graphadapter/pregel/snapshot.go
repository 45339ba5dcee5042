package pregel

// Source says what made a checkpoint.
type Source string

// The checkpoint sources are LangGraph's.
const (
	SourceInput  Source = "input"
	SourceLoop   Source = "loop"
	SourceUpdate Source = "update"
	SourceFork   Source = "fork"
)

// Snapshot is a thread's state at one checkpoint, as people and programs see it.
type Snapshot struct {
	// Checkpoint is the checkpoint's id, "" for a thread without one; Parent is the one it came from.
	Checkpoint string `json:"checkpoint,omitempty"`
	Parent     string `json:"parent,omitempty"`
	Source     Source `json:"source,omitempty"`
	Step       int    `json:"step"`
	// Values are the channels that have a value; of the newest checkpoint with the finished tasks' writes applied.
	Values map[string]Value `json:"values"`
	// Next are the nodes still to run: those that have not begun, wait for an answer, or failed.
	Next  []string       `json:"next"`
	Tasks []TaskSnapshot `json:"tasks"`
}

// TaskSnapshot is one task that a checkpoint leads to.
type TaskSnapshot struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Done bool   `json:"done,omitempty"`
	// Questions are what it asked when it last ran: none of a finished task in the newest state.
	Questions []Question `json:"questions,omitempty"`
	Error     *NodeError `json:"error,omitempty"`
	// State is the subgraph's own state, while the task has one.
	State *Snapshot `json:"state,omitempty"`
}
