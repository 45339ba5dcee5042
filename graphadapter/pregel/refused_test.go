package pregel_test

import (
	"errors"
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// twoAsk is a graph whose nodes a and b ask side by side, before last.
func twoAsk(t *testing.T) *pregel.Program {
	t.Helper()
	p, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g",
		Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}, {Name: "x", Kind: pregel.KindLast}},
		Nodes:    []pregel.NodeSpec{{Name: "a"}, {Name: "b"}, {Name: "last"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "a"}, {From: pregel.Start, To: "b"}},
		Joins:    []pregel.Join{{From: []string{"a", "b"}, To: "last"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// asking runs until every task that has no answer asks "q-" and its node.
func asking(p *pregel.Program, thread *pregel.Thread, in pregel.Input) (*pregel.Loop, error) {
	loop, err := p.Start(thread, in, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		return nil, err
	}
	for ready := loop.Ready(); len(ready) > 0; ready = append(ready[1:], loop.Ready()...) {
		task := ready[0]
		o := pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "log", Value: pregel.Value(`["` + task.Node + `"]`)}}}}
		if task.Node != "last" && len(task.Answers) == 0 {
			o = pregel.Outcome{Questions: []pregel.Question{{ID: "q-" + task.Node, Value: pregel.Null}}}
		}
		loop.Deliver(task, o)
	}
	return loop, loop.Err()
}

func resume(r pregel.Resume) pregel.Input { return pregel.Input{Resume: &r} }

// TestAfterARefusedCall the thread is as it was, and goes on.
func TestAfterARefusedCall(t *testing.T) {
	edit := func(updates ...pregel.Update) func(*pregel.Program, *pregel.Thread) error {
		return func(p *pregel.Program, thread *pregel.Thread) error {
			e, err := p.Edit(thread, nil, updates)
			if err == nil {
				_, err = e.Apply(nil)
			}
			return err
		}
	}
	run := func(in pregel.Input) func(*pregel.Program, *pregel.Thread) error {
		return func(p *pregel.Program, thread *pregel.Thread) error {
			_, err := asking(p, thread, in)
			return err
		}
	}
	wrong := []pregel.Write{{Channel: "log", Value: pregel.Value(`"no list"`)}}
	for name, c := range map[string]struct {
		call func(*pregel.Program, *pregel.Thread) error
		says []string
	}{
		"a scalar answer to two questions": {run(resume(pregel.Resume{Scalar: pregel.Value("1")})), []string{`graph "g"`, "q-a, q-b"}},
		"a command that a reducer refuses": {run(pregel.Input{Control: &pregel.Command{Update: wrong}}), []string{`channel "log"`, `graph "g"`, "append/v1"}},
		"input that is not JSON":           {run(pregel.Input{Value: pregel.Value(`{`)}), []string{"not JSON"}},
		"input that poses as a command":    {run(pregel.Input{Value: pregel.Value(`{"__command__":{"goto":[{"node":"last"}]}}`)}), []string{"__command__", "reserved"}},
		"one that hides its field's name":  {run(pregel.Input{Value: pregel.Value(`{"\u005f_command__":null}`)}), []string{"__command__", "reserved"}},
		"an update as such input":          {edit(pregel.Update{AsNode: pregel.AsInput, Input: pregel.Value(`{"__command__":{}}`)}), []string{"reserved"}},
		"an update that a reducer refuses": {edit(pregel.Update{AsNode: "a", Values: wrong}), []string{`channel "log"`, "append/v1"}},
		"an update that is not JSON": {edit(pregel.Update{AsNode: "a", Values: []pregel.Write{{Channel: "x", Value: pregel.Value(`{`)}}}),
			[]string{`channel "x"`, "not JSON"}},
		"updates in conflict": {edit(pregel.Update{AsNode: "a", Values: []pregel.Write{{Channel: "x"}}}, pregel.Update{AsNode: "b", Values: []pregel.Write{{Channel: "x"}}}),
			[]string{"INVALID_CONCURRENT_GRAPH_UPDATE", `channel "x"`}},
		"an update as nobody":                {edit(pregel.Update{AsNode: "nobody"}), []string{`no node "nobody"`}},
		"a copy whose update a node refuses": {edit(pregel.Update{AsNode: pregel.AsCopy, Copied: []pregel.Update{{AsNode: "a", Values: wrong}}}), []string{"append/v1"}},
		"an update of no subgraph": {func(p *pregel.Program, thread *pregel.Thread) error {
			_, err := p.Edit(thread, []string{"a"}, []pregel.Update{{AsNode: "a"}})
			return err
		}, []string{`"a" runs a subgraph`}},
		"routes of nobody": {func(p *pregel.Program, thread *pregel.Thread) error {
			e, err := p.Edit(thread, nil, []pregel.Update{{AsNode: "a"}})
			if err == nil {
				_, err = e.Apply([][]pregel.Target{{{Node: "b"}}})
			}
			return err
		}, []string{"chose routes"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, thread := twoAsk(t), pregel.NewThread()
			if _, err := asking(p, thread, pregel.Input{Value: pregel.Value(`{}`)}); err != nil {
				t.Fatal(err)
			}
			before := stored(t, p, thread)
			err := c.call(p, thread)
			for _, says := range c.says {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("the error is %v, want %s in it", err, says)
				}
			}
			if after := stored(t, p, thread); after != before {
				t.Errorf("the refused call changed the thread:\n%s\n%s", before, after)
			}
			answersBoth(t, p, thread)
		})
	}
}

func stored(t *testing.T, p *pregel.Program, thread *pregel.Thread) string {
	t.Helper()
	text, err := p.EncodeThread(thread)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// answersBoth brings the thread to its end.
func answersBoth(t *testing.T, p *pregel.Program, thread *pregel.Thread) {
	t.Helper()
	loop, err := asking(p, thread, resume(pregel.Resume{ByID: map[string]pregel.Value{"q-a": pregel.Null, "q-b": pregel.Null}}))
	if err != nil || loop.Status() != pregel.StatusDone || string(loop.Output()["log"]) != `["a","b","last"]` {
		t.Errorf("then the run ends with %v, output %s", err, valuesText(loop.Output()))
	}
}

// TestAnswersToUnknownQuestions answer nothing.
func TestAnswersToUnknownQuestions(t *testing.T) {
	p, thread := twoAsk(t), pregel.NewThread()
	if _, err := asking(p, thread, pregel.Input{Value: pregel.Value(`{}`)}); err != nil {
		t.Fatal(err)
	}
	loop, err := asking(p, thread, resume(pregel.Resume{ByID: map[string]pregel.Value{"nobody": pregel.Null}}))
	if err != nil || loop.Status() != pregel.StatusWaiting || len(p.OpenQuestions(thread)) != 2 {
		t.Errorf("an unknown id: %v, status %d, open %v", err, loop.Status(), p.OpenQuestions(thread))
	}
	answersBoth(t, p, thread)
}

// TestAfterARefusedSuperstep, because of a reducer, nothing is applied and nothing that finished runs again: the thread
// goes on when the reducer is mended.
func TestAfterARefusedSuperstep(t *testing.T) {
	for name, broken := range map[string]func(pregel.Value, []pregel.Value) (pregel.Value, error){
		"it fails":       func(pregel.Value, []pregel.Value) (pregel.Value, error) { return nil, errors.New("it takes nothing") },
		"it panics":      func(pregel.Value, []pregel.Value) (pregel.Value, error) { panic("out of order") },
		"it is nil":      nil,
		"it garbles":     func(pregel.Value, []pregel.Value) (pregel.Value, error) { return pregel.Value(`{"half":`), nil },
		"it has nothing": func(pregel.Value, []pregel.Value) (pregel.Value, error) { return nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			thread := pregel.NewThread()
			p := chosen(t, broken)
			loop, err := p.Start(thread, pregel.Input{Value: pregel.Value(`{}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			loop.Deliver(loop.Ready()[0], pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{
				{Channel: "w", Value: pregel.Value("1")}, {Channel: "v", Value: pregel.Value(`"late"`)}}}})
			var refused *pregel.InvalidUpdateError
			if !errors.As(loop.Err(), &refused) || refused.Channel != "v" || refused.Graph != "g" ||
				!strings.Contains(refused.Error(), "own/v1") || refused.Cause == nil {
				t.Fatalf("the run ends with %v", loop.Err())
			}
			if c := thread.Head.Checkpoint; len(p.StateOf(c)) != 0 || c.Step != 0 {
				t.Errorf("the thread is at step %d with %s", c.Step, valuesText(p.StateOf(c)))
			}
			loop, err = chosen(t, longest).Start(thread, pregel.Input{}, pregel.Options{RecursionLimit: 9}, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			ready := loop.Ready()
			if len(ready) != 1 || ready[0].Node != "b" || valuesText(ready[0].State) != `{v="late" w=1}` {
				t.Errorf("with the reducer mended it goes on with %+v", ready)
			}
		})
	}
}

// TestAReducerCannotReachThePast: what it appends to the current value in place is in no checkpoint before.
func TestAReducerCannotReachThePast(t *testing.T) {
	p := chosen(t, func(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
		if current == nil {
			return append(make(pregel.Value, 0, 99), updates[0]...), nil
		}
		return append(current[:len(current)-1], updates[0][1:]...), nil
	})
	thread := pregel.NewThread()
	loop, err := p.Start(thread, pregel.Input{Value: pregel.Value(`{"v":"one "}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := thread.Head.Checkpoint
	loop.Deliver(loop.Ready()[0], pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "v", Value: pregel.Value(`"two"`)}}}})
	if now := valuesText(p.StateOf(thread.Head.Checkpoint)); now != `{v="one two"}` {
		t.Errorf("the value is %s", now)
	}
	if then := valuesText(p.StateOf(before)); then != `{v="one "}` {
		t.Errorf("the value before has become %s", then)
	}
}

// TestStoredSendsAndJoins: what a stored thread may lack, or have twice, changes neither what a Send is nor when a join is
// complete.
func TestStoredSendsAndJoins(t *testing.T) {
	p := twoAsk(t)
	thread, err := p.DecodeThread(pregel.Value(`{"seq":3,"head":{"checkpoint":{"step":1,"seq":3,
		"versions":{"__pregel_tasks":2,"join:a+b:last":2},"seen":{"last":{}},"has_updated":true,"updated":["__pregel_tasks","join:a+b:last"],
		"sends":[{"send":"a"}],"joins":{"join:a+b:last":["a","a"]}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	loop, err := p.Start(thread, pregel.Input{}, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	ready := loop.Ready()
	if len(ready) != 1 || ready[0].Path != "a:0" || !ready[0].IsSend() || string(ready[0].Arg) != "null" {
		t.Errorf("got the tasks %+v, want the Send's alone", ready)
	}
}
