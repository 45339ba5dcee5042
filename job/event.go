package job

import "time"

// Event is something that happened to a job, for those who follow it.
type Event struct {
	Seq  int64     `json:"seq"` // counts from 1, without gaps, over the whole job
	Time time.Time `json:"time"`
	// Kind is one of: submitted, planning, plan_refused, planned, approving, approved, edited, rejected, started, finished,
	// retrying, reopened, stale, replaced, failed, stopping, stopped, recovered, over_budget, raised, expert_added,
	// expert_removed, job_finished, job_failed.
	Kind    string `json:"kind"`
	SubJob  string `json:"subjob,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Expert  string `json:"expert,omitempty"`
	// Text says it in a sentence: the lesson, the reason, what was wrong.
	Text string `json:"text,omitempty"`
}

// MaxEvents is how many events of a job are kept.
const MaxEvents = 1000
