package job

// Status is where a job or a subjob stands. Only a [Board] changes it, along its transition tables.
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
	// PhaseStopping: attempts under way were told to end, and are waited for.
	PhaseStopping Phase = "stopping"
	// PhaseFailing: a subjob has failed for good; the attempts under way are told to end, and waited for.
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
