package remote

import (
	"context"
	"strings"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

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
