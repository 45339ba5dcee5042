package life_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/life"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// TestScripts runs the scripts in testdata/script: each tells a run what people do and what time it is, and shows what became
// of that. After an intended change, -rewrite writes the new results; read the diff.
//
//	thread [governed]          a new run; governed puts what is done to it under rules
//	asks                       what the tasks ask from now on, one a line: see questionOf
//	stand [FLAG…]              how the run stands: running, stopped, failed, held, invoked, edited, blind, undoing; nothing for waiting
//	answer, event, pause, unpause, retry, drain, cancel, view
//	                           what people do. id=, by=, reason=, token=; silent: nobody waits for the reply; check: only look;
//	                           later=NAME: the gate has not said anything yet
//	ruled NAME                 the gate says what it says to that
//	batch [fails]              the gate looks at the answers that wait, or cannot be asked
//	wait D                     time passes, and the run is attended when something is due
//	until KIND                 time passes until the audit has another entry of that kind since the last until
//	gives                      the engine is given what waits for it, and what was answered is not asked any more
//	ends, cancelled            the run ends, as it was asked to
//	next                       the thread's next run goes on with what this one leaves
//	undo                       the run undoes effects, one a line: EFFECT NODE
//	undone STATE [evidence=] [reason=], undone lost
//	                           what became of the one that is being undone, and which comes next; lost: nobody knows
//	rules                      what people decided about effects counts
//	undo-ends                  the run ends, and reports what became of its effects
//	tells                      people outside are told of what the run asks
//	told NUMBER                people outside have that notice
//	show                       what is known of the run
//
// A token is "who#id", signed by somebody who may, or "!who#id" by somebody who may not. Without one an answer to an approval
// is the word of whoever By says.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := new(session)
		datadriven.RunTest(t, path, s.directive)
	})
}

// TestScriptsWithStoredRuns runs the same scripts, storing and reading back what a run knows before every step where no gate
// is being asked: what a run does next may depend on nothing that is not stored.
func TestScriptsWithStoredRuns(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := &session{stored: true}
		datadriven.RunTest(t, path, s.directive)
	})
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// session is the state of one script, and the thread that its run looks at.
type session struct {
	stored   bool
	governed bool
	checks   bool // commands are checked before they are stored, as a validator does
	run      *life.Run
	now      time.Time
	open     []pregel.OpenQuestion
	stand    life.Stand
	later    map[string]life.Turn
	kinds    []approval.Kind // of all entries
	lines    []string        // what they say
	seen     int             // of the kinds, when time passed until one came
	// undoAsked is the question about an effect, and undoNamed what scripts call it.
	undoAsked, undoNamed string
	writes               []taskrun.Compensation // that nodes have made
	out                  strings.Builder
}

func (s *session) Asks() []pregel.OpenQuestion { return s.open }

func (s *session) Stand() life.Stand { return s.stand }

func (s *session) directive(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	if s.stored && s.run != nil && len(s.later) == 0 && s.run.Undoing() == nil && s.run.State.Notices == nil {
		s.store(t)
	}
	if err := s.do(d); err != nil {
		s.err(err)
	}
	return s.out.String()
}

// store makes the run one that goes on with what this one has stored.
func (s *session) store(t *testing.T) {
	t.Helper()
	text, err := json.Marshal(s.run.State)
	if err != nil {
		t.Fatal(err)
	}
	var known life.State
	if err := json.Unmarshal(text, &known); err != nil {
		t.Fatal(err)
	}
	s.run.Flush(s.now) // as a host does
	s.run = life.New("t-1", "g", s, known)
}

func (s *session) err(err error) {
	var refused *life.Refusal
	if errors.As(err, &refused) {
		fmt.Fprintf(&s.out, "refused: %s: %v\n", strings.TrimPrefix(string(refused.Kind), "superstep."), err)
		return
	}
	fmt.Fprintf(&s.out, "error: %v\n", err)
}

func (s *session) do(d *datadriven.TestData) error {
	switch d.Cmd {
	case "thread":
		*s = session{stored: s.stored, checks: s.checks, governed: d.HasArg("governed"), now: start, later: map[string]life.Turn{}}
		s.stand = life.Stand{Status: "waiting", Standing: true}
		s.run = life.New("t-1", "g", s, life.State{})
	case "asks":
		return s.asks(d.Input)
	case "stand":
		s.stands(d)
	case "answer", "event", "pause", "unpause", "retry", "drain", "cancel":
		return s.asked(d)
	case "view":
		s.run.Viewed(life.View{Question: arg(d, "question"), By: arg(d, "by")}, s.now)
		s.acted(s.run.Actions())
	case "ruled":
		turn := s.later[d.CmdArgs[0].Key]
		delete(s.later, d.CmdArgs[0].Key)
		return s.rule(turn)
	case "batch":
		return s.batch(d.HasArg("fails"))
	case "wait", "until":
		return s.passes(d)
	case "gives", "ends", "cancelled", "next", "show":
		return s.goesOn(d.Cmd)
	case "undo", "undone", "rules", "undo-ends":
		return s.undoes(d)
	case "tells":
		s.acted(s.run.TellPeople())
	case "told":
		number, err := strconv.Atoi(d.CmdArgs[0].Key)
		s.acted(s.run.ToldNotice(number))
		return err
	default:
		return fmt.Errorf("%q is no directive", d.Cmd)
	}
	return nil
}

func arg(d *datadriven.TestData, name string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) > 0 {
			return strings.ReplaceAll(strings.Join(a.Vals, ","), "_", " ")
		}
	}
	return ""
}

func (s *session) stands(d *datadriven.TestData) {
	s.stand = life.Stand{Status: "waiting", Standing: true}
	for _, a := range d.CmdArgs {
		switch s.stand.Status = a.Key; a.Key {
		case "running":
			s.stand.Standing = false
		case "blind":
			s.stand.Standing, s.stand.Blind = false, true
		case "stopped":
			s.stand.Stopped = true
		case "failed":
			s.stand.Failed = true
		case "held":
			s.stand.Held = true
		case "invoked":
			s.stand.Invoked = true
		case "edited":
			s.stand.Edited = true
		}
	}
	s.attend()
}

// asks reads what tasks ask.
func (s *session) asks(text string) error {
	s.open = nil
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		q, err := questionOf(line)
		if err != nil {
			return err
		}
		s.open = append(s.open, q)
		if strings.Contains(line, " calls") {
			c := taskrun.Compensation{Node: q.Node, Effect: ledger.Entry{Key: q.Node, Name: q.Node, Kind: ledger.KindEffect, State: ledger.StateCommitted}}
			if strings.Contains(line, " final") {
				c.Effect.Key = ""
			}
			s.writes = append(s.writes, c)
		}
	}
	s.run.Look()
	s.attend()
	return nil
}

// questionOf reads one question, of the node of the same name:
//
//	ID ask [schema=TYPE]
//	ID calls [final]
//	ID wait EVENT [timeout=D] [schema=TYPE]
//	ID approve [within=D] [warn=D] [silence=WORD] [default=VERDICT] [escalate=WHO] [quorum=N] [by=WHO] [hash=H] [valid=D]
func questionOf(line string) (pregel.OpenQuestion, error) {
	words := strings.Fields(line)
	q := pregel.OpenQuestion{Node: words[0], Step: 1}
	q.ID, q.Value = words[0], pregel.Value(`"?"`)
	var a approval.Action
	for _, w := range words[2:] {
		name, value, _ := strings.Cut(w, "=")
		took, err := time.ParseDuration(value)
		if slices.Contains([]string{"timeout", "within", "warn", "valid"}, name) && err != nil {
			return q, err
		}
		switch name {
		case "schema":
			q.Schema = pregel.Value(fmt.Sprintf(`{"type":%q}`, value))
		case "timeout":
			q.Timeout = took.Milliseconds()
		case "within":
			a.Within = took.Milliseconds()
		case "warn":
			a.Warn = took.Milliseconds()
		case "valid":
			a.ValidFor = took.Milliseconds()
		case "silence":
			a.Silence = approval.Silence(value)
		case "default":
			a.Default = approval.Verdict(value)
		case "escalate":
			a.Escalate = strings.Split(value, ",")
		case "by":
			a.Approvers = strings.Split(value, ",")
		case "hash":
			a.ParamsHash = value
		case "quorum":
			if _, err := fmt.Sscan(value, &a.Quorum); err != nil {
				return q, err
			}
		case "final":
		default:
			q.Event = w
		}
	}
	if words[1] == "approve" {
		a.Tool, a.Summary = "pay", "Pay"
		text, err := json.Marshal(a)
		q.Approval = text
		return q, err
	}
	return q, nil
}

// commandOf reads what somebody does.
func (s *session) commandOf(d *datadriven.TestData) (life.Command, error) {
	id, by, reason, token := arg(d, "id"), arg(d, "by"), arg(d, "reason"), arg(d, "token")
	switch d.Cmd {
	case "event":
		return life.Event{ID: id, Call: arg(d, "call"), Name: arg(d, "name"), Value: pregel.Value(arg(d, "value")), By: by, Token: token}, nil
	case "pause", "unpause":
		return life.Pause{ID: id, By: by, Reason: reason, Token: token, Unpause: d.Cmd == "unpause"}, nil
	case "retry":
		return life.Retry{ID: id, By: by, Reason: reason, Token: token}, nil
	case "drain":
		return life.Drain{ID: id, By: by, Reason: reason, Token: token}, nil
	case "cancel":
		return life.Cancel{ID: id, Mode: life.CancelMode(arg(d, "mode")), By: by, Reason: reason, Token: token}, nil
	}
	a := life.Answer{ID: id, Call: arg(d, "call"), By: by, Token: token}
	for line := range strings.Lines(d.Input) { // QUESTION VALUE [TOKEN]
		words := append(strings.Fields(line), "", "")
		if words[0] == "" {
			continue
		}
		if slices.Contains([]string{"approve", "reject"}, words[1]) {
			words[1] = fmt.Sprintf(`{"verdict":%q}`, words[1])
		}
		if words[0] == s.undoNamed {
			words[0] = s.undoAsked
		}
		a.Answers = append(a.Answers, pregel.Answer{QuestionID: words[0], Value: pregel.Value(words[1])})
		if words[2] != "" {
			if a.Tokens == nil {
				a.Tokens = map[string]string{}
			}
			a.Tokens[words[0]] = words[2]
		}
	}
	if len(a.Answers) == 1 {
		a.Question, a.Value, a.Answers = a.Answers[0].QuestionID, a.Answers[0].Value, nil
	}
	return a, nil
}

func (s *session) asked(d *datadriven.TestData) error {
	c, err := s.commandOf(d)
	if err != nil {
		return err
	}
	if d.HasArg("check") {
		return s.run.Check(c, s.governed)
	}
	if !s.run.Free(c) {
		s.out.WriteString("it is not free\n")
		return nil
	}
	if s.checks {
		if err := s.run.Check(c, s.governed); err != nil {
			return err
		}
	}
	var turn life.Turn
	if d.HasArg("silent") {
		turn = s.run.TakeSilent(c, s.now)
	} else {
		turn = s.run.Take(c, s.now)
	}
	if name := arg(d, "later"); name != "" {
		s.later[name] = turn
		return nil
	}
	return s.rule(turn)
}

// rule has the gate say what it says.
func (s *session) rule(turn life.Turn) error {
	for turn.Asks() {
		s.acted(turn.Actions)
		turn = s.run.Ruled(turn, s.word(turn), s.now)
	}
	s.acted(turn.Actions)
	if turn.Reply != nil && turn.Err == nil {
		text, err := json.Marshal(turn.Reply)
		if err != nil {
			return err
		}
		out := cut(text)
		if s.undoAsked != "" {
			out = strings.ReplaceAll(out, s.undoAsked, "undo")
		}
		fmt.Fprintf(&s.out, "reply %s\n", out)
	}
	s.attend()
	return turn.Err
}

// cut leaves out what is another in each run.
func cut(text []byte) string {
	before, _, _ := strings.Cut(string(text), `,"audit"`)
	return before
}

func (s *session) word(turn life.Turn) life.Word {
	var w life.Word
	if p := turn.Control; p != nil {
		w.Control = approval.Ruling{Allowed: true}
		if p.Token != "" {
			w.Control = s.ruling(p.Token, p.By)
		} else if s.governed {
			w.Control = life.Unsigned(p.Op)
		}
		return w
	}
	for _, ones := range turn.Verify.Request.Requests {
		var rulings []approval.Ruling
		for _, one := range ones {
			r := s.ruling(one.Token, one.By)
			for _, v := range turn.Verify.Request.Questions[one.Question].Votes {
				if v.By == r.By {
					r.Allowed, r.Code, r.Reason = false, approval.CodeAlreadyGiven, r.By+" has approved it"
				}
			}
			rulings = append(rulings, r)
		}
		w.Replies.Rulings = append(w.Replies.Rulings, rulings)
	}
	return w
}

func (s *session) ruling(token, by string) approval.Ruling {
	who, _, _ := strings.Cut(strings.TrimPrefix(token, "!"), "#")
	r := approval.Ruling{Allowed: true, By: who, Token: token, At: s.now}
	switch {
	case token == "":
		r.By = by
	case token[0] == '!':
		r.Allowed, r.Code, r.Reason = false, approval.CodeNotYours, who+" may not"
	}
	return r
}

// undoes undoes effects, whose outcomes the script says.
func (s *session) undoes(d *datadriven.TestData) error {
	u := s.run.Undoing()
	switch d.Cmd {
	case "undo":
		u = s.run.BeginUndo(s)
		page := taskrun.StandingReply{}
		for line := range strings.Lines(d.Input) {
			words := strings.Fields(line)
			page.Effects = append(page.Effects, taskrun.Compensation{Node: words[1],
				Effect: ledger.Entry{Key: words[0], Name: words[0], Kind: ledger.KindEffect, State: ledger.StateCommitted}})
		}
		u.Add(page)
	case "undone":
		var err error
		undone := taskrun.Undone{State: taskrun.UndoState(d.CmdArgs[0].Key), Evidence: arg(d, "evidence"), Reason: arg(d, "reason")}
		if undone.State == "lost" {
			err = errors.New("its worker is gone")
		}
		u.Ended(undone, err, s.now)
	case "rules":
		u.Rule(s.now)
	case "undo-ends":
		u.Leave(s.now)
		u.End()
		s.acted(s.run.Actions())
		text, err := json.Marshal(s.run.Report())
		fmt.Fprintf(&s.out, "%s\n", text)
		return err
	}
	next, ok := u.Next(d.HasArg("full"), s.now)
	s.acted(s.run.Actions())
	if ok {
		fmt.Fprintf(&s.out, "undo %s\n", next.Effect.Name)
	}
	for _, q := range s.run.Questions() {
		s.undoAsked, s.undoNamed = q.ID, "undo"
		fmt.Fprintf(&s.out, "asks %s\n", q.Node)
	}
	return nil
}

// KeepUndone implements [life.UndoHost].
func (s *session) KeepUndone(c taskrun.Compensation, state ledger.State, evidence string) error {
	if evidence == "unkept" {
		return errors.New("it has no room")
	}
	return nil
}

// Undid implements [life.UndoHost].
func (s *session) Undid(pregel.Event) {}

func (s *session) batch(fails bool) error {
	turn := s.run.Batch(s.now)
	s.acted(turn.Actions)
	if !turn.Asks() {
		s.out.WriteString("nothing to verify\n")
		return nil
	}
	fmt.Fprintf(&s.out, "%d requests\n", len(turn.Verify.Request.Requests))
	w := s.word(turn)
	if fails {
		w = life.Word{Replies: graphadapter.VerifyReply{}, Err: errors.New("no worker")}
	}
	turn = s.run.Ruled(turn, w, s.now)
	s.acted(turn.Actions)
	s.attend()
	return turn.Err
}

func (s *session) passes(d *datadriven.TestData) error {
	if d.Cmd == "wait" {
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		end := s.now.Add(by)
		for due := s.run.Due(); !due.IsZero() && !due.After(end) && due.After(s.now); due = s.run.Due() {
			s.now = due
			s.attend()
		}
		s.now = end
		s.attend()
		return err
	}
	defer func() { s.seen = len(s.kinds) }()
	for kind := approval.Kind(d.CmdArgs[0].Key); !slices.Contains(s.kinds[s.seen:], kind); {
		if s.run.Due().IsZero() {
			return fmt.Errorf("nothing is due, and nothing was %s", kind)
		}
		s.now = s.run.Due()
		s.attend()
	}
	return nil
}

func (s *session) attend() { s.acted(s.run.Attend(s.now)) }

// acted shows what a host has to do.
func (s *session) acted(actions []life.Action) {
	for _, a := range actions {
		switch a := a.(type) {
		case life.Noted:
			s.kinds = append(s.kinds, a.Kind)
			s.lines = append(s.lines, s.named(a.Entry)+"\n")
			fmt.Fprintf(&s.out, "  audit %s\n", s.named(a.Entry))
		case life.Shown:
			fmt.Fprintf(&s.out, "  shows %s\n", pausedText(&a.Paused))
		case life.Ending:
			s.out.WriteString("  ends\n")
		case life.Tell:
			fmt.Fprintf(&s.out, "  tells %d: %s %s %q by=%q asked=%v due %s\n", a.Number, a.Kind, a.Question, a.Summary, a.By, a.Approvers, s.in(a.Due))
		case life.Hush:
			fmt.Fprintf(&s.out, "  hushes %d\n", a.Number)
		}
	}
}

// named is an entry with a word for a question about an effect, whose id says nothing to a reader.
func (s *session) named(e approval.Entry) string {
	switch {
	case e.Kind == approval.KindUnclear:
		e.Question = cmp.Or(s.undoNamed, "undo")
	case s.undoAsked != "" && e.Question == s.undoAsked:
		e.Question = s.undoNamed
	}
	return lineOf(e)
}

func lineOf(e approval.Entry) string {
	line := string(e.Kind)
	for _, part := range []struct{ name, value string }{
		{"on", e.Question}, {"who", e.Who}, {"claimed", e.Claimed}, {"verdict", string(e.Verdict)}, {"mode", e.Mode}, {"node", e.Node},
		{"event", e.Event}, {"effect", e.Effect}, {"state", e.State}, {"op", string(e.Op)}, {"code", string(e.Code)}, {"why", e.Reason},
	} {
		if part.value != "" {
			line += fmt.Sprintf(" %s=%s", part.name, part.value)
		}
	}
	if e.Count > 0 {
		line += fmt.Sprintf(" x%d", e.Count)
	}
	return line
}

func pausedText(p *life.Paused) string {
	if p == nil || p.At.IsZero() {
		return "no pause"
	}
	return fmt.Sprintf("paused by %q: %s", p.By, p.Reason)
}

func (s *session) goesOn(what string) error {
	switch what {
	case "gives":
		if !s.run.GoesOn() {
			s.out.WriteString("it does not go on\n")
			return nil
		}
		s.gives()
	case "ends":
		s.run.Withdraw("the run has ended", s.now)
		s.acted(s.run.Flush(s.now))
	case "cancelled":
		s.acted(s.run.Cancelled("the server was asked to cancel it", s.now))
		s.acted(s.run.Flush(s.now))
		fmt.Fprintf(&s.out, "ends with mode %s\n", s.run.CancelMode())
	case "next":
		s.run = life.New("t-1", "g", s, s.run.Left())
		s.attend()
	case "show":
		s.show()
	}
	return nil
}

func (s *session) gives() {
	fmt.Fprintf(&s.out, "goes on, retry %v\n", s.run.State.Retry)
	for _, a := range s.run.GiveAnswers() {
		fmt.Fprintf(&s.out, "  %s %s by %q timed out %v\n", a.QuestionID, valueText(a.Value), a.By, a.TimedOut)
		s.open = slices.DeleteFunc(s.open, func(q pregel.OpenQuestion) bool { return q.ID == a.QuestionID })
	}
	s.run.Look()
	s.attend()
}

// valueText is a value, of a decision what was decided.
func valueText(v pregel.Value) string {
	var d approval.Decision
	if json.Unmarshal(v, &d) == nil && d.Verdict != "" {
		return fmt.Sprintf("%s with %d votes", d.Verdict, len(d.Votes))
	}
	if v == nil {
		return "null"
	}
	return string(v)
}

func (s *session) show() {
	fmt.Fprintln(&s.out, pausedText(s.run.State.Paused))
	for _, q := range s.run.Questions() {
		fmt.Fprintf(&s.out, "question %s\n", q.ID)
	}
	for _, q := range s.run.Waits() {
		fmt.Fprintf(&s.out, "wait %s for %s\n", q.ID, q.Event)
	}
	for _, p := range s.run.Shown() {
		fmt.Fprintf(&s.out, "approval %s asked %v, %d of %d, due %s, missed %v, busy %v, seen by %v\n", p.Question, p.Asked, len(p.Votes), p.Need,
			s.in(p.Due), !p.Missed.IsZero(), p.Busy, p.Viewers)
	}
	for _, k := range s.run.State.Kept {
		fmt.Fprintf(&s.out, "kept %s %s by %q\n", k.Name, k.Value, k.By)
	}
	for _, r := range s.run.State.Refused {
		fmt.Fprintf(&s.out, "refused %q %q of %q: %s\n", r.Question, r.Event, r.By, r.Reason)
	}
	if s.run.Drain != "" {
		fmt.Fprintf(&s.out, "drains: %s\n", s.run.Drain)
	}
	fmt.Fprintf(&s.out, "due %s\n", s.in(s.run.Due()))
}

// in is how long it is to a time.
func (s *session) in(at time.Time) string {
	if at.IsZero() {
		return "never"
	}
	return "in " + at.Sub(s.now).String()
}
