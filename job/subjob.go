package job

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// SubJob is a node of a job's graph: what its plan says, and what came of it.
type SubJob struct {
	// DraftSubJob is the subjob as it was planned, with an id that no other subjob of the job has.
	DraftSubJob
	// LifeCycle is how often it may still be planned into smaller ones.
	LifeCycle int `json:"life_cycle"`

	Status Status `json:"status"`
	// Legacy: it was replaced by the subjobs that name it as their Parent, or a person removed it. It is kept to be seen.
	Legacy bool `json:"legacy,omitempty"`
	// Parent is the subjob that it was planned from, "" when it was the job itself. PlanVersion is the plan it came with.
	Parent      string `json:"parent,omitempty"`
	PlanVersion int    `json:"plan_version"`
	// Attempts counts those that began; the last of them is described by the fields below.
	Attempts int `json:"attempts,omitempty"`
	// Failures counts the execution errors since it was last begun anew: see Policy.MaxRetries.
	Failures int `json:"failures,omitempty"`
	// Lessons are for the next attempt, oldest first: at most 8.
	Lessons []string  `json:"lessons,omitempty"`
	Started time.Time `json:"started,omitzero"` // of the first attempt
	Ended   time.Time `json:"ended,omitzero"`   // of the last one
	Usage   Usage     `json:"usage,omitzero"`   // of all attempts
	// RetryAt is until when its next attempt waits.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Reason says why it has its status, in a sentence: an error, an evaluation.
	Reason string  `json:"reason,omitempty"`
	Result *Output `json:"result,omitempty"`
	// Stale: a predecessor does its work again, so that the attempt under way is asked to end and counts for nothing.
	Stale bool `json:"stale,omitempty"`
	// Failing: somebody has it fail. The attempt under way is asked to end, and whatever that says, the subjob is FAILED then.
	Failing bool `json:"failing,omitempty"`
	// Open says that an attempt is under way: it was begun, and has not ended. Cancelled: it was asked to end.
	Open      bool `json:"open,omitempty"`
	Cancelled bool `json:"cancelled,omitempty"`
	// Allowance is what the attempt under way may spend; that of the last one, when it was too little.
	Allowance Budget `json:"allowance,omitzero"`
	// Reopens counts how often it sent each of its dependencies back to work: see Policy.MaxReopens.
	Reopens map[string]int `json:"reopens,omitempty"`
	// Refused is the SHA256 of an output that a successor could not use: the same again ends the job.
	Refused string `json:"refused,omitempty"`
}

// Output is what a finished subjob has made.
type Output struct {
	// Text is the output when it is short: see [MaxInline]. Otherwise, and always on Temporal, Stored says where it is; a
	// [Board] keeps of it only what does not follow from the rest, the run's id.
	Text      string     `json:"text,omitempty"`
	Stored    *Reference `json:"stored,omitempty"`
	Bytes     int        `json:"bytes"`
	SHA256    string     `json:"sha256"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
	Attempt   int        `json:"attempt"`
}

// Assignment is what an expert gets for an attempt.
type Assignment struct {
	Job     string `json:"job"`
	SubJob  string `json:"subjob"`
	Attempt int    `json:"attempt"` // counts from 1
	Expert  string `json:"expert"`

	Goal               string `json:"goal"`
	Context            string `json:"context,omitempty"`
	CompletionCriteria string `json:"completion_criteria,omitempty"`
	OutputSchema       string `json:"output_schema,omitempty"`
	// JobGoal is the goal of the whole job.
	JobGoal string `json:"job_goal,omitempty"`
	// Inputs are the direct predecessors' outputs, in the order of the subjob's dependencies. They are there whole: those
	// that travel by reference are read before the expert is called.
	Inputs    []Input    `json:"inputs,omitempty"`
	Artifacts []Artifact `json:"artifacts,omitempty"` // of the job
	Lessons   []string   `json:"lessons,omitempty"`
	// Allowance is what this attempt may spend; 0 in a field is no limit.
	Allowance Budget `json:"allowance,omitzero"`
}

// Input is the output of a predecessor.
type Input struct {
	SubJob    string     `json:"subjob"`
	Expert    string     `json:"expert"`
	Goal      string     `json:"goal"`
	Text      string     `json:"text,omitempty"`
	Stored    *Reference `json:"stored,omitempty"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
}

// Thread is the id of the thread in which an attempt runs.
func (a Assignment) Thread() string { return AttemptThread(a.Job, a.SubJob, a.Attempt) }

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
