package pregel_test

import (
	"fmt"

	"superstep.dev/graphadapter/pregel"
)

// A run is suspended between two tasks and goes on elsewhere: no event comes twice, and no task is handed out twice.
func ExampleLoop_Suspend() {
	program, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "greeting",
		Channels: []pregel.ChannelSpec{{Name: "words", Kind: pregel.KindReduce, Reducer: "append/v1"}},
		Nodes:    []pregel.NodeSpec{{Name: "hello"}, {Name: "world"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "hello"}, {From: pregel.Start, To: "world"}},
	}, nil)
	if err != nil {
		panic(err)
	}
	loop, err := program.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{}`)}, pregel.Options{RecursionLimit: 5}, false, nil)
	if err != nil {
		panic(err)
	}
	said := func(word string) pregel.Outcome {
		return pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "words", Value: pregel.Value(`["` + word + `"]`)}}}}
	}
	tasks := loop.Ready()
	loop.Deliver(tasks[0], said("hello"))
	loop.PutBack(tasks[1]) // nobody has started it
	suspended, err := loop.Suspend()
	if err != nil {
		panic(err)
	}

	// In another process:
	loop, err = program.Restore(suspended, nil)
	if err != nil {
		panic(err)
	}
	for _, task := range loop.Ready() {
		fmt.Println("still to run:", task.Node)
		loop.Deliver(task, said("world"))
	}
	fmt.Println(loop.Status() == pregel.StatusDone, string(loop.Output()["words"]))
	// Output:
	// still to run: world
	// true ["hello","world"]
}

// Of two tasks that claim one key, one goes on at once. The other is handed out when that has ended, and sees what it left.
func ExampleOutcome_claim() {
	program, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "refunds", Nodes: []pregel.NodeSpec{{Name: "agent"}, {Name: "retry"}},
		Edges: []pregel.Edge{{From: pregel.Start, To: "agent"}, {From: pregel.Start, To: "retry"}},
	}, nil)
	if err != nil {
		panic(err)
	}
	loop, err := program.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{}`)}, pregel.Options{RecursionLimit: 5}, false, nil)
	if err != nil {
		panic(err)
	}
	for _, task := range loop.Ready() {
		loop.Deliver(task, pregel.Outcome{Yielded: true, Claim: "refund:o-7"})
	}
	for tasks := loop.Ready(); len(tasks) > 0; tasks = loop.Ready() {
		task := tasks[0]
		fmt.Printf("%s finds %s\n", task.Node, task.Kept["refund:o-7"])
		loop.Deliver(task, pregel.Outcome{Kept: map[string]pregel.Value{"refund:o-7": pregel.Value(`"receipt 1"`)}})
	}
	// Output:
	// agent finds null
	// retry finds "receipt 1"
}
