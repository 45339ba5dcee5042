package job

import (
	"strconv"
	"strings"
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
