package pregel_test

import (
	"errors"
	"slices"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// conflicting is a graph of a node that asks, beside two that write the same channel, by the rules of a version.
func conflicting(t *testing.T, version int, entries ...string) *pregel.Program {
	t.Helper()
	spec := &pregel.Spec{
		Version: version, Name: "g", Channels: []pregel.ChannelSpec{{Name: "x", Kind: pregel.KindLast}},
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

// TestConflictsBesideAQuestion fail a run at once, but not one that began by the rules of version 1.
func TestConflictsBesideAQuestion(t *testing.T) {
	for version, status := range map[int]pregel.Status{1: pregel.StatusWaiting, pregel.SpecVersion: pregel.StatusFailed} {
		p := conflicting(t, version, "asks", "b", "c")
		loop, _ := conflict(t, p, pregel.NewThread(), pregel.Input{Value: pregel.Value(`{}`)})
		var conflicting *pregel.InvalidUpdateError
		if loop.Status() != status || errors.As(loop.Err(), &conflicting) != (status == pregel.StatusFailed) {
			t.Errorf("version %d: %v, error %v", version, loop.Status(), loop.Err())
		}
	}
}

// TestCommandsOnOneCheckpoint count as one superstep's writes, but not for a run that began by the rules of version 1: the
// Sends of a second command replace those of the first there.
func TestCommandsOnOneCheckpoint(t *testing.T) {
	send := func(node string) pregel.Input {
		return pregel.Input{Control: &pregel.Command{Goto: []pregel.Target{{Node: node, Send: true, Arg: pregel.Null}}}}
	}
	for version, want := range map[int][]string{1: {"asks", "asks"}, pregel.SpecVersion: {"asks", "asks", "asks"}} {
		p, thread := conflicting(t, version, "asks"), pregel.NewThread()
		conflict(t, p, thread, pregel.Input{Value: pregel.Value(`{}`)})
		conflict(t, p, thread, send("asks"))
		if _, ran := conflict(t, p, thread, send("asks")); !slices.Equal(ran, want) {
			t.Errorf("version %d ran %v, want %v", version, ran, want)
		}
	}
}

// TestWhoRanLast: an update that names no node is one of the node to which a trigger led last. By the rules of version 1 a
// Send counted as one.
func TestWhoRanLast(t *testing.T) {
	for version, want := range map[int][]string{1: {"behind"}, pregel.SpecVersion: nil} {
		p, err := pregel.Compile(&pregel.Spec{
			Version: version, Name: "g", Nodes: []pregel.NodeSpec{{Name: "sends"}, {Name: "other"}, {Name: "sent"}, {Name: "behind"}},
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
		if next := p.Next(made[len(made)-1]); !slices.Equal(next, want) {
			t.Errorf("version %d goes on to %v, want %v", version, next, want)
		}
	}
}

// TestAThreadOfOldRules goes on by the new ones: commands that conflict, and were taken, do not stop it.
func TestAThreadOfOldRules(t *testing.T) {
	old, now, thread := conflicting(t, 1, "asks"), conflicting(t, pregel.SpecVersion, "asks"), pregel.NewThread()
	conflict(t, old, thread, pregel.Input{Value: pregel.Value(`{}`)})
	for _, v := range []string{`1`, `2`} {
		conflict(t, old, thread, pregel.Input{Control: &pregel.Command{Update: []pregel.Write{{Channel: "x", Value: pregel.Value(v)}}}})
	}
	loop, _ := conflict(t, now, thread, pregel.Input{})
	shown, err := now.Snapshot(loop.Thread(), loop.Thread().Head, true)
	if err != nil || loop.Status() != pregel.StatusWaiting || string(shown.Values["x"]) != `2` {
		t.Errorf("%v, error %v, shown %+v, error %v", loop.Status(), loop.Err(), shown, err)
	}
}
