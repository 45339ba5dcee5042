package pregel

// Input starts or continues a run of a thread. Exactly one of its forms is used: a Value is new input (it abandons open
// questions, as in LangGraph), a Resume or Control continues, and the zero Input continues without anything new.
type Input struct {
	// Value is new input: a JSON object of the graph's input channels. The empty object is input too.
	Value Value `json:"value,omitempty"`
	// Resume answers open questions.
	Resume *Resume `json:"resume,omitempty"`
	// Control writes and routes from outside; it adds to what the thread was about to do.
	Control *Command `json:"control,omitempty"`
}

// Resume answers questions: one Scalar, or values by question id (any subset; unknown ids answer nothing). A Scalar
// follows LangGraph's rule, which lets it through while one task of the root waits; give ids where it matters.
type Resume struct {
	Scalar Value            `json:"scalar,omitempty"`
	ByID   map[string]Value `json:"by_id,omitempty"`
	By     string           `json:"by,omitempty"`
	// Answers are values by question id with who gave each.
	Answers []Answer `json:"answers,omitempty"`
	// AskAgain runs every waiting task again, answered or not, as LangGraph does; without it a task whose questions
	// got no answer goes on waiting and costs nothing.
	AskAgain bool `json:"ask_again,omitempty"`
}

// Options bound one run.
type Options struct {
	// RecursionLimit is LangGraph's: a run of fresh input may execute that many supersteps and fails at the next; it
	// must be at least 1. A chain of N nodes needs N+1.
	RecursionLimit int `json:"recursion_limit"`
	// InterruptBefore and InterruptAfter replace the Spec's breakpoints when not nil.
	InterruptBefore []string `json:"interrupt_before,omitzero"`
	InterruptAfter  []string `json:"interrupt_after,omitzero"`
	// Branch makes a replay begin with a checkpoint of its own in any case. LangGraph makes none at a checkpoint of an
	// update or a fork; what such a replay asks before its next checkpoint can be answered only there.
	Branch bool `json:"branch,omitempty"`
	// Namespace is that of the run's root graph; "" except for a graph called from a node's code, whose tasks must not
	// have the names of its caller's.
	Namespace string `json:"-"`
}
