package pregel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// through returns a value as it comes back from a process that it was sent to as JSON.
func through[T any](t *testing.T, v T) T {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var back T
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	return back
}

// TestNoValueIsNullOnEveryWay: an outcome counts the same whether it was delivered in the process that made it or came
// as JSON, where no value cannot be told from null.
func TestNoValueIsNullOnEveryWay(t *testing.T) {
	spec := small()
	spec.Channels = append(spec.Channels, pregel.ChannelSpec{Name: "all", Kind: pregel.KindTopic, Accumulate: true})
	p, err := pregel.Compile(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	outcome := pregel.Outcome{Command: pregel.Command{
		Update: []pregel.Write{{Channel: "v"}, {Channel: "all"}},
		Goto:   []pregel.Target{{Node: "b", Send: true}},
	}}
	states := map[string]string{}
	for name, o := range map[string]pregel.Outcome{"direct": outcome, "by JSON": through(t, outcome)} {
		loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"v":1}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		loop.Deliver(loop.Ready()[0], o)
		sent := loop.Ready()
		if len(sent) != 1 || !sent[0].IsSend() || !pregel.IsNull(sent[0].Arg) {
			t.Errorf("%s: a Send of nothing made the tasks %+v", name, sent)
		}
		stored, err := p.EncodeThread(loop.Thread())
		if err != nil {
			t.Fatal(err)
		}
		states[name] = string(stored)
	}
	if states["direct"] != states["by JSON"] {
		t.Errorf("the thread differs:\n%s\n%s", states["direct"], states["by JSON"])
	}
	if !strings.Contains(states["direct"], `"all":[null]`) || !strings.Contains(states["direct"], `"v":null`) {
		t.Errorf("no value was not written as null: %s", states["direct"])
	}
}

// TestStoredThreadsAreReadByOtherGraphs: a thread is stored by names. A graph that lost a node and a channel reads the
// rest.
func TestStoredThreadsAreReadByOtherGraphs(t *testing.T) {
	before, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g",
		Channels: []pregel.ChannelSpec{{Name: "kept", Kind: pregel.KindLast}, {Name: "gone", Kind: pregel.KindLast}},
		Nodes:    []pregel.NodeSpec{{Name: "a"}, {Name: "b"}, {Name: "late"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "a"}, {From: pregel.Start, To: "b"}, {From: "a", To: "late"}},
		Joins:    []pregel.Join{{From: []string{"a", "b"}, To: "late"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	thread := pregel.NewThread()
	loop, err := before.Start(thread, pregel.Input{Value: pregel.Value(`{"kept":1,"gone":2}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range loop.Ready() {
		o := pregel.Outcome{}
		if task.Node == "b" {
			o.Questions = []pregel.Question{{ID: "q", Value: pregel.Null}}
		}
		loop.Deliver(task, o)
	}
	stored, err := before.EncodeThread(thread)
	if err != nil {
		t.Fatal(err)
	}
	after, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g",
		Channels: []pregel.ChannelSpec{{Name: "fresh", Kind: pregel.KindLast}, {Name: "kept", Kind: pregel.KindLast}},
		Nodes:    []pregel.NodeSpec{{Name: "late"}, {Name: "b"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "b"}, {From: "b", To: "late"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	read, err := after.DecodeThread(stored)
	if err != nil {
		t.Fatal(err)
	}
	loop, err = after.Start(read, pregel.Input{Resume: &pregel.Resume{Scalar: pregel.Value("true")}}, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	tasks := loop.Ready()
	if len(tasks) != 1 || tasks[0].Node != "b" || len(tasks[0].Answers) != 1 || valuesText(tasks[0].State) != "{kept=1}" {
		t.Fatalf("the other graph goes on with %+v", tasks)
	}
	loop.Deliver(tasks[0], pregel.Outcome{})
	if tasks = loop.Ready(); len(tasks) != 1 || tasks[0].Node != "late" {
		t.Errorf("after b comes %+v, want late", tasks)
	}
}
