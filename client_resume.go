package superstep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/api/serviceerror"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows"
)

// Resume answers a question of a waiting thread, and returns when the answer is stored and taken. Without a question
// it answers the only one that is open, or lets the run pass the breakpoint at which it stands.
//
// Errors: ErrNotFound; ErrBadInput when the answer does not fit what was asked; ErrAnswerRefused when nothing is asked
// or the question was answered before, and with a Code when a gate does not allow an answer to an approval; ErrNoWorker
// when no worker answers: then the answer is not stored (Signal stores it without one).
func (c *Client) Resume(ctx context.Context, req ResumeRequest) (ResumeReply, error) {
	if req.ID == "" {
		req.ID = uuid.NewString()
	}
	wire := workflows.ResumeRequest{ID: req.ID, Question: req.Question, Value: req.Value, By: req.By, Token: req.Token}
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
		return ResumeReply{}, c.notAsking(ctx, last, req)
	}
	if err := checkAnswerSize(last, wire); err != nil {
		return ResumeReply{}, err
	}
	if req.Signal {
		return c.resumeBySignal(ctx, last, wire)
	}
	if !known {
		before, err := c.resolveQuestion(ctx, last, &wire)
		if err != nil || before != nil {
			return ResumeReply{Thread: req.Thread, Question: wire.Question, Node: nodeOf(before)}, err
		}
	}
	return c.resume(ctx, last, wire)
}

// resume sends an answer by update. The error is errEnded when there is no run that could take it.
func (c *Client) resume(ctx context.Context, last *lastRun, req workflows.ResumeRequest) (ResumeReply, error) {
	reply, err := c.answer(ctx, last, req)
	if err != nil {
		return ResumeReply{}, err
	}
	return ResumeReply{Thread: last.thread, Question: reply.Question, Node: reply.Node, Accepted: !reply.Repeated,
		By: reply.By, Votes: reply.Votes, Need: reply.Need}, nil
}

// questionIDBytes is how long the id of a question is.
const questionIDBytes = len("q-") + 8

// maxAnswerBytes bounds what one request answers; the run refuses more too, but a larger message may not reach it.
const maxAnswerBytes = 256 << 10

func checkAnswerSize(last *lastRun, req workflows.ResumeRequest) error {
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

func nodeOf(a *workflows.Answered) string {
	if a == nil {
		return ""
	}
	return a.Node
}

// resumeBySignal needs the whole id: there may be no worker to ask what is open.
func (c *Client) resumeBySignal(ctx context.Context, last *lastRun, req workflows.ResumeRequest) (ResumeReply, error) {
	if req.Question == "" {
		return ResumeReply{}, &Error{Kind: ErrBadInput, Thread: last.thread, Message: "an answer by signal names its question"}
	}
	if err := c.signal(ctx, last, workflows.SignalResume, req); err != nil {
		return ResumeReply{}, c.explain(err, last.graph, last.thread)
	}
	return ResumeReply{Thread: last.thread, Question: req.Question, Accepted: true}, nil
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

// notAsking says why a closed run takes no answer: who has answered the question before, as far as it knows.
func (c *Client) notAsking(ctx context.Context, last *lastRun, req ResumeRequest) error {
	e := &Error{Kind: ErrAnswerRefused, Graph: last.graph, Thread: last.thread, Question: req.Question,
		Message: fmt.Sprintf("thread %q asks nothing: its run is %s", last.thread, statusOf(last.status)),
		Do:      "Look at it", Command: []string{"show", last.thread}}
	event, err := c.closingEvent(ctx, last)
	if err != nil || req.Question == "" {
		return e
	}
	left, _, _ := c.leftIn(ctx, last, event) // what cannot be read has nothing to add
	for _, a := range left.Answered {
		if strings.HasPrefix(a.Question, req.Question) {
			e.Question = a.Question
			e.Message = fmt.Sprintf("question %s was already answered%s at %s, and the run is %s", a.Question, byWhom(a.By),
				a.At.UTC().Format(time.RFC3339), statusOf(last.status))
		}
	}
	return e
}

func byWhom(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// resolveQuestion turns what the caller named into a question's id. It returns the answer that this very request gave
// before, if it did.
func (c *Client) resolveQuestion(ctx context.Context, last *lastRun, req *workflows.ResumeRequest) (*workflows.Answered, error) {
	var s workflows.State
	if err := c.query(ctx, last, workflows.QueryState, &s); err != nil {
		return nil, err
	}
	for _, a := range s.Answered {
		if a.RequestID == req.ID {
			req.Question = a.Question
			return &a, nil
		}
	}
	if waits := matching(s.Waits, req.Question); len(waits) > 0 && (req.Question != "" || s.Status == workflows.StatusWaitingEvent) &&
		len(matching(s.Questions, req.Question)) == 0 {
		at := slices.IndexFunc(s.Waits, func(q pregel.OpenQuestion) bool { return q.ID == waits[0] })
		return nil, waitsForEvent(last.graph, last.thread, s.Waits[at].Question)
	}
	matches := matching(s.Questions, req.Question)
	switch {
	case len(matches) == 1:
		req.Question = matches[0]
		return nil, nil
	case len(matches) > 1:
		return nil, severalOpen(last, req.Question, matches)
	case req.Question == "" && s.Status == workflows.StatusStopped:
		return nil, nil
	case req.Question == "":
		return nil, asksNothing(last, s.Status)
	}
	for _, a := range s.Answered {
		if strings.HasPrefix(a.Question, req.Question) {
			req.Question = a.Question
			return nil, nil // the run says by whom and when
		}
	}
	return nil, noSuchQuestion(last, req.Question)
}

// waitsForEvent refuses an answer to what waits for an event.
func waitsForEvent(graph, thread string, q pregel.Question) error {
	return &Error{Kind: ErrAnswerRefused, Graph: graph, Thread: thread, Question: q.ID,
		Message: fmt.Sprintf("%s waits for the event %q, not for a person", q.ID, q.Event), Do: "Send that event",
		Command: []string{"event", thread, q.Event}}
}

func matching(open []pregel.OpenQuestion, prefix string) []string {
	var out []string
	for _, q := range open {
		if q.ID == prefix {
			return []string{q.ID}
		}
		if strings.HasPrefix(q.ID, prefix) {
			out = append(out, q.ID)
		}
	}
	return out
}
