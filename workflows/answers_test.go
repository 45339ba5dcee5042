package workflows_test

import (
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/testserver"
	"superstep.dev/workflows/protocol"
)

// asked starts a run of the approval graph and waits for its three questions.
func asked(t *testing.T) (*rig, string, protocol.State) {
	t.Helper()
	r := newRig(t)
	r.work(approvalGraph())
	thread := testserver.Queue(t)
	r.start(thread, protocol.GraphInput{Graph: "approval", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	return r, thread, r.asks(thread, 3)
}

func answer(id string, q pregel.OpenQuestion, value string) protocol.ResumeRequest {
	return protocol.ResumeRequest{ID: id, Question: q.ID, Value: pregel.Value(value), By: "somebody"}
}

// TestRefusedAnswers: an update is told why, a signal finds the reason in the state. Neither changes anything.
func TestRefusedAnswers(t *testing.T) {
	t.Parallel()
	r, thread, s := asked(t)
	one := questionOf(t, s, "one")
	if _, err := r.update(thread, answer("first", one, `"yes"`)); err != nil {
		t.Fatal(err)
	}
	two := questionOf(t, s, "two")
	large := `"` + strings.Repeat("x", 256<<10) + `"`
	long := strings.Repeat("n", 257)
	cases := []struct {
		name, kind, reason string
		req                protocol.ResumeRequest
	}{
		{"answered before", protocol.ErrTypeAnswered, "already answered by somebody", answer("second", one, `"no"`)},
		{"no such question", protocol.ErrTypeUnknownQuestion, "is not open", protocol.ResumeRequest{ID: "third", Question: "q-nothing", Value: pregel.Value(`"x"`)}},
		{"not of the type", protocol.ErrTypeBadAnswer, "does not fit", answer("fourth", two, `7`)},
		{"too large", protocol.ErrTypeBadAnswer, "at most 262144 bytes", answer("fifth", two, large)},
		{"a long name", protocol.ErrTypeBadAnswer, "names at most 256", protocol.ResumeRequest{ID: "sixth", Question: two.ID, Value: pregel.Value(`"x"`), By: long}},
		{"a long question", protocol.ErrTypeBadAnswer, "at most", protocol.ResumeRequest{ID: "seventh", Question: strings.Repeat("q", 300), Value: pregel.Value(`"x"`)}},
		{"nothing to pass", protocol.ErrTypeUnknownQuestion, "does not stand at a breakpoint", protocol.ResumeRequest{ID: "eighth"}},
		{"twice", protocol.ErrTypeBadAnswer, "is answered twice", protocol.ResumeRequest{ID: "tenth", Answers: []pregel.Answer{
			{QuestionID: two.ID, Value: pregel.Value(`"yes"`)}, {QuestionID: two.ID, Value: pregel.Value(`"no"`)}}}},
		{"all or none", protocol.ErrTypeUnknownQuestion, "is not open", protocol.ResumeRequest{ID: "ninth", Answers: []pregel.Answer{
			{QuestionID: two.ID, Value: pregel.Value(`"yes"`)}, {QuestionID: "q-nothing", Value: pregel.Value(`"yes"`)}}}},
	}
	for _, c := range cases {
		_, err := r.update(thread, c.req)
		if errorKind(err) != c.kind || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%s, by update: %s %v, want %s: %s", c.name, errorKind(err), err, c.kind, c.reason)
		}
	}
	if now := r.asks(thread, 2); len(now.Refused) != 0 || len(now.Answered) != 1 {
		t.Errorf("refused updates left something behind: refused %v, answered %v", now.Refused, now.Answered)
	}
	for _, c := range cases {
		c.req.ID = "s-" + c.req.ID
		r.signal(thread, c.req)
	}
	if err := r.client.SignalWorkflow(r.ctx, thread, "", protocol.SignalResume, 42); err != nil { // junk stops nobody, and is shown
		t.Fatal(err)
	}
	now := r.until(thread, "the audit of refused signals", func(s protocol.State) bool { return len(s.Refused) == len(cases)+1 })
	for i, c := range cases {
		got := now.Refused[i]
		if !strings.Contains(got.Reason, c.reason) || got.At.IsZero() || len(got.By) > 256 || len(got.Question) > 256 {
			t.Errorf("%s, by signal: %+v, want the reason %q", c.name, got, c.reason)
		}
	}
	if len(now.Questions) != 2 || len(now.Answered) != 1 {
		t.Errorf("refused signals changed the questions: %+v", now.Questions)
	}
}

// TestARequestCountsOnce: who sends a request again, after a broken connection say, gets the same reply.
func TestARequestCountsOnce(t *testing.T) {
	t.Parallel()
	r, thread, s := asked(t)
	one := questionOf(t, s, "one")
	first, err := r.update(thread, answer("same", one, `"yes"`))
	if err != nil || first.Question != one.ID || first.Node != "one" || first.Repeated {
		t.Fatalf("the first time: %+v, %v", first, err)
	}
	// The server itself answers a repeated update id. A request that comes by signal as well meets the run.
	r.signal(thread, answer("same", one, `"no"`))
	two := questionOf(t, s, "two")
	if _, err := r.update(thread, answer("other", two, `"yes"`)); err != nil {
		t.Fatal(err)
	}
	now := r.until(thread, "the second answer", func(s protocol.State) bool { return len(s.Answered) == 2 })
	if len(now.Refused) != 0 {
		t.Errorf("the repeated request was refused: %+v", now.Refused)
	}
	if a := now.Answered[0]; a.Question != one.ID || a.RequestID != "same" || a.By != "somebody" || a.Node != "one" {
		t.Errorf("the answer is on record as %+v", a)
	}
}

// TestOneOfTwoAnswersWins: two people answer one question while no worker runs; both reach the run in its next task.
func TestOneOfTwoAnswersWins(t *testing.T) {
	t.Parallel()
	for range 20 {
		if oneOfThreeWins(t) {
			return
		}
	}
	t.Error("the updates never reached the run in the task of the signal")
}

// oneOfThreeWins has one question answered by signal and twice by update at once. It reports whether all three reached
// the run in one task: a slow update comes after the signal's.
func oneOfThreeWins(t *testing.T) bool {
	r := newRig(t)
	stop := r.work(approvalGraph())
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "approval", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	s := r.asks(thread, 3)
	stop()
	one, two, three := questionOf(t, s, "one"), questionOf(t, s, "two"), questionOf(t, s, "three")
	// A signal is stored before the updates come. Within one task updates count first all the same.
	r.signal(thread, answer("by signal", one, `"signal"`))
	r.signal(thread, answer("by signal too", three, `"signal"`))
	type reply struct {
		id  string
		err error
	}
	replies := make(chan reply)
	for _, id := range []string{"a", "b"} {
		go func() {
			_, err := r.update(thread, answer(id, one, `"`+id+`"`))
			replies <- reply{id, err}
		}()
	}
	stopWorker := r.work(approvalGraph())
	winner, refused := "", 0
	for range 2 {
		switch got := <-replies; {
		case got.err == nil:
			winner = got.id
		case errorKind(got.err) == protocol.ErrTypeAnswered:
			refused++
		default:
			t.Fatal(got.err)
		}
	}
	now := r.asks(thread, 1)
	if refused == 2 && len(now.Refused) == 0 && now.Answered[0].RequestID == "by signal" {
		stopWorker()
		return false
	}
	if winner == "" || refused != 1 {
		t.Fatalf("%q won and %d were refused, want one of each", winner, refused)
	}
	if len(now.Refused) != 1 || now.Refused[0].Question != one.ID || !strings.Contains(now.Refused[0].Reason, "already answered") {
		t.Errorf("the signal that came too late is on record as %+v", now.Refused)
	}
	if q := now.Questions[0]; q.ID != two.ID {
		t.Errorf("the open question is %+v, want that of node two", q)
	}
	if _, err := r.update(thread, answer("c", two, `"2"`)); err != nil {
		t.Fatal(err)
	}
	last := r.until(thread, "the third question", func(s protocol.State) bool { return len(s.Questions) == 1 && s.Questions[0].ID != two.ID })
	if _, err := r.update(thread, answer("d", last.Questions[0], `"3"`)); err != nil {
		t.Fatal(err)
	}
	log := string(r.finished(run).Output["log"])
	for _, want := range []string{`"one","\"` + winner + `\""`, `"three","\"signal\""`, `"two","\"2\"","\"3\""`} {
		if !strings.Contains(log, want) {
			t.Errorf("the run ended with %s, want %s in it", log, want)
		}
	}
	return true
}

// TestAnswersReachTheirTaskWhileSiblingsRun: nobody's approval waits for somebody else's long task.
func TestAnswersReachTheirTaskWhileSiblingsRun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	g, release := slowGraph()
	r.work(g)
	thread := testserver.Queue(t)
	run := r.start(thread, protocol.GraphInput{Graph: "slow", Input: protocol.Input{Value: pregel.Value(`{}`)}})
	s := r.until(thread, "the question", func(s protocol.State) bool { return len(s.Questions) == 1 })
	if s.Status != protocol.StatusRunning {
		t.Errorf("beside a running task the run is %s", s.Status)
	}
	if _, err := r.update(thread, answer("u", s.Questions[0], `"now"`)); err != nil {
		t.Fatal(err)
	}
	r.until(thread, "the asker's end", func(s protocol.State) bool {
		for _, task := range s.Snapshot.Tasks {
			if task.Name == "asker" {
				return task.Done
			}
		}
		return false
	})
	close(release)
	if log := string(r.finished(run).Output["log"]); log != `["asker","\"now\"","slow"]` {
		t.Errorf("the run ended with %s", log)
	}
}
