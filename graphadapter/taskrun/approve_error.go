package taskrun

import (
	"fmt"
	"strings"

	"superstep.dev/approval"
)

// RejectedError says that an action was not approved, so nothing was done.
type RejectedError struct {
	Graph, Node, Thread string
	// Question asked for the approval of Tool.
	Question, Tool string
	// Verdict is approval.VerdictReject or approval.VerdictExpired; By said so, "" when nobody answered in time, and
	// Reason why.
	Verdict    approval.Verdict
	By, Reason string
}

func (e *RejectedError) Error() string {
	what := "was rejected"
	if e.Verdict == approval.VerdictExpired {
		what = "was answered by nobody in time, so it counts as rejected"
	} else if e.By != "" {
		what += " by " + e.By
	}
	if e.Reason != "" {
		what += ": " + e.Reason
	}
	return fmt.Sprintf("%s%s was not done: its approval (question %s) %s", where(e.Graph, e.Node, e.Thread), e.Tool, e.Question, what)
}

// Permanent says that no retry helps: this question is answered.
func (e *RejectedError) Permanent() bool { return true }

// ErrorType names the kind of failure in stored data.
func (e *RejectedError) ErrorType() string { return "Rejected" }

// DriftError says that what was approved is not what would be done now, so nothing was done.
type DriftError struct {
	Graph, Node, Thread string
	// Question asked for the approval of Tool.
	Question, Tool string
	// Changed names what is different now, as approval.Before.Changed does.
	Changed []string
	// Stop says that the action's Drift is approval.DriftStop: the node fails for good.
	Stop bool
}

func (e *DriftError) Error() string {
	return fmt.Sprintf("%s%s was not done: since it was approved (question %s), %s changed; plan it anew, and ask again",
		where(e.Graph, e.Node, e.Thread), e.Tool, e.Question, strings.Join(e.Changed, ", "))
}

// Permanent reports whether the action's Drift says to stop.
func (e *DriftError) Permanent() bool { return e.Stop }

// ErrorType names the kind of failure in stored data.
func (e *DriftError) ErrorType() string { return "Drift" }

// NotAllowedError says that an approval was given, but may not be acted upon now, so nothing was done.
type NotAllowedError struct {
	Graph, Node, Thread string
	// Question asked for the approval of Tool.
	Question, Tool string
	// Code and Reason are the gate's.
	Code   approval.Code
	Reason string
	// Err is why the gate could not be asked, nil when it said no.
	Err error
}

func (e *NotAllowedError) Error() string {
	next := "have it allowed again and retry the thread, or plan anew"
	if !e.Permanent() {
		next = "once that is mended, retry the thread"
	}
	reason := e.Reason
	if e.Err != nil {
		reason += ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s%s was not done: it was approved (question %s), but is not allowed now (%s: %s); %s",
		where(e.Graph, e.Node, e.Thread), e.Tool, e.Question, e.Code, reason, next)
}

// Unwrap returns why the gate could not be asked.
func (e *NotAllowedError) Unwrap() error { return e.Err }

// Permanent says that no retry helps, unless the gate could only not be asked.
func (e *NotAllowedError) Permanent() bool { return e.Code != approval.CodeUnavailable }

// ErrorType names the kind of failure in stored data.
func (e *NotAllowedError) ErrorType() string { return "NotAllowed" }

func where(graph, node, thread string) string {
	return fmt.Sprintf("node %q of graph %q, thread %q: ", node, graph, thread)
}

// Rejected returns a [*RejectedError] for a decision against an action of that tool, nil for an approval.
func (t *TaskRun) Rejected(tool string, d approval.Decision) error {
	if d.Verdict == approval.VerdictApprove {
		return nil
	}
	i := t.info
	return &RejectedError{Graph: i.Graph, Node: i.Node, Thread: i.Thread, Question: d.Question, Tool: tool,
		Verdict: d.Verdict, By: lastVoter(d), Reason: d.Reason}
}

func (a *approving) drifted(action approval.Action, d approval.Decision, changed []string) error {
	i := a.t.info
	return &DriftError{Graph: i.Graph, Node: i.Node, Thread: i.Thread, Question: d.Question, Tool: action.Tool,
		Changed: changed, Stop: action.Drift == approval.DriftStop}
}
