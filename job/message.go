package job

import (
	"crypto/sha256"
	"encoding/hex"
)

// WorkflowMessage is what an expert says at the end of an attempt. Its status is a value, never an error: errors are for
// what went wrong around the expert, and count as [ExecutionError].
type WorkflowMessage struct {
	Status WorkflowStatus `json:"status"`
	// Output is the result, at most [MaxOutput] bytes. With [TooComplicated] it is what was achieved so far.
	Output string `json:"output,omitempty"`
	// Evaluation says why the status is what it is, and Lesson what to do differently: to the expert itself after an
	// [ExecutionError], to the predecessors after an [InputDataError], to the planner after [TooComplicated].
	Evaluation string `json:"evaluation,omitempty"`
	Lesson     string `json:"lesson,omitempty"`
	// Blames are the direct predecessors whose output is of no use, for [InputDataError]; none means all of them.
	Blames    []string   `json:"blames,omitempty"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
	Usage     Usage      `json:"usage,omitzero"`
	// Stored says where the output is when it is not here.
	Stored *Reference `json:"stored,omitempty"`
	// OverBudget says that the expert stopped because its allowance is spent. The attempt counts for nothing but its usage.
	OverBudget bool `json:"over_budget,omitempty"`
}

// Artifact refers to something that is kept elsewhere: a file, a graph, a table.
type Artifact struct {
	Name string `json:"name"`
	URI  string `json:"uri"`
	// Kind is a media type, or a word that producer and consumer agree on.
	Kind string `json:"kind,omitempty"`
}

// Reference says where an attempt's output is stored: in the last events of its run.
type Reference struct {
	Thread string `json:"thread,omitempty"`
	RunID  string `json:"run_id"`
	Bytes  int    `json:"bytes,omitempty"`
	// SHA256 is of the output, in hex: what is read there is checked against it.
	SHA256 string `json:"sha256,omitempty"`
}

// ReferTo returns a reference to an output that a run of a thread stores.
func ReferTo(thread, runID, output string) Reference {
	return Reference{Thread: thread, RunID: runID, Bytes: len(output), SHA256: digest(output)}
}

// Fits reports whether output is the one that is referred to.
func (r Reference) Fits(output string) bool { return r.SHA256 == digest(output) }

func digest(output string) string {
	sum := sha256.Sum256([]byte(output))
	return hex.EncodeToString(sum[:])
}

// Usage is what an attempt has spent. What is not known is not zero: see Usage.Unknown.
type Usage struct {
	Tokens int64 `json:"tokens,omitempty"`
	// MicroUSD is money, in millionths of a dollar.
	MicroUSD int64 `json:"micro_usd,omitempty"`
	Writes   int64 `json:"writes,omitempty"`
	// Unknown says that the attempt cannot tell what it spent (it was lost, or does not measure it): what was set aside for
	// it counts as spent.
	Unknown bool `json:"unknown,omitempty"`
}

// Budget is what may be spent; 0 is no limit.
type Budget struct {
	Tokens   int64 `json:"tokens,omitempty"`
	MicroUSD int64 `json:"micro_usd,omitempty"`
	Writes   int64 `json:"writes,omitempty"`
	// Seconds is wall clock since the job began to run, without the time that it was stopped.
	Seconds int64 `json:"seconds,omitempty"`
	// SubJobs bounds the subjobs that are planned to begin, and Attempts their attempts.
	SubJobs  int64 `json:"subjobs,omitempty"`
	Attempts int64 `json:"attempts,omitempty"`
}
