package graphtest

import (
	"encoding/json"
	"fmt"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
)

// Asks implements life.Thread.
func (tr *trial) Asks() []pregel.OpenQuestion { return tr.program.OpenQuestions(tr.loop.Thread()) }

// Stand implements life.Thread. The run is asked something only while it waits.
func (tr *trial) Stand() life.Stand { return life.Stand{Status: "waiting", Standing: true} }

// answer gives each open question the answer that it had in the run without a crash. There the answers are given in
// their order, to the questions in the order of their tasks.
func (tr *trial) answer(asked map[string]pregel.Value) error {
	own := true // the questions are the graph's own: a segment that was lost has come no further either
	for {
		tr.life.Look()
		tr.life.Attend(time.Now())
		open := tr.life.Unanswered()
		if len(open) == 0 {
			break
		}
		q := open[0]
		v, err := tr.outside.person(q.Question)
		if err != nil {
			return err
		}
		own = own && !taskrun.IsDoubt(q.Question)
		if v == nil {
			if v, err = tr.given(q, len(asked)); err != nil {
				return err
			}
			asked[q.ID] = v
		}
		if err := tr.reply(q, v); err != nil {
			return fmt.Errorf("the answer to the question %s of node %q: %w", q.Value, q.Node, err)
		}
	}
	if own {
		tr.suspect = segment.Suspicion{}
	}
	return nil
}

func (tr *trial) given(q pregel.OpenQuestion, before int) (pregel.Value, error) {
	if tr.m.want != nil {
		if v, ok := tr.m.want.asked[q.ID]; ok {
			return v, nil
		}
		return nil, fmt.Errorf("node %q asks %s, which it did not ask without the crash", q.Node, q.Value)
	}
	if before >= len(tr.m.settings.answers) {
		return nil, fmt.Errorf("node %q asks %s and there is no answer: give one more graphtest.Answer", q.Node, q.Value)
	}
	return tr.m.settings.answers[before], nil
}

// reply answers a question: a wait by its event, an approval by the votes of as many people as it takes.
func (tr *trial) reply(q pregel.OpenQuestion, v pregel.Value) error {
	switch {
	case q.Event != "":
		return tr.take(life.Event{ID: q.ID, Name: q.Event, Value: v, By: "graphtest"})
	case q.Approval == nil:
		return tr.take(life.Answer{ID: q.ID, Question: q.ID, Value: v, By: "graphtest"})
	}
	decision, err := decided(q.Question, v)
	var d approval.Decision
	if err == nil {
		err = json.Unmarshal(decision, &d)
	}
	if err != nil {
		return err
	}
	if d.Verdict == approval.VerdictExpired { // which no time passes for
		tr.life.Given = append(tr.life.Given, pregel.Answer{QuestionID: q.ID, Value: decision, By: "graphtest"})
		return nil
	}
	for n, vote := range d.Votes {
		reply := approval.Reply{Verdict: d.Verdict, Reason: vote.Reason}
		if d.Verdict == approval.VerdictEdit {
			reply.Params = d.Params
		}
		said, err := json.Marshal(reply)
		if err != nil {
			return err
		}
		if err := tr.take(life.Answer{ID: fmt.Sprint(q.ID, "/", n), Question: q.ID, Value: said, By: vote.By}); err != nil {
			return err
		}
	}
	return nil
}

// take has the run's life take a command, where everybody may do everything.
func (tr *trial) take(c life.Command) error {
	turn := tr.life.Take(c, time.Now())
	for turn.Asks() {
		word := life.Word{Control: approval.Ruling{Allowed: true}}
		if turn.Verify != nil {
			word.Replies, word.Err = tr.graph.Verify(tr.ctx, turn.Verify.Request, approval.ReplyWithoutGate)
		}
		turn = tr.life.Ruled(turn, word, time.Now())
	}
	return turn.Err
}
