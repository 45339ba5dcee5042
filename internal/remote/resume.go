package remote

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Resume answers a question of a waiting thread, and returns when the answer is stored and taken.
func (c *Threads) Resume(ctx context.Context, req thread.ResumeRequest) (thread.ResumeReply, error) {
	if err := runtime.CheckAnswers(req); err != nil {
		return thread.ResumeReply{}, err
	}
	if req.ID == "" {
		req.ID = uuid.NewString()
	}
	wire := wireOf(req)
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
		return thread.ResumeReply{}, err
	}
	if !last.open {
		return c.notAsking(ctx, last, req)
	}
	if err := checkAnswerSize(last, wire); err != nil {
		return thread.ResumeReply{}, err
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

// ResumeRun implements runtime.Runtime.
func (c *Threads) ResumeRun(ctx context.Context, g *graphadapter.Graph, r thread.ResumeRequest) (thread.ResumeReply, error) {
	if r.Value == nil && len(r.Answers) == 0 {
		return thread.ResumeReply{}, &thread.Error{Kind: thread.ErrBadInput, Graph: g.Spec.Name, Thread: r.Thread, Message: "there is no answer"}
	}
	return c.Resume(ctx, r)
}

// wireOf is the request as the run gets it. Several answers are in the order of their keys.
func wireOf(r thread.ResumeRequest) protocol.ResumeRequest {
	wire := protocol.ResumeRequest{ID: r.ID, Call: newCall(), Question: r.Question, Value: r.Value, By: r.By, Token: r.Token, Tokens: r.Tokens}
	for _, id := range slices.Sorted(maps.Keys(r.Answers)) {
		wire.Answers = append(wire.Answers, pregel.Answer{QuestionID: id, Value: pregel.Value(r.Answers[id])})
	}
	return wire
}

// resume sends an answer by update. The error is errEnded when there is no run that could take it.
func (c *Threads) resume(ctx context.Context, last *lastRun, req protocol.ResumeRequest) (thread.ResumeReply, error) {
	reply, err := c.answer(ctx, last, req)
	if err != nil {
		return thread.ResumeReply{}, err
	}
	// The server itself gives the outcome of an update again to who repeats it.
	repeated := reply.Repeated || reply.Call != req.Call
	return thread.ResumeReply{Thread: last.thread, Question: reply.Question, Questions: questionsIn(req), Node: reply.Node,
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
func repeatedAnswer(last *lastRun, req protocol.ResumeRequest, before *protocol.Answered) thread.ResumeReply {
	if before == nil {
		return thread.ResumeReply{}
	}
	reply := thread.ResumeReply{Thread: last.thread, Questions: questionsIn(req), Node: before.Node, Repeated: true}
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
	return &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread, Question: req.Question,
		Message: fmt.Sprintf("the answer has %d bytes, at most %d can be taken", size, maxAnswerBytes),
		Do:      "Keep the large value outside and answer with a reference to it"}
}

// resumeBySignal needs the whole id: there may be no worker to ask what is open.
func (c *Threads) resumeBySignal(ctx context.Context, last *lastRun, req protocol.ResumeRequest) (thread.ResumeReply, error) {
	if req.Question == "" && len(req.Answers) == 0 {
		return thread.ResumeReply{}, &thread.Error{Kind: thread.ErrBadInput, Thread: last.thread, Message: "an answer by signal names its question"}
	}
	if err := c.signal(ctx, last, protocol.SignalResume, req); err != nil {
		return thread.ResumeReply{}, c.explain(err, last.graph, last.thread)
	}
	return thread.ResumeReply{Thread: last.thread, Question: req.Question, Questions: questionsIn(req), Accepted: true}, nil
}

// notAsking says why a closed run takes no answer: who has answered the question before, as far as it knows. A request that
// was taken before is no error.
func (c *reader) notAsking(ctx context.Context, last *lastRun, req thread.ResumeRequest) (thread.ResumeReply, error) {
	left, _, err := c.left(ctx, last)
	if err != nil {
		left.Life.Answered = nil // what cannot be read has nothing to add
	}
	for _, a := range left.Life.Answered {
		if req.ID != "" && a.RequestID == req.ID {
			return repeatedAnswer(last, wireOf(req), &a), nil
		}
	}
	return thread.ResumeReply{}, runtime.AnsweredBefore(last.graph, last.thread, string(statusOf(last.status)), req.Question, left.Life.Answered)
}

// resolveQuestions turns what the caller named into questions' ids. It returns an answer that this very request gave
// before, if it did.
func (c *Threads) resolveQuestions(ctx context.Context, last *lastRun, req *protocol.ResumeRequest) (*protocol.Answered, error) {
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
		id, err := runtime.ResolveQuestion(last.graph, last.thread, s, req.Question)
		req.Question = id
		return nil, err
	}
	tokens := map[string]string{}
	for i, a := range req.Answers {
		id, err := runtime.ResolveQuestion(last.graph, last.thread, s, a.QuestionID)
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

// answerTries is how often an answer is sent again that a run refused too early; once is what it takes.
const answerTries = 3

// answer sends an answer to a run. A query also reads what has arrived since the run last had its turn, so it may show a
// question that the run has yet to come to; and the run checks an answer before all else, so it refuses what it is about to
// ask. The refusal has given it its turn: the same answer is sent again while the question is shown.
func (c *Threads) answer(ctx context.Context, last *lastRun, req protocol.ResumeRequest) (reply protocol.ResumeReply, err error) {
	for tries := 0; ; tries++ {
		err = c.update(ctx, last, req.ID, protocol.UpdateResume, req, &reply)
		if !errors.Is(err, thread.ErrNotFound) || tries == answerTries || !c.shows(ctx, last, req) {
			return reply, err
		}
	}
}

// shows reports whether a query of the run has all that a request answers among the questions that are open.
func (c *Threads) shows(ctx context.Context, last *lastRun, req protocol.ResumeRequest) bool {
	var s protocol.State
	if c.query(ctx, last, protocol.QueryOutline, &s) != nil {
		return false
	}
	open := func(question string) bool {
		return slices.ContainsFunc(s.Questions, func(q pregel.OpenQuestion) bool { return q.ID == question })
	}
	if len(req.Answers) == 0 {
		return open(req.Question)
	}
	return !slices.ContainsFunc(req.Answers, func(a pregel.Answer) bool { return !open(a.QuestionID) })
}

// Question returns a question of a thread as its run has it now.
func (c *reader) Question(ctx context.Context, threadID, id string) (thread.QuestionView, error) {
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return thread.QuestionView{}, err
	}
	if !last.open {
		_, err := c.notAsking(ctx, last, thread.ResumeRequest{Thread: threadID, Question: id})
		return thread.QuestionView{}, err
	}
	var reply protocol.QuestionReply
	if err := c.query(ctx, last, protocol.QueryQuestion, &reply, id); err != nil {
		return thread.QuestionView{}, err
	}
	var all thread.View
	addState(&all, reply.State)
	v := thread.QuestionView{Thread: threadID, Graph: last.graph, Paused: all.Paused}
	if reply.Question == nil {
		if matches := runtime.Matching(reply.Questions, id); len(matches) > 1 {
			return v, runtime.SeveralOpen(last.graph, last.thread, id, matches)
		}
		return questionGiven(last, reply.State, all.Questions, v, id)
	}
	v.Question = runtime.QuestionsOf([]pregel.OpenQuestion{*reply.Question})[0]
	runtime.AddPending(v.Question, reply.Approvals)
	for _, q := range all.Questions {
		if q.ID != v.ID {
			v.Others = append(v.Others, q)
		}
	}
	return v, nil
}

// questionGiven is the view of a question that is not open.
func questionGiven(last *lastRun, state protocol.State, open []thread.Question, v thread.QuestionView, id string) (thread.QuestionView, error) {
	if id == "" {
		return v, runtime.AsksNothing(last.graph, last.thread, "", state.Status)
	}
	for i := len(state.Answered) - 1; i >= 0; i-- {
		if a := state.Answered[i]; strings.HasPrefix(a.Question, id) {
			v.ID, v.Node, v.Given = a.Question, a.Node, &thread.GivenView{By: a.By, At: a.At}
			v.Others = open
			return v, nil
		}
	}
	return v, runtime.NoSuchQuestion(last.graph, last.thread, id)
}
