package superstep

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// Resume answers a question of a waiting thread, and returns when the answer is stored and taken. Without a question
// it answers the only one that is open, or lets the run pass the breakpoint at which it stands. With Answers it answers
// several, all or none. A request whose ID was taken before is no error, also when the run is over: the reply is Repeated.
//
// Errors: ErrNotFound; ErrBadInput when the answer does not fit what was asked; ErrAnswerRefused when nothing is asked
// or the question was answered before, and with a Code when a gate does not allow an answer to an approval; ErrNoWorker
// when no worker answers: then the answer is not stored (Signal stores it without one).
func (c *Client) Resume(ctx context.Context, req ResumeRequest) (ResumeReply, error) {
	if err := checkAnswers(req); err != nil {
		return ResumeReply{}, err
	}
	if req.ID == "" {
		req.ID = uuid.NewString()
	}
	wire := req.wire()
	// Who has a token knows thread and question: there is nothing to ask first.
	known := req.Token != "" && len(req.Question) >= questionIDBytes
	if known && !req.Signal && checkAnswerSize(&lastRun{}, wire) == nil {
		reply, err := c.resume(ctx, &lastRun{thread: req.Thread}, wire)
		if !errors.Is(err, errEnded) {
			return reply, err
		}
	}
	last, err := c.theLastRun(ctx, req.Thread)
	if err != nil {
		return ResumeReply{}, err
	}
	if !last.open {
		return c.notAsking(ctx, last, req)
	}
	if err := checkAnswerSize(last, wire); err != nil {
		return ResumeReply{}, err
	}
	if req.Signal {
		return c.resumeBySignal(ctx, last, wire)
	}
	if !known {
		before, err := c.resolveQuestions(ctx, last, &wire)
		if err != nil || before != nil {
			return repeatedAnswer(last, wire, before), err
		}
	}
	return c.resume(ctx, last, wire)
}

// checkAnswers refuses requests that contradict themselves.
func checkAnswers(req ResumeRequest) error {
	why := ""
	switch several := len(req.Answers) > 0; {
	case several && (req.Question != "" || req.Value != nil || req.Token != ""):
		why = "a request with Answers has no Question, Value or Token of its own"
	case !several && len(req.Tokens) > 0:
		why = "Tokens go with Answers"
	case len(req.ID) > maxPauseBy:
		why = fmt.Sprintf("the id of a request has at most %d bytes", maxPauseBy)
	}
	for question := range req.Tokens {
		if _, given := req.Answers[question]; !given {
			why = fmt.Sprintf("there is a token for question %q, and no answer", question)
		}
	}
	if why == "" {
		return nil
	}
	return &Error{Kind: ErrBadInput, Thread: req.Thread, Question: req.Question, Message: why}
}

// wire is the request as the run gets it. Several answers are in the order of their keys.
func (r ResumeRequest) wire() protocol.ResumeRequest {
	wire := protocol.ResumeRequest{ID: r.ID, Call: newCall(), Question: r.Question, Value: r.Value, By: r.By, Token: r.Token, Tokens: r.Tokens}
	for _, id := range slices.Sorted(maps.Keys(r.Answers)) {
		wire.Answers = append(wire.Answers, pregel.Answer{QuestionID: id, Value: pregel.Value(r.Answers[id])})
	}
	return wire
}

// newCall names one call, so that its outcome can be told from that of a call before.
func newCall() string { return rand.Text()[:16] }

// resume sends an answer by update. The error is errEnded when there is no run that could take it.
func (c *Client) resume(ctx context.Context, last *lastRun, req protocol.ResumeRequest) (ResumeReply, error) {
	reply, err := c.answer(ctx, last, req)
	if err != nil {
		return ResumeReply{}, err
	}
	// The server itself gives the outcome of an update again to who repeats it.
	repeated := reply.Repeated || reply.Call != req.Call
	return ResumeReply{Thread: last.thread, Question: reply.Question, Questions: questionsIn(req), Node: reply.Node,
		Accepted: !repeated, Repeated: repeated, By: reply.By, Votes: reply.Votes, Need: reply.Need}, nil
}

// questionsIn are the questions of a request that answers several.
func questionsIn(req protocol.ResumeRequest) []string {
	var out []string
	for _, a := range req.Answers {
		out = append(out, a.QuestionID)
	}
	return out
}

// repeatedAnswer is the reply to a request that was taken before, the zero value when none was.
func repeatedAnswer(last *lastRun, req protocol.ResumeRequest, before *protocol.Answered) ResumeReply {
	if before == nil {
		return ResumeReply{}
	}
	reply := ResumeReply{Thread: last.thread, Questions: questionsIn(req), Node: before.Node, Repeated: true}
	if len(req.Answers) == 0 {
		reply.Question = before.Question
	}
	return reply
}

// questionIDBytes is how long the id of a question is.
const questionIDBytes = len("q-") + 8

// maxAnswerBytes bounds what one request answers; the run refuses more too, but a larger message may not reach it.
const maxAnswerBytes = 256 << 10

func checkAnswerSize(last *lastRun, req protocol.ResumeRequest) error {
	size := len(req.Value)
	for _, a := range req.Answers {
		size += len(a.Value)
	}
	if size <= maxAnswerBytes {
		return nil
	}
	return &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread, Question: req.Question,
		Message: fmt.Sprintf("the answer has %d bytes, at most %d can be taken", size, maxAnswerBytes),
		Do:      "Keep the large value outside and answer with a reference to it"}
}

// resumeBySignal needs the whole id: there may be no worker to ask what is open.
func (c *Client) resumeBySignal(ctx context.Context, last *lastRun, req protocol.ResumeRequest) (ResumeReply, error) {
	if req.Question == "" && len(req.Answers) == 0 {
		return ResumeReply{}, &Error{Kind: ErrBadInput, Thread: last.thread, Message: "an answer by signal names its question"}
	}
	if err := c.signal(ctx, last, protocol.SignalResume, req); err != nil {
		return ResumeReply{}, c.explain(err, last.graph, last.thread)
	}
	return ResumeReply{Thread: last.thread, Question: req.Question, Questions: questionsIn(req), Accepted: true}, nil
}

// signal stores a message for a run, or for the one that it was continued as meanwhile. The error is the server's.
func (c *Client) signal(ctx context.Context, last *lastRun, name string, arg any) error {
	for run := last.runID; ; {
		err := c.temporal.SignalWorkflow(ctx, last.thread, run, name, arg)
		var over *serviceerror.NotFound
		if !errors.As(err, &over) {
			return err
		}
		now, lookErr := c.lastRun(ctx, last.thread)
		if lookErr != nil || now == nil || now.first != last.first || now.runID == run || !now.open {
			return err
		}
		run = now.runID
	}
}

// notAsking says why a closed run takes no answer: who has answered the question before, as far as it knows. A request that
// was taken before is no error.
func (c *Client) notAsking(ctx context.Context, last *lastRun, req ResumeRequest) (ResumeReply, error) {
	left, _, err := c.left(ctx, last)
	if err != nil {
		left.Life.Answered = nil // what cannot be read has nothing to add
	}
	for _, a := range left.Life.Answered {
		if req.ID != "" && a.RequestID == req.ID {
			return repeatedAnswer(last, req.wire(), &a), nil
		}
	}
	return ResumeReply{}, answeredBefore(last, string(statusOf(last.status)), req.Question, left.Life.Answered)
}

// answeredBefore refuses an answer to a run that asks nothing: it names who has answered the question, where that is known.
func answeredBefore(last *lastRun, status, question string, answered []protocol.Answered) error {
	for i := len(answered) - 1; i >= 0 && question != ""; i-- {
		if a := answered[i]; strings.HasPrefix(a.Question, question) {
			return &Error{Kind: ErrAnswerRefused, Graph: last.graph, Thread: last.thread, Question: a.Question,
				Do: "Look at it", Command: []string{"show", last.thread},
				Message: fmt.Sprintf("question %s was already answered%s at %s, and the run is %s", a.Question, byWhom(a.By),
					a.At.UTC().Format(time.RFC3339), status)}
		}
	}
	return asksNothing(last, question, status)
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// resolveQuestions turns what the caller named into questions' ids. It returns an answer that this very request gave
// before, if it did.
func (c *Client) resolveQuestions(ctx context.Context, last *lastRun, req *protocol.ResumeRequest) (*protocol.Answered, error) {
	var s protocol.State
	if err := c.query(ctx, last, protocol.QueryOutline, &s); err != nil {
		return nil, err
	}
	for _, a := range s.Answered {
		if a.RequestID == req.ID {
			return &a, nil
		}
	}
	if len(req.Answers) == 0 {
		id, err := resolveQuestion(last, s, req.Question)
		req.Question = id
		return nil, err
	}
	tokens := map[string]string{}
	for i, a := range req.Answers {
		id, err := resolveQuestion(last, s, a.QuestionID)
		if err != nil {
			return nil, err
		}
		if token, ok := req.Tokens[a.QuestionID]; ok {
			tokens[id] = token
		}
		req.Answers[i].QuestionID = id
	}
	req.Tokens = tokens
	return nil, nil
}

// resolveQuestion returns the id of the question that is named, "" for none where a run stands at a breakpoint.
func resolveQuestion(last *lastRun, s protocol.State, named string) (string, error) {
	if waits := matching(s.Waits, named); len(waits) > 0 && (named != "" || s.Status == protocol.StatusWaitingEvent) &&
		len(matching(s.Questions, named)) == 0 {
		at := slices.IndexFunc(s.Waits, func(q pregel.OpenQuestion) bool { return q.ID == waits[0] })
		return "", waitsForEvent(last.graph, last.thread, s.Waits[at].Question)
	}
	matches := matching(s.Questions, named)
	switch {
	case len(matches) == 1:
		return matches[0], nil
	case len(matches) > 1:
		return "", severalOpen(last, named, matches)
	case named == "" && s.Status == protocol.StatusStopped:
		return "", nil
	case named == "":
		return "", asksNothing(last, "", s.Status)
	}
	for _, a := range s.Answered {
		if strings.HasPrefix(a.Question, named) {
			return a.Question, nil // the run says by whom and when
		}
	}
	return "", noSuchQuestion(last, named)
}

// waitsForEvent refuses an answer to what waits for an event.
func waitsForEvent(graph, thread string, q pregel.Question) error {
	return &Error{Kind: ErrAnswerRefused, Graph: graph, Thread: thread, Question: q.ID,
		Message: fmt.Sprintf("%s waits for the event %q, not for a person", q.ID, q.Event), Do: "Send that event",
		Command: []string{"event", thread, q.Event}}
}

func matching(open []pregel.OpenQuestion, prefix string) []string {
	return protocol.Matching(open, prefix)
}
