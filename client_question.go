package superstep

import (
	"context"
	"fmt"
	"strings"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// QuestionView is one question of a thread, with what else is known of it.
type QuestionView struct {
	Thread string `json:"thread"`
	Graph  string `json:"graph"`
	Question
	// Given is the answer that was given; nil while the question is open.
	Given *GivenView `json:"given,omitempty"`
	// Others are the other questions that the thread has open. Where all of them are more than one reply takes, they have
	// one line of their text as Value, and neither schema nor approval.
	Others []Question `json:"others,omitempty"`
	// Paused says who paused the run, nil when nobody did.
	Paused *PauseView `json:"paused,omitempty"`
}

// GivenView says who answered a question, and when.
type GivenView struct {
	By string    `json:"by,omitempty"`
	At time.Time `json:"at"`
}

// Question returns a question of a thread as its run has it now. id is the question's, or an unambiguous start of it, or
// "" while exactly one is open. One that was answered lately is known too, without what it asked.
//
// Errors: ErrNotFound, ErrBadInput when several questions can be meant, ErrAnswerRefused when the thread asks nothing,
// ErrNoWorker, ErrNoServer.
func (c *Client) Question(ctx context.Context, thread, id string) (QuestionView, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return QuestionView{}, err
	}
	if !last.open {
		_, err := c.notAsking(ctx, last, ResumeRequest{Thread: thread, Question: id})
		return QuestionView{}, err
	}
	var reply protocol.QuestionReply
	if err := c.query(ctx, last, protocol.QueryQuestion, &reply, id); err != nil {
		return QuestionView{}, err
	}
	var all ThreadView
	addState(&all, reply.State)
	v := QuestionView{Thread: thread, Graph: last.graph, Paused: all.Paused}
	if reply.Question == nil {
		if matches := matching(reply.Questions, id); len(matches) > 1 {
			return v, severalOpen(last, id, matches)
		}
		return questionGiven(last, reply.State, all.Questions, v, id)
	}
	v.Question = questionsOf([]pregel.OpenQuestion{*reply.Question})[0]
	addPending(v.Question, reply.Approvals)
	for _, q := range all.Questions {
		if q.ID != v.ID {
			v.Others = append(v.Others, q)
		}
	}
	return v, nil
}

// questionGiven is the view of a question that is not open.
func questionGiven(last *lastRun, state protocol.State, open []Question, v QuestionView, id string) (QuestionView, error) {
	if id == "" {
		return v, asksNothing(last, "", state.Status)
	}
	for i := len(state.Answered) - 1; i >= 0; i-- {
		if a := state.Answered[i]; strings.HasPrefix(a.Question, id) {
			v.ID, v.Node, v.Given = a.Question, a.Node, &GivenView{By: a.By, At: a.At}
			v.Others = open
			return v, nil
		}
	}
	return v, noSuchQuestion(last, id)
}

func severalOpen(last *lastRun, id string, matches []string) error {
	return &Error{Kind: ErrBadInput, Graph: last.graph, Thread: last.thread, Question: id,
		Message: fmt.Sprintf("several questions are open (%s)", strings.Join(matches, ", ")), Do: "Name one of them"}
}

func asksNothing(last *lastRun, question, status string) error {
	return &Error{Kind: ErrAnswerRefused, Graph: last.graph, Thread: last.thread, Question: question,
		Message: fmt.Sprintf("thread %q asks nothing: its run is %s", last.thread, status),
		Do:      "Look at it", Command: []string{"show", last.thread}}
}

func noSuchQuestion(last *lastRun, id string) error {
	return &Error{Kind: ErrNotFound, Graph: last.graph, Thread: last.thread, Question: id,
		Message: fmt.Sprintf("thread %q has no question %q", last.thread, id),
		Do:      "See what is open", Command: []string{"show", last.thread}}
}
