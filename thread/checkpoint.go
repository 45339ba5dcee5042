package thread

import "time"

// CheckpointRequest asks for the record of one checkpoint.
type CheckpointRequest struct {
	Thread string
	// Checkpoint names a checkpoint of the history; "" means where the thread stands now.
	Checkpoint string
}

// CheckpointRecord is all that a thread goes on with from a checkpoint, as one record: where it stands, what is done, what was
// written to the outside, what is to be decided, and what has to happen before it goes on. Values, parameters, receipts, tokens and
// keys are not in it: they are named by their digests, and permissions by their names.
type CheckpointRecord struct {
	ID     string `json:"checkpoint_id"`
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	// RunID is the run that made it, "" when the server has that run no more.
	RunID string `json:"run_id,omitempty"`
	// CreatedAt is when it was made, by the same rule as [CheckpointView].CreatedAt.
	CreatedAt time.Time `json:"created_at,omitzero"`
	Parent    string    `json:"parent,omitempty"`
	Source    string    `json:"source"`
	Step      int       `json:"step"`
	// Status is where the thread stands now, also in the record of an earlier checkpoint.
	Status Status `json:"status"`
	// Nodes are those that run next, wait or failed. Finished are the others of their superstep: they do not run again.
	Nodes    []string `json:"nodes"`
	Finished []string `json:"finished,omitempty"`
	// PlanVersion is the fingerprint of the graph with which the run goes on: the hex SHA-256 of its Spec.
	PlanVersion string `json:"plan_version"`
	// CompletedSteps are the supersteps on the way to the checkpoint, oldest first, at most the latest 1,000; More counts those
	// before them.
	CompletedSteps []CompletedStep `json:"completed_steps"`
	More           int             `json:"completed_steps_more,omitempty"`
	// SideEffects are the effects that were begun on the way to the checkpoint and in the superstep behind it, in their newest
	// states. PendingSideEffects are the keys of those of which it is not known whether they were made.
	SideEffects        []SideEffect `json:"side_effects"`
	PendingSideEffects []string     `json:"pending_side_effects"`
	// PendingActions are what people are asked to approve there.
	PendingActions []PendingAction `json:"pending_actions"`
	// Artifacts are the values of the state, by name, size and digest: the state at the checkpoint has them.
	Artifacts []ArtifactRef `json:"artifact_refs"`
	// ResumePolicy says what the thread waits for. Recheck says what is looked at again before it acts.
	ResumePolicy ResumePolicy `json:"resume_policy"`
	Recheck      []string     `json:"recheck,omitempty"`
}

// CompletedStep is a superstep that is done.
type CompletedStep struct {
	Step       int      `json:"step"`
	Nodes      []string `json:"nodes"`
	Checkpoint string   `json:"checkpoint"`
}

// SideEffect is an effect in the record of a checkpoint.
type SideEffect struct {
	Tool string `json:"tool"`
	Key  string `json:"idempotency_key"`
	Node string `json:"node"`
	Step int    `json:"step,omitempty"`
	// State is that of [EffectView].
	State      string `json:"state"`
	ParamsHash string `json:"params_hash,omitempty"`
	Attempts   int    `json:"attempts"`
	// Approval is the question by which it was approved, "" when it needed none.
	Approval string `json:"approval,omitempty"`
}

// PendingAction is an action that people are asked to approve: what is approved is exactly what the hashes name.
type PendingAction struct {
	Question    string `json:"question"`
	Node        string `json:"node"`
	Tool        string `json:"tool"`
	ToolVersion string `json:"tool_version,omitempty"`
	// ParamsHash is that of the parameters, Digest that of the whole action.
	ParamsHash string `json:"params_hash"`
	Digest     string `json:"digest"`
	Key        string `json:"idempotency_key,omitempty"`
	// Permissions are the names of what approver and requester must have when the action is carried out.
	Permissions []string `json:"permissions,omitempty"`
	Requester   string   `json:"requester,omitempty"`
	Risk        string   `json:"risk,omitempty"`
}

// ArtifactRef names a value of a thread's state.
type ArtifactRef struct {
	Name string `json:"name"`
	// Bytes is the size of its JSON, and SHA256 the digest of that, in hex.
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// ResumePolicy is what a thread waits for at a checkpoint.
type ResumePolicy string

// The policies. Each follows from the thread's status and what is open there.
const (
	// ResumeByItself: it runs, and goes on by itself after a crash.
	ResumeByItself ResumePolicy = "by_itself"
	// ResumeAfterApproval: somebody has to decide on a pending action.
	ResumeAfterApproval ResumePolicy = "after_human_approval"
	ResumeAfterAnswer   ResumePolicy = "after_human_answer"
	ResumeAfterEvent    ResumePolicy = "after_event"
	ResumeAfterUnpause  ResumePolicy = "after_unpause"
	// ResumeAfterInvoke: it stands at a breakpoint or was drained.
	ResumeAfterInvoke ResumePolicy = "after_invoke"
	// ResumeAfterRetry: it failed, was cancelled or terminated.
	ResumeAfterRetry ResumePolicy = "after_retry"
	// ResumeAfterInput: it has finished.
	ResumeAfterInput ResumePolicy = "after_input"
	// ResumeByFork: the thread has passed the checkpoint.
	ResumeByFork ResumePolicy = "by_fork"
)

// What is looked at again before a thread acts: see [CheckpointRecord].Recheck.
const (
	// RecheckEffects: each pending side effect is looked up outside under its key before it is repeated.
	RecheckEffects = "effects"
	// RecheckPermissions: the approval is held against the action, the rules and the permissions of that moment.
	RecheckPermissions = "permissions"
)
