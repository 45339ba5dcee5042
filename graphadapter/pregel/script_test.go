package pregel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"superstep.dev/graphadapter/pregel"
)

// TestScripts runs the scripts in testdata/script: each declares graphs, drives threads by hand, and shows what the
// engine did. After an intended change, -rewrite writes the new results; read the diff.
//
//	graph, subgraph NAME    declare a graph line by line; see declare
//	invoke [limit=N] [before=(…)] [after=(…)] [at=#N]    JSON input; at runs again from the thread's Nth checkpoint
//	continue, control, resume [scalar] [again], answer   go on; see the directives' methods
//	edit [at=#N] [in=(…)]    write from outside as if nodes had returned it, a subgraph's in a path of nodes
//	reply                   answers while the superstep is under way
//	drop                    forgets the superstep under way
//	drain                   asks the run to stop, for the reason given
//	ready                   the tasks that are handed out
//	deliver, run            outcomes, one task a line; see outcomeOf
//	state, history, checkpoint, questions, output, ledgers    what there is to see
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := newSession()
		datadriven.RunTest(t, path, s.directive)
	})
}

// TestScriptsWithStoredThreads runs the same scripts, storing and reading back the thread before every run and drop: what a
// thread does next may depend on nothing that is not stored.
func TestScriptsWithStoredThreads(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := newSession()
		s.stored = true
		datadriven.RunTest(t, path, s.directive)
	})
}

// session is the state of one script.
type session struct {
	stored    bool
	suspended bool
	frozen    pregel.Frozen // the run as it was last suspended, by which program, and the text that it has; see thaw
	frozenBy  *pregel.Program
	whole     pregel.Value
	subgraphs map[string]*pregel.Spec
	program   *pregel.Program
	thread    *pregel.Thread
	loop      *pregel.Loop
	tasks     map[string]*pregel.Task // every task of the run that was handed out, by name
	open      []string                // those without an outcome, in the order handed out
	records   []*pregel.Record        // the root graph's checkpoints
	out       strings.Builder
}

func newSession() *session { return &session{subgraphs: map[string]*pregel.Spec{}} }

func (s *session) directive(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	s.out.Reset()
	err := s.do(d)
	if err == nil {
		err = s.suspend()
	}
	if err != nil {
		fmt.Fprintf(&s.out, "error: %v\n", err)
	}
	return s.out.String()
}

func (s *session) do(d *datadriven.TestData) error {
	switch d.Cmd {
	case "graph":
		return s.declareGraph(d.Input)
	case "subgraph":
		name := d.CmdArgs[0].Key
		spec, err := s.declare(name, d.Input)
		s.subgraphs[name] = spec
		return err
	case "invoke":
		return s.start(d, pregel.Input{Value: pregel.Value(d.Input)})
	case "continue":
		return s.start(d, pregel.Input{})
	case "control":
		return s.control(d)
	case "resume":
		return s.resume(d)
	case "answer":
		answers, err := answersOf(d.Input)
		if err != nil {
			return err
		}
		return s.program.Answer(s.thread, &pregel.Resume{ByID: answers})
	case "edit":
		return s.edit(d)
	case "drop":
		if err := s.storeAndRead(); err != nil {
			return err
		}
		s.program.Drop(s.thread)
		return nil
	case "drain":
		s.loop.Drain(d.Input)
		s.showStatus()
		return nil
	case "reply":
		return s.reply(d.Input)
	case "deliver":
		return s.deliver(d.Input)
	case "run":
		return s.runAll(d.Input)
	}
	return s.show(d)
}

func (s *session) declareGraph(text string) error {
	spec, err := s.declare("g", text)
	if err != nil {
		return err
	}
	s.program, err = pregel.Compile(spec, customReducers)
	s.thread, s.loop, s.records = pregel.NewThread(), nil, nil
	if err == nil {
		s.out.WriteString("ok\n")
	}
	return err
}

// start begins a run. The options are those of the directive: limit, before, after, and at, which replays.
func (s *session) start(d *datadriven.TestData, in pregel.Input) error {
	opts, replay := pregel.Options{RecursionLimit: 100}, false
	for _, arg := range d.CmdArgs {
		switch arg.Key {
		case "limit":
			opts.RecursionLimit = number(arg.Vals[0])
		case "before":
			opts.InterruptBefore = given(arg.Vals)
		case "after":
			opts.InterruptAfter = given(arg.Vals)
		case "at":
			replay = true
			s.thread = s.thread.At(s.records[number(strings.TrimPrefix(arg.Vals[0], "#"))], pregel.ForReplay)
		}
	}
	if err := s.storeAndRead(); err != nil {
		return err
	}
	s.tasks, s.open = map[string]*pregel.Task{}, nil
	loop, err := s.program.Start(s.thread, in, opts, replay, s.observe)
	if err != nil {
		return err
	}
	s.loop = loop
	s.showStatus()
	return nil
}

// given are the values of a directive's argument: "none" is an empty list.
func given(values []string) []string {
	if slices.Equal(values, []string{"none"}) {
		return []string{}
	}
	return values
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // a mistake in the script
	}
	return n
}

// storeAndRead replaces the thread by what is left of it after storing it, where threads are stored, and checks that storing that again
// gives the same.
func (s *session) storeAndRead() error {
	if !s.stored {
		return nil
	}
	stored, err := s.program.EncodeThread(s.thread)
	if err != nil {
		return err
	}
	if s.thread, err = s.program.DecodeThread(stored); err != nil {
		return err
	}
	again, err := s.program.EncodeThread(s.thread)
	if err != nil {
		return err
	}
	if string(again) != string(stored) {
		return fmt.Errorf("stored and read back, the thread is another one:\n%s\n%s", stored, again)
	}
	return nil
}

// control continues with a command from outside, written like an outcome.
func (s *session) control(d *datadriven.TestData) error {
	o, err := outcomeOf(d.Input, nil)
	if err != nil {
		return err
	}
	return s.start(d, pregel.Input{Control: &o.Command})
}

// resume answers: a scalar, or one "question=JSON" a line. With "again" waiting tasks without an answer run too.
func (s *session) resume(d *datadriven.TestData) error {
	r := &pregel.Resume{AskAgain: d.HasArg("again"), By: "someone"}
	if d.HasArg("scalar") {
		r.Scalar = pregel.Value(d.Input)
		return s.start(d, pregel.Input{Resume: r})
	}
	var err error
	if r.ByID, err = answersOf(d.Input); err != nil {
		return err
	}
	return s.start(d, pregel.Input{Resume: r})
}

func answersOf(text string) (map[string]pregel.Value, error) {
	out := map[string]pregel.Value{}
	for _, line := range lines(text) {
		id, value, ok := strings.Cut(line, "=")
		if !ok || !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("an answer is question=JSON, not %q", line)
		}
		out[id] = pregel.Value(value)
	}
	return out, nil
}

// lines returns a directive's lines without blanks.
func lines(text string) []string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// reply answers while tasks are under way.
func (s *session) reply(text string) error {
	answers, err := answersOf(text)
	if err != nil {
		return err
	}
	if err := s.loop.Resume(&pregel.Resume{ByID: answers}); err != nil {
		return err
	}
	s.showStatus()
	return nil
}

// deliver delivers the outcomes of its lines, in their order.
func (s *session) deliver(text string) error {
	for _, line := range lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		task, ok := s.tasks[name]
		if !ok {
			return fmt.Errorf("no task %s was handed out", name)
		}
		if err := s.deliverOne(name, task, rest); err != nil {
			return err
		}
	}
	s.showStatus()
	return nil
}

func (s *session) deliverOne(name string, task *pregel.Task, text string) error {
	o, err := outcomeOf(text, task)
	if err != nil {
		return err
	}
	if task.RouteOnly {
		o.Command = task.Done // whoever runs tasks gives back what was already returned
	}
	s.open = slices.DeleteFunc(s.open, func(n string) bool { return n == name })
	s.loop.Deliver(task, o)
	s.takeReady()
	return s.suspend()
}

// runAll delivers to every task that is handed out the outcome of its line, named by the task or by its node, until
// the run ends. A line "*" is for all others.
func (s *session) runAll(text string) error {
	script := map[string]string{}
	for _, line := range lines(text) {
		name, rest, _ := strings.Cut(line, " ")
		script[name] = rest
	}
	for len(s.open) > 0 {
		name := s.open[0]
		task := s.tasks[name]
		line, ok := script[name]
		for _, other := range []string{task.Node, "*"} {
			if !ok {
				line, ok = script[other]
			}
		}
		if !ok {
			return fmt.Errorf("the script has no line for task %s", name)
		}
		if err := s.deliverOne(name, task, line); err != nil {
			return err
		}
	}
	s.showStatus()
	return nil
}

// takeReady notes the tasks that the loop hands out.
func (s *session) takeReady() {
	for _, t := range s.loop.Ready() {
		name := nameOf(t)
		s.tasks[name] = t
		s.open = append(s.open, name)
	}
}

// nameOf names a task within its run's superstep.
func nameOf(t *pregel.Task) string {
	if t.Namespace == "" {
		return t.Path
	}
	return t.Namespace + ">" + t.Path
}
