package runtime

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/past"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsontext"
	"superstep.dev/internal/nearest"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// deskPrefix begins the workflow ids of desks, one per task queue.
const DeskPrefix = "superstep.desk/"

// CheckStart refuses a request for a run that no runtime takes.
func CheckStart(req Start) error {
	e := &thread.Error{Kind: thread.ErrBadInput, Graph: req.Graph, Thread: req.Thread}
	switch {
	case thread.IDProblem(req.Thread) != "":
		e.Message = thread.IDProblem(req.Thread)
	case tooLong(req.By, req.Reason, req.ID) != "":
		e.Message = tooLong(req.By, req.Reason, req.ID)
	case req.NewThread && req.Checkpoint != "":
		e.Message = "a thread that must be new has no checkpoint to begin at"
	case strings.HasPrefix(req.Thread, DeskPrefix):
		e.Message = fmt.Sprintf("thread ids that start with %q are taken", DeskPrefix)
	case len(req.Input) > thread.MostInput:
		e.Message = fmt.Sprintf("the input has %d bytes, at most %d can be stored", len(req.Input), thread.MostInput)
		e.Do = "Keep the large value outside and give a reference to it"
	case req.Input != nil && (req.Resume != nil || req.Control != nil):
		e.Message = "new input abandons what the thread was about to do: answers and commands do not go with it"
	case req.IdleTimeout < 0 && req.KeepOpen || req.IdleTimeout > 0 && !req.KeepOpen || req.IdleTimeout > 0 && req.IdleTimeout < time.Millisecond:
		e.Message = "the idle time is how long a run is kept open: at least a millisecond, of one that is kept open"
	case req.Input != nil && !json.Valid(req.Input):
		e.Message = "the input is not JSON"
	case unportable(req.Input, req.Context) != "":
		e.Message = "the input or the context cannot be kept: " + unportable(req.Input, req.Context)
	case SettingsOf(req).Problem() != "":
		e.Message = SettingsOf(req).Problem()
	default:
		return nil
	}
	return e
}

// unportable says why one of some JSON values cannot be kept, "" when all can: see [jsontext.Portable].
func unportable(values ...json.RawMessage) string {
	for _, v := range values {
		if err := jsontext.Portable(v); err != nil {
			return err.Error()
		}
	}
	return ""
}

// StartProblem says what is wrong with a request for a run of that graph, "" if nothing is.
func StartProblem(r Start, spec *pregel.Spec) string {
	switch {
	case r.StepTimeout < 0:
		return fmt.Sprintf("the step timeout %v is negative: 0 means no bound", r.StepTimeout)
	case r.IdleTimeout < 0 && r.KeepOpen || r.IdleTimeout > 0 && r.IdleTimeout < time.Millisecond:
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

// tooLong says what is too long to be stored of who asks, why, and under which id; "" when nothing is.
func tooLong(by, reason, id string) string {
	for _, given := range []struct {
		what, text string
		most       int
	}{{"the name of who asks", by, maxName}, {"the reason", reason, maxReason}, {"the id of the request", id, maxName}} {
		if len(given.text) > given.most {
			return fmt.Sprintf("%s has %d bytes, at most %d are kept: give a shorter one", given.what, len(given.text), given.most)
		}
	}
	return ""
}

// CheckAsker refuses who and why that no run takes.
func CheckAsker(threadID, by, reason string) error { return checkLengths(threadID, by, reason, "") }

func checkLengths(threadID, by, reason, id string) error {
	if why := tooLong(by, reason, id); why != "" {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: threadID, Message: why}
	}
	return nil
}

// CheckCancel refuses a cancellation with an unknown mode, or with texts that are too long.
func CheckCancel(r thread.CancelRequest) error {
	if r.Mode != "" && !r.Mode.Valid() {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread,
			Message: fmt.Sprintf("a run is not cancelled with mode %q: there are keep, drop, rollback and compensate", r.Mode)}
	}
	return checkLengths(r.Thread, r.By, r.Reason, r.ID)
}

// CheckPause refuses a pause with texts that are too long.
func CheckPause(r thread.PauseRequest) error { return checkLengths(r.Thread, r.By, r.Reason, r.ID) }

// CheckEvent refuses an event whose name, value, sender or id cannot be stored.
func CheckEvent(r thread.EventRequest) error {
	if bad := unportable(r.Value); bad != "" {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: "the event's value cannot be kept: " + bad}
	}
	if err := graphadapter.CheckEvent(r.Name, pregel.Value(r.Value)); err != nil {
		return &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: err.Error()}
	}
	return checkLengths(r.Thread, r.By, "", r.ID)
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
	case several && (req.Question != "" || req.Value != nil):
		why = "a request with Answers has no Question or Value of its own"
	case !several && len(req.Tokens) > 0:
		why = "Tokens go with Answers"
	default:
		why = tooLong("", "", req.ID)
	}
	if bad := unportable(append(slices.Collect(maps.Values(req.Answers)), req.Value)...); bad != "" {
		why = "the answer cannot be kept: " + bad
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

// ResolveQuestion returns the id of the question that is named, "" for none where a run stands at a breakpoint.
func ResolveQuestion(graph, thread string, s protocol.State, named string) (string, error) {
	if waits := Matching(s.Waits, named); len(waits) > 0 && (named != "" || s.Status == protocol.StatusWaitingEvent) &&
		len(Matching(s.Questions, named)) == 0 {
		at := slices.IndexFunc(s.Waits, func(q pregel.OpenQuestion) bool { return q.ID == waits[0] })
		return "", waitsForEvent(graph, thread, s.Waits[at].Question)
	}
	matches := Matching(s.Questions, named)
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", SeveralOpen(graph, thread, named, matches)
	case named == "" && s.Status == protocol.StatusStopped:
		return "", nil
	case named == "":
		return "", AsksNothing(graph, thread, "", s.Status)
	}
	for _, a := range s.Answered {
		if strings.HasPrefix(a.Question, named) {
			return a.Question, nil // the run says by whom and when
		}
	}
	return "", NoSuchQuestion(graph, thread, named)
}

// Matching are the ids of the open questions that a prefix can mean.
func Matching(open []pregel.OpenQuestion, prefix string) []string {
	return protocol.Matching(open, prefix)
}

// SeveralOpen refuses an answer that could be for any of several questions.
func SeveralOpen(graph, threadID string, id string, matches []string) error {
	return &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: threadID, Question: id,
		Message: fmt.Sprintf("several questions are open (%s)", strings.Join(matches, ", ")), Do: "Name one of them"}
}

// AsksNothing refuses an answer to a thread without open questions.
func AsksNothing(graph, threadID string, question, status string) error {
	return &thread.Error{Kind: thread.ErrAnswerRefused, Graph: graph, Thread: threadID, Question: question,
		Message: fmt.Sprintf("thread %q asks nothing: its run is %s", threadID, status),
		Do:      "Look at it", Command: []string{"show", threadID}}
}

// NoSuchQuestion refuses an answer to a question that the thread never asked.
func NoSuchQuestion(graph, threadID string, id string) error {
	return &thread.Error{Kind: thread.ErrNotFound, Graph: graph, Thread: threadID, Question: id,
		Message: fmt.Sprintf("thread %q has no question %q", threadID, id),
		Do:      "See what is open", Command: []string{"show", threadID}}
}

// AnsweredBefore refuses an answer to a run that asks nothing: it names who has answered the question, where that is known.
func AnsweredBefore(graph, threadID string, status, question string, answered []protocol.Answered) error {
	for i := len(answered) - 1; i >= 0 && question != ""; i-- {
		if a := answered[i]; strings.HasPrefix(a.Question, question) {
			return &thread.Error{Kind: thread.ErrAnswerRefused, Graph: graph, Thread: threadID, Question: a.Question,
				Do: "Look at it", Command: []string{"show", threadID},
				Message: fmt.Sprintf("question %s was already answered%s at %s, and the run is %s", a.Question, byWhom(a.By),
					a.At.UTC().Format(time.RFC3339), status)}
		}
	}
	return AsksNothing(graph, threadID, question, status)
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// waitsForEvent refuses an answer to what waits for an event.
func waitsForEvent(graph, threadID string, q pregel.Question) error {
	return &thread.Error{Kind: thread.ErrAnswerRefused, Graph: graph, Thread: threadID, Question: q.ID,
		Message: fmt.Sprintf("%s waits for the event %q, not for a person", q.ID, q.Event), Do: "Send that event",
		Command: []string{"event", threadID, q.Event}}
}

// UpdatedSpec returns the graph that a request updates.
func UpdatedSpec(spec *pregel.Spec, r thread.UpdateRequest) (*pregel.Spec, error) {
	for _, node := range r.Subgraph {
		sub, ok := NodeSubgraph(spec, node)
		if !ok {
			return nil, &thread.Error{Kind: thread.ErrNotFound, Graph: r.Graph, Thread: r.Thread, Node: node,
				Message: fmt.Sprintf("node %q of graph %q is no subgraph", node, spec.Name)}
		}
		spec = sub
	}
	return spec, nil
}

// NodeSubgraph returns the graph that a node runs.
func NodeSubgraph(spec *pregel.Spec, node string) (*pregel.Spec, bool) {
	for _, n := range spec.Nodes {
		if n.Name == node {
			sub, ok := spec.Subgraphs[n.Subgraph]
			return sub, ok
		}
	}
	return nil, false
}

// CheckUpdates refuses updates that no graph of that spec could take.
func CheckUpdates(spec *pregel.Spec, r thread.UpdateRequest) error {
	if _, err := UpdatedSpec(spec, r); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: r.Graph, Thread: r.Thread, Message: fmt.Sprintf(format, args...)}
	}
	if len(r.Updates) == 0 {
		return refuse("there is no update")
	}
	for _, step := range r.Updates {
		if len(step) == 0 {
			return refuse("a superstep has no update")
		}
		for _, u := range step {
			for _, w := range u.Values {
				if bad := unportable(json.RawMessage(w.Value)); bad != "" {
					return refuse("the update of %s cannot be kept: %s", w.Channel, bad)
				}
			}
		}
	}
	return nil
}

// NamedWrites are the writes of a JSON object of channels. A field that the graph does not have is refused here, where
// people give values by name; the engine ignores it, as LangGraph does.
func NamedWrites(spec *pregel.Spec, values pregel.Value) ([]pregel.Write, error) {
	writes, err := past.WritesOf(spec, values)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, ch := range spec.Channels {
		known[ch.Name] = true
	}
	for _, w := range writes {
		if !known[w.Channel] {
			return nil, fmt.Errorf("unknown field %q%s", w.Channel, nearest.DidYouMean(w.Channel, known))
		}
	}
	return writes, nil
}
