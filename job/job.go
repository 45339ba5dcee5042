package job

import (
	"strconv"
	"strings"
	"time"
)

// Bounds of what a job may consist of. Together they keep a job's state below the 2 MiB that Temporal stores in one payload.
const (
	// MaxID bounds the ids of jobs and subjobs, in bytes: letters, digits, ".", "_" and "-".
	MaxID = 64
	// MaxSubJobs bounds the subjobs of a job, replaced ones included.
	MaxSubJobs = 2000
	// MaxDependencies bounds the direct predecessors of a subjob.
	MaxDependencies = 200
	// MaxGoal, MaxContext and MaxNote bound, in bytes, a goal, a context, and every other text that people, planners and
	// experts give: criteria, thinking, schemas, evaluations, lessons, reasons.
	MaxGoal    = 8 << 10
	MaxContext = 32 << 10
	MaxNote    = 4 << 10
	// MaxPlanText bounds the subjobs of a job together, in bytes as JSON: their texts, ids and dependencies, and 464
	// bytes for each besides.
	MaxPlanText = 1152 << 10
	// MaxInline is up to where an output is kept in the job's state, in bytes; a longer one stays with the attempt that
	// made it and is referred to. MaxInlineTotal bounds those that are kept with all references to artifacts, as JSON.
	MaxInline      = 4 << 10
	MaxInlineTotal = 128 << 10
	// MaxNotes bounds what is kept of reasons and lessons, as JSON: when there is no room, finished subjobs' lessons are
	// forgotten first, then new ones are cut.
	MaxNotes = 80 << 10
	// MaxExperts bounds the experts of a job, and MaxExpertText what is said about all of them, as JSON.
	MaxExperts    = 200
	MaxExpertText = 48 << 10
	// MaxArtifacts bounds the artifacts of a job, and those of one attempt; MaxArtifactText all of one of them, as JSON.
	MaxArtifacts    = 100
	MaxArtifactText = 16 << 10
	// MaxOutput bounds an attempt's output, in bytes. A longer one is an execution error that says so.
	MaxOutput = 1 << 20
)

// Job is what somebody wants done.
type Job struct {
	ID   string `json:"id"`
	Goal string `json:"goal"`
	// Context is what is known already: a conversation, constraints, names.
	Context string `json:"context,omitempty"`
	// Expert, when set, does the whole job: nothing is planned, and the job has one subjob.
	Expert    string `json:"assigned_expert,omitempty"`
	Requester string `json:"requester,omitempty"`
	// Artifacts are handed to every expert.
	Artifacts []Artifact `json:"artifacts,omitempty"`
	Policy    Policy     `json:"policy,omitzero"`
	Budget    Budget     `json:"budget,omitzero"`
}

// Policy is how a job is carried out. It is fixed when the job begins, so that a deployment does not change a job under
// way. The zero value of every field means its default.
type Policy struct {
	// MaxParallel bounds the attempts under way at once: 10; at most 100.
	MaxParallel int `json:"max_parallel,omitempty"`
	// MaxRetries is how often an attempt that ended in [ExecutionError] is tried again: 3; -1 is never.
	MaxRetries int `json:"max_retries,omitempty"`
	// RetryWait is the wait before the first such retry, doubled for each, at most a minute: 1 s.
	RetryWait time.Duration `json:"retry_wait,omitempty"`
	// MaxReopens is how often one subjob may send one of its predecessors back to work: 2. MaxReopensTotal is how often that
	// may happen in the whole job, whatever number of predecessors one report blames: 10.
	MaxReopens      int `json:"max_reopens,omitempty"`
	MaxReopensTotal int `json:"max_reopens_total,omitempty"`
	// MaxPlanAttempts is how often the planner is asked for one plan: 2, the second time with what was wrong.
	MaxPlanAttempts int `json:"max_plan_attempts,omitempty"`
	// LifeCycle is how often a subjob, and what it is planned into, may be planned again: 3; -1 is never.
	LifeCycle int `json:"life_cycle,omitempty"`
	// Approve says which plans a person approves before anything of them runs: "" for none, "first", or "all".
	Approve string `json:"approve,omitempty"`
	// AttemptTimeout bounds an attempt's wall clock, waits for people included: 24 hours. An expert's own is stronger.
	AttemptTimeout time.Duration `json:"attempt_timeout,omitempty"`
	// Synthesis names the expert that makes one answer of the tails' outputs; "" is these outputs, one after the other.
	Synthesis string `json:"synthesis,omitempty"`
}

// Profile is what a planner knows of an expert, and a leader needs to reach it.
type Profile struct {
	Name string `json:"name"`
	// Description says what the expert can do, what it needs, what it does not do, and what it returns: plans are as good
	// as this text.
	Description string `json:"description"`
	Version     string `json:"version,omitempty"`
	// Graph is the graph that the expert runs, and TaskQueue whose workers serve it; "" is the leader's.
	Graph     string `json:"graph"`
	TaskQueue string `json:"task_queue,omitempty"`
	// Timeout bounds an attempt; 0 is the job's Policy.AttemptTimeout.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Retired: it was removed while subjobs are assigned to it. It does these, and is not planned with any more.
	Retired bool `json:"retired,omitempty"`
}

// Status is how far a job or a subjob has come. Only a [Board] changes it, along its transition tables.
type Status string

// The statuses of jobs and subjobs.
const (
	StatusCreated  Status = "CREATED"
	StatusRunning  Status = "RUNNING"
	StatusFinished Status = "FINISHED"
	StatusFailed   Status = "FAILED"
	// StatusStopped: somebody stopped the job. What had finished is kept; a recover does the rest.
	StatusStopped Status = "STOPPED"
)

// Final reports whether nothing happens by itself any more.
func (s Status) Final() bool {
	return s == StatusFinished || s == StatusFailed || s == StatusStopped
}

// Phase is what a running job is doing; "" for one that does not run.
type Phase string

// The phases of a running job.
const (
	PhasePlanning Phase = "planning"
	// PhaseApproving: the plan waits for a person's decision; nothing of it runs.
	PhaseApproving Phase = "approving"
	PhaseWorking   Phase = "working"
	// PhaseOverBudget: what the job may spend is spent. Attempts under way end; no other starts before the budget is raised.
	PhaseOverBudget Phase = "over_budget"
	// PhaseStopping: attempts under way were asked to end, and are waited for.
	PhaseStopping Phase = "stopping"
	// PhaseFailing: a subjob has failed for good; the attempts under way are asked to end, and waited for.
	PhaseFailing Phase = "failing"
)

// WorkflowStatus is how an expert says that an attempt has ended.
type WorkflowStatus string

// The statuses of a [WorkflowMessage].
const (
	Success WorkflowStatus = "SUCCESS"
	// ExecutionError: the expert failed. It tries again with the lessons so far, up to Policy.MaxRetries times.
	ExecutionError WorkflowStatus = "EXECUTION_ERROR"
	// InputDataError: what predecessors produced is of no use. They do their work again, with the lesson.
	InputDataError WorkflowStatus = "INPUT_DATA_ERROR"
	// TooComplicated: the subjob is more than one expert can do. It is planned into smaller ones while its life cycle lasts.
	TooComplicated WorkflowStatus = "JOB_TOO_COMPLICATED_ERROR"
)

// WorkflowID is the id of the workflow that leads a job.
func WorkflowID(job string) string { return "job/" + job }

// Of is the id of the job that a workflow leads, or is an attempt of; "" when its id is neither's.
func Of(workflowID string) string {
	rest, ok := strings.CutPrefix(workflowID, WorkflowID(""))
	if !ok {
		return ""
	}
	id, _, _ := strings.Cut(rest, "/")
	return id
}

// OfAttempt is the job and the subjob that the thread of an attempt is of; "" when it is no such thread.
func OfAttempt(thread string) (job, subjob string) {
	if parts := strings.Split(thread, "/"); len(parts) == 5 && parts[0] == "job" && parts[2] == "s" && strings.HasPrefix(parts[4], "a") {
		return parts[1], parts[3]
	}
	return "", ""
}

// AttemptThread is the id of the thread in which an attempt of a subjob runs: no two attempts of a job ever share one.
func AttemptThread(job, subjob string, attempt int) string {
	return WorkflowID(job) + "/s/" + subjob + "/a" + strconv.Itoa(attempt)
}
