package superstep

import (
	"context"
	"errors"
	"slices"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// answerTries is how often an answer is sent again that a run refused too early; once is what it takes.
const answerTries = 3

// answer sends an answer to a run. A query also reads what has arrived since the run last had its turn, so it may show a
// question that the run has yet to come to; and the run checks an answer before all else, so it refuses what it is about to
// ask. The refusal has given it its turn: the same answer is sent again while the question is shown.
func (c *Client) answer(ctx context.Context, last *lastRun, req protocol.ResumeRequest) (reply protocol.ResumeReply, err error) {
	for tries := 0; ; tries++ {
		err = c.update(ctx, last, req.ID, protocol.UpdateResume, req, &reply)
		if !errors.Is(err, ErrNotFound) || tries == answerTries || !c.shows(ctx, last, req) {
			return reply, err
		}
	}
}

// shows reports whether a query of the run has all that a request answers among the questions that are open.
func (c *Client) shows(ctx context.Context, last *lastRun, req protocol.ResumeRequest) bool {
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
