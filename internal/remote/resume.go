package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/internal/tracing"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Resume answers a question of a waiting thread, and returns when the answer is stored and taken.
func (c *Threads) Resume(ctx context.Context, req thread.ResumeRequest) (thread.ResumeReply, error) {
	taken, err := c.answer(ctx, req, protocol.RestRequest{})
	return taken.ResumeReply, err
}

// ResumeRun implements runtime.Runtime.
func (c *Threads) ResumeRun(ctx context.Context, g *graphadapter.Graph, r thread.ResumeRequest) (thread.ResumeReply, error) {
	if err := noAnswer(g, r); err != nil {
		return thread.ResumeReply{}, err
	}
	return c.Resume(ctx, r)
}

// AnswerRun implements runtime.Runtime.
func (c *Threads) AnswerRun(ctx context.Context, g *graphadapter.Graph, r thread.ResumeRequest) (runtime.Rest, error) {
	if err := noAnswer(g, r); err != nil {
		return runtime.Rest{}, err
	}
	rest, err := c.Answer(ctx, r)
	return rest, cmp.Or(err, causeOf(rest.View))
}

// Answer is Resume and Wait: the answer's own update returns when the run rests.
func (c *Threads) Answer(ctx context.Context, r thread.ResumeRequest) (runtime.Rest, error) {
	w := c.waiterFor(r.Thread)
	taken, err := c.answer(ctx, r, w.request(true))
	if err != nil {
		return runtime.Rest{}, err
	}
	if taken.rest != nil {
		rest, stands, err := w.rested(ctx, taken.run, *taken.rest)
		if err != nil || stands {
			return rest, err
		}
	}
	return runtime.Resting(c.Wait(ctx, r.Thread))
}

func noAnswer(g *graphadapter.Graph, r thread.ResumeRequest) error {
	if r.Value == nil && len(r.Answers) == 0 {
		return &thread.Error{Kind: thread.ErrBadInput, Graph: g.Spec.Name, Thread: r.Thread, Message: "there is no answer",
			Do: "Give a value, which null is too, or the answers by their questions' ids"}
	}
	return nil
}

// taken is an answer that was taken, by a run; rest is how the run came to rest then, nil when that is not known.
type taken struct {
	thread.ResumeReply
	run  string
	rest *protocol.RestReply
}

// answer sends an answer, and returns when rest says.
func (c *Threads) answer(ctx context.Context, req thread.ResumeRequest, rest protocol.RestRequest) (taken, error) {
	if err := runtime.CheckAnswers(req); err != nil {
		return taken{}, err
	}
	if req.ID == "" {
		req.ID = uuid.NewString()
	}
	wire := wireOf(req)
	wire.Trace = tracing.Carried(ctx)
	if namesAll(req) && !req.Signal && checkAnswerSize(&lastRun{}, wire) == nil {
		reply, err := c.resume(ctx, &lastRun{thread: req.Thread}, protocol.ResumeUpdate{ResumeRequest: wire, RestRequest: rest})
		if !unclear(req, err) {
			return reply, err
		}
	}
	// Nobody asks that, or no more, or there is no such thread: what is known of it says which.
	last, err := c.theLastRun(ctx, req.Thread)
	if err != nil {
		return taken{}, err
	}
	if !last.open {
		reply, err := c.notAsking(ctx, last, req)
		return taken{ResumeReply: reply}, err
	}
	if err := checkAnswerSize(last, wire); err != nil {
		return taken{}, err
	}
	if req.Signal {
		reply, err := c.resumeBySignal(ctx, last, wire)
		if errors.Is(err, errEnded) {
			return c.answer(ctx, req, rest)
		}
		return taken{ResumeReply: reply}, err
	}
	if before, err := c.resolveQuestions(ctx, last, &wire); err != nil || before != nil {
		return taken{ResumeReply: repeatedAnswer(last, wire, before)}, err
	}
	return c.resume(ctx, last, protocol.ResumeUpdate{ResumeRequest: wire, RestRequest: rest})
}

// namesAll reports whether a request says what it answers, so that there is nothing to ask first: questions by their whole ids, or
// by a value alone the one that is open.
func namesAll(req thread.ResumeRequest) bool {
	for id := range req.Answers {
		if len(id) < questionIDBytes {
			return false
		}
	}
	return len(req.Answers) > 0 || len(req.Question) >= questionIDBytes || req.Question == "" && req.Value != nil
}

// unclear reports whether more can be said of why an answer was refused by who looks at the thread. A gate has said it all.
func unclear(req thread.ResumeRequest, err error) bool {
	var refused *thread.Error
	named := req.Question != "" || len(req.Answers) > 0
	return errors.As(err, &refused) && refused.Code == "" &&
		(errors.Is(err, thread.ErrAnswerRefused) || !named && (errors.Is(err, thread.ErrNotFound) || errors.Is(err, thread.ErrRunning)))
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
func (c *Threads) resume(ctx context.Context, last *lastRun, req protocol.ResumeUpdate) (taken, error) {
	var reply protocol.ResumeReply
	run, err := c.updateRun(ctx, ctx, last, req.ID, protocol.UpdateResume, req, &reply)
	if req.Rest && errors.Is(err, errAborted) { // the answer was taken: how the run ended is the outcome
		return taken{ResumeReply: thread.ResumeReply{Thread: last.thread, Question: req.Question, Questions: questionsIn(req.ResumeRequest), Accepted: true}}, nil
	}
	if err != nil {
		return taken{}, err
	}
	// The server itself gives the outcome of an update again to who repeats it.
	repeated := reply.Repeated || reply.Call != req.Call
	return taken{run: run, rest: reply.Rest, ResumeReply: thread.ResumeReply{Thread: last.thread, Question: reply.Question,
		Questions: questionsIn(req.ResumeRequest), Node: reply.Node, Accepted: !repeated, Repeated: repeated, By: reply.By, Votes: reply.Votes, Need: reply.Need,
		Paused: reply.Paused}}, nil
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

// checkAnswerSize refuses an answer that is too large. The run refuses it too, but a larger message may not reach it.
func checkAnswerSize(last *lastRun, req protocol.ResumeRequest) error {
	size := len(req.Value)
	for _, a := range req.Answers {
		size += len(a.Value)
	}
	if size <= thread.MostAnswer {
		return nil
	}
	return &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: last.thread, Question: req.Question,
		Message: fmt.Sprintf("the answer has %d bytes, at most %d can be taken", size, thread.MostAnswer),
		Do:      "Keep the large value outside and answer with a reference to it"}
}

// resumeBySignal needs the whole id: there may be no worker to ask what is open. It fails with errEnded when the run has ended.
func (c *Threads) resumeBySignal(ctx context.Context, last *lastRun, req protocol.ResumeRequest) (thread.ResumeReply, error) {
	if req.Question == "" && len(req.Answers) == 0 {
		return thread.ResumeReply{}, &thread.Error{Kind: thread.ErrBadInput, Thread: last.thread, Message: "an answer by signal names its question"}
	}
	if err := c.signal(ctx, last, protocol.SignalResume, req); err != nil {
		return thread.ResumeReply{}, err
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
	reply, err := questionAsked(ctx, c, last, id)
	if err != nil {
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
	asked := runtime.QuestionsOf([]pregel.OpenQuestion{*reply.Question})
	runtime.AddDue(asked, reply.State.Due)
	v.Question = asked[0]
	runtime.AddPending(v.Question, reply.Approvals)
	for _, q := range all.Questions {
		if q.ID != v.ID {
			v.Others = append(v.Others, q)
		}
	}
	return v, nil
}

// questionAsked asks a worker, not for long, and without one reads the run's history. That has no votes and no answers: a question that
// is not open there is one of which nobody can tell now.
func questionAsked(ctx context.Context, c *reader, last *lastRun, id string) (reply protocol.QuestionReply, err error) {
	probe, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	if err = c.somebodyPolls(probe, last.graph, last.queue); err == nil {
		err = c.query(probe, last, protocol.QueryQuestion, &reply, id)
	}
	if ctx.Err() != nil || !unanswered(err) {
		return reply, err
	}
	state, unread := c.stateTold(ctx, last)
	if unread != nil {
		return reply, err
	}
	reply.State = state
	found := runtime.Matching(state.Questions, id)
	if len(found) == 0 {
		return reply, err
	}
	if at := slices.IndexFunc(state.Questions, func(q pregel.OpenQuestion) bool { return q.ID == found[0] }); len(found) == 1 {
		reply.Question = &state.Questions[at]
	}
	return reply, nil
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

// RetryRun implements runtime.Runtime.
func (c *Threads) RetryRun(ctx context.Context, _ *graphadapter.Graph, r thread.RetryRequest) (thread.View, error) {
	if err := runtime.CheckAsker(r.Thread, r.By, r.Reason); err != nil {
		return thread.View{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	if last.open {
		view, err := c.retryHeld(ctx, last, r)
		if errors.Is(err, errEnded) {
			return c.RetryRun(ctx, nil, r)
		}
		return view, err
	}
	if err := c.notOfAJob(ctx, last.graph, r.Thread); err != nil {
		return thread.View{}, err
	}
	if !canRetry(last.status) {
		return thread.View{}, nothingToRetry(last, string(statusOf(last.status)))
	}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph,
		Control: controlCheck(last, approval.Control{Op: approval.OpRetry}, runtime.Asker{By: r.By, Token: r.Token})}); err != nil {
		return thread.View{}, err
	}
	in := protocol.GraphInput{Graph: last.graph, Asked: runtime.AskedOf(r.By, r.Reason, r.Token)}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return thread.View{}, err
	}
	req := runtime.Start{StartRequest: thread.StartRequest{Graph: last.graph, Thread: r.Thread}}
	req.Restore(settings)
	return c.launch(ctx, req, in, last)
}

// retryHeld lets an open run go on that failed and was held.
func (c *Threads) retryHeld(ctx context.Context, last *lastRun, r thread.RetryRequest) (thread.View, error) {
	var state protocol.State
	if err := c.query(ctx, last, protocol.QueryOutline, &state); err != nil {
		return thread.View{}, err
	}
	if state.Failure == nil {
		return thread.View{}, nothingToRetry(last, state.Status)
	}
	id := uuid.NewString()
	if err := c.update(ctx, last, id, protocol.UpdateRetry, protocol.RetryRequest{ID: id, By: r.By, Reason: r.Reason, Token: r.Token}, nil); err != nil {
		return thread.View{}, err
	}
	return goingOn(c.viewOf(last)), nil
}

func nothingToRetry(last *lastRun, status string) error {
	return &thread.Error{Kind: thread.ErrNotFailed, Graph: last.graph, Thread: last.thread,
		Message: fmt.Sprintf("thread %q has nothing to retry: its run is %s", last.thread, status),
		Do:      "Look at it", Command: []string{"show", last.thread}}
}

// WaitRun implements runtime.Runtime.
func (c *Threads) WaitRun(ctx context.Context, g *graphadapter.Graph, thread string) (thread.View, error) {
	v, err := c.Wait(ctx, thread)
	return v, cmp.Or(err, causeOf(v))
}

// ShowRun implements runtime.Runtime.
func (c *Threads) ShowRun(ctx context.Context, _ *graphadapter.Graph, thread string) (thread.View, error) {
	return c.Show(ctx, thread)
}

// causeOf is why a run failed, also one that is held open; nil for one that did not, or when nobody could say.
func causeOf(v thread.View) error {
	if v.Failure == nil || !v.Status.Unfinished() {
		return nil
	}
	return v.Failure
}
