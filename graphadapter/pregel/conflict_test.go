package pregel_test

import (
	"errors"
	"slices"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// conflicting is a graph of a node that asks, beside two that write the same channel.
func conflicting(t *testing.T, x pregel.ChannelSpec, entries ...string) *pregel.Program {
	t.Helper()
	spec := &pregel.Spec{
		Version: pregel.SpecVersion, Name: "g", Channels: []pregel.ChannelSpec{x},
		Nodes: []pregel.NodeSpec{{Name: "asks"}, {Name: "b"}, {Name: "c"}},
	}
	for _, to := range entries {
		spec.Edges = append(spec.Edges, pregel.Edge{From: pregel.Start, To: to})
	}
	p, err := pregel.Compile(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// conflict runs until the question is open, and returns the nodes that ran.
func conflict(t *testing.T, p *pregel.Program, thread *pregel.Thread, in pregel.Input) (*pregel.Loop, []string) {
	t.Helper()
	loop, err := p.Start(thread, in, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	for ready := loop.Ready(); len(ready) > 0; ready = append(ready[1:], loop.Ready()...) {
		task := ready[0]
		ran = append(ran, task.Node)
		o := pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "x", Value: pregel.Value(`1`)}}}}
		if task.Node == "asks" {
			o = pregel.Outcome{Questions: []pregel.Question{{ID: "q", Value: pregel.Null}}}
		}
		loop.Deliver(task, o)
	}
	return loop, ran
}

// last is a channel that takes one value a superstep.
var last = pregel.ChannelSpec{Name: "x", Kind: pregel.KindLast}

// TestConflictsBesideAQuestion fail a run at once.
func TestConflictsBesideAQuestion(t *testing.T) {
	p := conflicting(t, last, "asks", "b", "c")
	loop, _ := conflict(t, p, pregel.NewThread(), pregel.Input{Value: pregel.Value(`{}`)})
	var conflicting *pregel.InvalidUpdateError
	if loop.Status() != pregel.StatusFailed || !errors.As(loop.Err(), &conflicting) {
		t.Errorf("%v, error %v", loop.Status(), loop.Err())
	}
}

// TestCommandsOnOneCheckpoint count as one superstep's writes: the Sends of a second command join those of the first.
func TestCommandsOnOneCheckpoint(t *testing.T) {
	send := func(node string) pregel.Input {
		return pregel.Input{Control: &pregel.Command{Goto: []pregel.Target{{Node: node, Send: true, Arg: pregel.Null}}}}
	}
	p, thread := conflicting(t, last, "asks"), pregel.NewThread()
	conflict(t, p, thread, pregel.Input{Value: pregel.Value(`{}`)})
	conflict(t, p, thread, send("asks"))
	if _, ran := conflict(t, p, thread, send("asks")); !slices.Equal(ran, []string{"asks", "asks", "asks"}) {
		t.Errorf("%v ran", ran)
	}
}

// TestASendIsNoTrigger: an update that names no node is one of the node to which a trigger led last. A Send leads to none.
func TestASendIsNoTrigger(t *testing.T) {
	p, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g",
		Nodes: []pregel.NodeSpec{{Name: "sends"}, {Name: "other"}, {Name: "sent"}, {Name: "behind"}},
		Edges: []pregel.Edge{{From: pregel.Start, To: "sends"}, {From: "sent", To: "behind"}},
		Joins: []pregel.Join{{From: []string{"sends", "other"}, To: "sent"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	thread := pregel.NewThread()
	loop, err := p.Start(thread, pregel.Input{Value: pregel.Value(`{}`)},
		pregel.Options{RecursionLimit: 9, InterruptBefore: []string{"behind"}}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for ready := loop.Ready(); len(ready) > 0; ready = loop.Ready() {
		var o pregel.Outcome
		if ready[0].Node == "sends" {
			o.Goto = []pregel.Target{{Node: "sent", Send: true, Arg: pregel.Null}}
		}
		loop.Deliver(ready[0], o)
	}
	e, err := p.Edit(thread, nil, []pregel.Update{{}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := e.Apply(nil)
	if err != nil {
		t.Fatal(err)
	}
	if next := p.Next(made[len(made)-1]); len(next) > 0 {
		t.Errorf("it goes on to %v, want nothing", next)
	}
}

// TestCommandsOfAnotherGraph: commands that wait on a checkpoint conflict once another version of the graph has taken their
// channel's reducer away. They count one after the other then, and do not stop the thread.
func TestCommandsOfAnotherGraph(t *testing.T) {
	before := conflicting(t, pregel.ChannelSpec{Name: "x", Kind: pregel.KindReduce, Reducer: "sum/v1"}, "asks")
	now, thread := conflicting(t, last, "asks"), pregel.NewThread()
	conflict(t, before, thread, pregel.Input{Value: pregel.Value(`{}`)})
	for _, v := range []string{`1`, `2`} {
		conflict(t, before, thread, pregel.Input{Control: &pregel.Command{Update: []pregel.Write{{Channel: "x", Value: pregel.Value(v)}}}})
	}
	stored, err := before.EncodeThread(thread)
	if err != nil {
		t.Fatal(err)
	}
	if thread, err = now.DecodeThread(stored); err != nil {
		t.Fatal(err)
	}
	loop, _ := conflict(t, now, thread, pregel.Input{})
	shown, err := now.Snapshot(loop.Thread(), loop.Thread().Head, true)
	if err != nil || loop.Status() != pregel.StatusWaiting || string(shown.Values["x"]) != `2` {
		t.Errorf("%v, error %v, shown %+v, error %v", loop.Status(), loop.Err(), shown, err)
	}
}
