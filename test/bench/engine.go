package main

import (
	"errors"
	"fmt"

	"superstep.dev/graphadapter/pregel"
)

// The engine's programs are plain data: no function runs, only the loop itself.

// loopProgram is one node that triggers itself, over three channels of which it writes two.
func loopProgram() (*pregel.Program, error) {
	return pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "loop",
		Channels: []pregel.ChannelSpec{
			{Name: "turn", Kind: pregel.KindLast},
			{Name: "total", Kind: pregel.KindReduce, Reducer: "sum/v1"},
			{Name: "note", Kind: pregel.KindLast},
		},
		Nodes: []pregel.NodeSpec{{Name: "again"}},
		Edges: []pregel.Edge{{From: pregel.Start, To: "again"}, {From: "again", To: "again"}},
	}, nil)
}

// runLoop executes that many supersteps. The run then fails for its recursion limit, which is how a loop without an
// exit ends.
func runLoop(p *pregel.Program, steps int) error {
	input := pregel.Input{Value: pregel.Value(`{"note":"a few words that every node reads"}`)}
	loop, err := p.Start(pregel.NewThread(), input, pregel.Options{RecursionLimit: steps}, false, nil)
	if err != nil {
		return err
	}
	outcome := pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{
		{Channel: "turn", Value: pregel.Value("7")}, {Channel: "total", Value: pregel.Value("1")},
	}}}
	done := 0
	for ready := loop.Ready(); len(ready) > 0; ready = loop.Ready() {
		for _, task := range ready {
			loop.Deliver(task, outcome)
			done++
		}
	}
	var limit *pregel.RecursionError
	if done != steps || !errors.As(loop.Err(), &limit) {
		return fmt.Errorf("the engine ran %d supersteps of %d: %w", done, steps, loop.Err())
	}
	return nil
}

// sendsProgram is a node that sends and the one it sends to, whose results are appended to a list.
func sendsProgram() (*pregel.Program, error) {
	return pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "sends",
		Channels: []pregel.ChannelSpec{
			{Name: "topic", Kind: pregel.KindLast},
			{Name: "results", Kind: pregel.KindReduce, Reducer: "append/v1"},
		},
		Nodes: []pregel.NodeSpec{{Name: "fan"}, {Name: "work"}},
		Edges: []pregel.Edge{{From: pregel.Start, To: "fan"}},
	}, nil)
}

// runSends executes one superstep of that many Sends, from the node that makes them to the list of their results.
func runSends(p *pregel.Program, sends []pregel.Target) error {
	input := pregel.Input{Value: pregel.Value(`{"topic":"a few words"}`)}
	loop, err := p.Start(pregel.NewThread(), input, pregel.Options{RecursionLimit: 3}, false, nil)
	if err != nil {
		return err
	}
	for _, task := range loop.Ready() {
		loop.Deliver(task, pregel.Outcome{Command: pregel.Command{Goto: sends}})
	}
	result := pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{
		{Channel: "results", Value: pregel.Value(`["done"]`)},
	}}}
	done := 0
	for _, task := range loop.Ready() {
		loop.Deliver(task, result)
		done++
	}
	if done != len(sends) || loop.Status() != pregel.StatusDone {
		return fmt.Errorf("the engine ran %d Sends of %d: %w", done, len(sends), loop.Err())
	}
	return nil
}

// makeSends returns n Sends with an argument each.
func makeSends(n int) []pregel.Target {
	sends := make([]pregel.Target, n)
	for i := range sends {
		sends[i] = pregel.Target{Node: "work", Send: true, Arg: pregel.Value(fmt.Sprintf(`{"item":%d}`, i))}
	}
	return sends
}
