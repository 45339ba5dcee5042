package thread

import (
	"fmt"
	"time"

	"superstep.dev/job"
)

// SubmitJob is a job for a leader.
type SubmitJob struct {
	// Leader names it.
	Leader string
	// Job is what to do. Its ID is that of the job on the whole server, at most [job.MaxID] bytes of letters, digits, ".",
	// "_" and "-"; "" makes one.
	Job job.Job
	// RequestID makes the request idempotent, for callers who never learnt what became of it: the same job submitted again
	// with it is the one that there is. "" makes one. At most 200 bytes.
	RequestID string
}

// JobView is a job as people see it, with what it waits for.
type JobView struct {
	job.View
	// Waiting are the open questions of the job's attempts, and of the job itself: a plan to decide on, a budget to raise.
	// The server's index has them, and is a moment behind.
	Waiting []InboxItem `json:"waiting,omitempty"`
}

// Rests reports whether the job goes on only when somebody does something: it asks for a decision or a budget, or has
// ended.
func (v JobView) Rests() bool {
	return v.Status.Final() || v.Phase == job.PhaseApproving || v.Phase == job.PhaseOverBudget
}

// JobAnswer is what a finished job has made.
type JobAnswer struct {
	View job.View `json:"job"`
	// Text is the answer: the texts of Parts, each trimmed, a line break between them.
	Text string `json:"text"`
	// Parts are the outputs of the subjobs on which no other depends, in topological order, or that of the synthesis.
	Parts []job.Input `json:"parts"`
}

// JobItem is a job in a list.
type JobItem struct {
	ID     string     `json:"id"`
	Leader string     `json:"leader"`
	Status job.Status `json:"status"`
	// Goal is the beginning of the job's goal, at most 200 bytes.
	Goal    string    `json:"goal,omitempty"`
	Started time.Time `json:"started"` // of the newest run: a recovered job has several
	Ended   time.Time `json:"ended,omitzero"`
	// Waits says that it goes on only when somebody decides on its plan or raises its budget.
	Waits bool `json:"waits,omitempty"`
}

// JobsQuery selects jobs.
type JobsQuery struct {
	// Leader and Status select; "" means any.
	Leader string
	Status job.Status
	// Limit is the most jobs to return; 0 means 100.
	Limit int
}

// JobError says that a job has no answer: it failed, was stopped, or waits for somebody.
type JobError struct {
	// View is the job as it stands.
	View job.View
	// Message says why.
	Message string
	// Cause is the error behind that, nil when only the message is known.
	Cause error
}

// Error implements error in one line.
func (e *JobError) Error() string {
	return fmt.Sprintf("job %s of leader %q is %s: %s", e.View.ID, e.View.Leader, e.View.Standing(), e.Message)
}

// Unwrap returns the cause.
func (e *JobError) Unwrap() error { return e.Cause }
