package runtime

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/nearest"
	"superstep.dev/thread"
)

// maxInputBytes bounds a run's input: with the thread's state it has to fit one event of 2 MiB.
const maxInputBytes = 1 << 20

// deskPrefix begins the workflow ids of desks, one per task queue.
const DeskPrefix = "superstep.desk/"

// CheckStart refuses a request for a run that no runtime takes.
func CheckStart(req Start) error {
	e := &thread.Error{Kind: thread.ErrBadInput, Graph: req.Graph, Thread: req.Thread}
	switch {
	case thread.IDProblem(req.Thread) != "":
		e.Message = thread.IDProblem(req.Thread)
	case req.NewThread && req.Checkpoint != "":
		e.Message = "a thread that must be new has no checkpoint to begin at"
	case strings.HasPrefix(req.Thread, DeskPrefix):
		e.Message = fmt.Sprintf("thread ids that start with %q are taken", DeskPrefix)
	case CheckAsker(req.Thread, req.By, req.Reason) != nil:
		return CheckAsker(req.Thread, req.By, req.Reason)
	case len(req.Input) > maxInputBytes:
		e.Message = fmt.Sprintf("the input has %d bytes, at most %d can be stored", len(req.Input), maxInputBytes)
		e.Do = "Keep the large value outside and give a reference to it"
	case req.Input != nil && (req.Resume != nil || req.Control != nil):
		e.Message = "new input abandons what the thread was about to do: answers and commands do not go with it"
	case req.IdleTimeout < 0 || req.IdleTimeout > 0 && !req.KeepOpen || req.IdleTimeout > 0 && req.IdleTimeout < time.Millisecond:
		e.Message = "the idle time is how long a run is kept open: at least a millisecond, of one that is kept open"
	case req.Input != nil && !json.Valid(req.Input):
		e.Message = "the input is not JSON"
	case SettingsOf(req).Problem() != "":
		e.Message = SettingsOf(req).Problem()
	default:
		return nil
	}
	return e
}

// StartProblem says what is wrong with a request for a run of that graph, "" if nothing is.
func StartProblem(r Start, spec *pregel.Spec) string {
	switch {
	case r.StepTimeout < 0:
		return fmt.Sprintf("the step timeout %v is negative: 0 means no bound", r.StepTimeout)
	case r.IdleTimeout < 0 || r.IdleTimeout > 0 && r.IdleTimeout < time.Millisecond:
		return fmt.Sprintf("the time %v that a run is kept open is below a millisecond: 0 is for ever", r.IdleTimeout)
	case SettingsOf(r).Problem() != "":
		return SettingsOf(r).Problem()
	}
	known := map[string]bool{}
	for _, n := range spec.Nodes {
		if !n.Handler {
			known[n.Name] = true
		}
	}
	for _, name := range slices.Concat(r.InterruptBefore, r.InterruptAfter) {
		if name != pregel.All && !known[name] {
			return fmt.Sprintf("the breakpoint at %q: there is no such node%s", name, nearest.DidYouMean(name, known))
		}
	}
	return ""
}

// BadThreadID is thread.CheckID with the name of the graph in its error.
func BadThreadID(graph, id string) error {
	if problem := thread.IDProblem(id); problem != "" {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: id, Message: problem}
	}
	return nil
}

// The bounds of who asks and why, in bytes.
const (
	maxName   = 200 // of ids too
	maxReason = 1000
)

// CheckAsker refuses who and why that no run takes.
func CheckAsker(threadID, by, reason string) error {
	if len(by) <= maxName && len(reason) <= maxReason {
		return nil
	}
	return &thread.Error{Kind: thread.ErrBadInput, Thread: threadID,
		Message: fmt.Sprintf("a name has at most %d bytes, and a reason at most %d", maxName, maxReason)}
}

// CheckCancel refuses a cancellation with an unknown mode, or with texts that are too long.
func CheckCancel(r thread.CancelRequest) error {
	e := &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread}
	switch {
	case r.Mode != "" && !r.Mode.Valid():
		e.Message = fmt.Sprintf("a run is not cancelled with mode %q: there are keep, drop and compensate", r.Mode)
	case len(r.Reason) > maxReason:
		e.Message = fmt.Sprintf("a reason has at most %d bytes", maxReason)
	case len(r.By) > maxName || len(r.ID) > maxName:
		e.Message = fmt.Sprintf("a name and an id have at most %d bytes", maxName)
	default:
		return nil
	}
	return e
}

// CheckPause refuses a pause with texts that are too long.
func CheckPause(r thread.PauseRequest) error {
	if len(r.By) > maxName || len(r.ID) > maxName || len(r.Reason) > maxReason {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: fmt.Sprintf(
			"a pause has a name and an id of at most %d bytes, and a reason of at most %d", maxName, maxReason)}
	}
	return nil
}

// CheckEvent refuses an event whose name, value, sender or id cannot be stored.
func CheckEvent(r thread.EventRequest) error {
	err := graphadapter.CheckEvent(r.Name, pregel.Value(r.Value))
	if err == nil && (len(r.By) > maxName || len(r.ID) > maxName) {
		err = fmt.Errorf("an event has a sender and an id of at most %d bytes", maxName)
	}
	if err != nil {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: err.Error()}
	}
	return nil
}

// CheckDrain checks a request, and gives it a reason when it has none.
func CheckDrain(r *thread.DrainRequest) error {
	r.Reason = cmp.Or(r.Reason, "no reason given")
	return CheckAsker(r.Thread, r.By, r.Reason)
}

// CheckAnswers refuses requests that contradict themselves.
func CheckAnswers(req thread.ResumeRequest) error {
	why := ""
	switch several := len(req.Answers) > 0; {
	case several && (req.Question != "" || req.Value != nil || req.Token != ""):
		why = "a request with Answers has no Question, Value or Token of its own"
	case !several && len(req.Tokens) > 0:
		why = "Tokens go with Answers"
	case len(req.ID) > maxName:
		why = fmt.Sprintf("the id of a request has at most %d bytes", maxName)
	}
	for question := range req.Tokens {
		if _, given := req.Answers[question]; !given {
			why = fmt.Sprintf("there is a token for question %q, and no answer", question)
		}
	}
	if why == "" {
		return nil
	}
	return &thread.Error{Kind: thread.ErrBadInput, Thread: req.Thread, Question: req.Question, Message: why}
}
