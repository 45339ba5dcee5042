package graphtest

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/thread"
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
		return tr.take(life.Event{ID: q.ID, Name: q.Each()[0].Event, Value: v, By: "graphtest"})
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

// allowed is the gate of a test: what its answers approve may be acted upon.
func allowed(context.Context, approval.UseCheck) (approval.Ruling, error) {
	return approval.Ruling{Allowed: true}, nil
}

// actionOf is the action that a question asks to approve.
func actionOf(q pregel.Question) (a approval.Action, err error) {
	if err := json.Unmarshal(q.Approval, &a); err != nil {
		return a, fmt.Errorf("the action of the question %s cannot be read: %w", q.Value, err)
	}
	return a, nil
}

// decided is what a task gets for an answer to its question: of an approval the decision that as many people as it takes
// make by saying so.
func decided(q pregel.Question, answer pregel.Value) (pregel.Value, error) {
	if q.Approval == nil {
		return answer, graphadapter.CheckAnswer(q, answer)
	}
	action, err := actionOf(q)
	if err != nil {
		return nil, err
	}
	var said approval.Decision // or an approval.Reply, which has the same fields
	if json.Unmarshal(answer, &said.Verdict) != nil {
		if err := json.Unmarshal(answer, &said); err != nil {
			return nil, fmt.Errorf("the answer %s to the approval %s: give an approval.Verdict, Reply or Decision: %w", answer, q.Value, err)
		}
	}
	if said.Verdict == approval.VerdictExpired {
		d := action.Silent(q.ID, nil, time.Now())
		d.Verdict = said.Verdict
		return json.Marshal(d)
	}
	reply, err := json.Marshal(approval.Reply{Verdict: said.Verdict, Params: said.Params, Reason: said.Reason})
	if err == nil {
		err = graphadapter.CheckAnswer(q, reply)
	}
	if err != nil {
		return nil, err
	}
	votes := said.Votes
	for n := len(votes); n < action.Needs(0); n++ {
		votes = append(votes, approval.Vote{By: fmt.Sprintf("graphtest-%d", n+1), Verdict: said.Verdict, Reason: said.Reason, At: time.Now()})
		if said.Verdict != approval.VerdictApprove {
			break
		}
	}
	d, _ := action.Decide(q.ID, votes, 0, said.Params)
	return json.Marshal(d)
}

// Token returns a token with which the approver answers a question of the thread, on a runtime of [Runtimes] or [Temporal]: the gate
// of their worker takes it for what it says, and knows no policy. No other gate takes it.
func Token(thread string, q thread.Question, approver string) string {
	now := time.Now()
	claims := approval.Claims{ID: thread + "/" + q.ID + "/" + approver, Thread: thread, Question: q.ID, Approver: approver,
		IssuedAt: now, ExpiresAt: now.Add(approval.MaxTokenLife)}
	if q.Approval != nil {
		claims.Digest, claims.ParamsHash = q.Approval.Digest, q.Approval.ParamsHash
	}
	text, _ := json.Marshal(claims) // strings and times always encode
	return string(text)
}

// unsigned are the keys of a test's gate.
type unsigned struct{}

// Verify implements approval.Keys.
func (unsigned) Verify(token string) (claims approval.Claims, err error) {
	if json.Unmarshal([]byte(token), &claims) != nil {
		return claims, &approval.TokenError{Code: approval.CodeMalformed, Reason: "the token is none of graphtest.Token"}
	}
	claims.KeyID, claims.Owner = issuer.Issuer, issuer
	return claims, nil
}

// issuer is whose key that is: everybody's.
var issuer = approval.Owner{Issuer: "graphtest"}

// Owner implements approval.Keys.
func (unsigned) Owner(string, time.Time) (approval.Owner, error) { return issuer, nil }
