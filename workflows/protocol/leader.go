package protocol

import (
	"superstep.dev/graphadapter/life"
	"superstep.dev/job"
)

// LeaderInput is the input of a leader's run.
type LeaderInput struct {
	Leader string  `json:"leader"`
	Job    job.Job `json:"job"`
	// Board is the job as an earlier run left it: one that this run recovers, or continues as a new one.
	Board *job.Board `json:"board,omitempty"`
	// Recover says that Board is of a job that stopped or failed, and how to go on.
	Recover *job.Recover `json:"recover,omitempty"`
	// Found is what the run finds around it, as in [GraphInput]; nil makes the run record what its first worker knows.
	Found *Found `json:"found,omitempty"`
	// ContinueAt says when the run is continued as a new one; nil for the defaults.
	ContinueAt *ContinueAt `json:"continue_at,omitempty"`
	// Grace is how long an attempt may take to end once it was told to, in milliseconds; then it is terminated. 0 means 2
	// minutes.
	Grace int64 `json:"grace_ms,omitempty"`
	// Taken are the latest requests by update that this run's predecessor took, where this run only continues it.
	Taken life.TakenList `json:"taken,omitempty"`
}

// LeaderResult is what a leader's run leaves behind: the result of one whose job finished or was stopped, the detail of
// the error of one whose job failed.
type LeaderResult struct {
	Leader string     `json:"leader"`
	Board  *job.Board `json:"board"`
}

// RetrySubJob, ChangeExperts and RaiseBudget are what updates bring. By is who asked.
type (
	RetrySubJob struct {
		SubJob string `json:"subjob"`
		Lesson string `json:"lesson,omitempty"`
		By     string `json:"by,omitempty"`
	}
	ChangeExperts struct {
		Add    []job.Profile `json:"add,omitempty"`
		Remove []string      `json:"remove,omitempty"`
		By     string        `json:"by,omitempty"`
	}
	RaiseBudget struct {
		Budget job.Budget `json:"budget"`
		By     string     `json:"by,omitempty"`
	}
)
