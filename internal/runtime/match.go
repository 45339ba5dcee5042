package runtime

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

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
