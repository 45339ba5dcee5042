package job

import "strconv"

// WorkflowID is the id of the workflow that leads a job.
func WorkflowID(job string) string { return "job/" + job }

// AttemptThread is the id of the thread in which an attempt of a subjob runs: no two attempts of a job ever share one.
func AttemptThread(job, subjob string, attempt int) string {
	return WorkflowID(job) + "/s/" + subjob + "/a" + strconv.Itoa(attempt)
}
