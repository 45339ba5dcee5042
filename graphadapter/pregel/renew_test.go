package pregel_test

import (
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// TestDropForgetsTheSuperstepUnderWay: writes, questions, answers and ledgers, and it runs again as it did.
func TestDropForgetsTheSuperstepUnderWay(t *testing.T) {
	p, err := pregel.Compile(&pregel.Spec{
		Version: pregel.SpecVersion, Name: "g",
		Channels: []pregel.ChannelSpec{{Name: "log", Kind: pregel.KindReduce, Reducer: "append/v1"}},
		Nodes:    []pregel.NodeSpec{{Name: "a"}, {Name: "b"}},
		Edges:    []pregel.Edge{{From: pregel.Start, To: "a"}, {From: pregel.Start, To: "b"}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	thread := pregel.NewThread()
	p.Drop(thread) // nothing to forget
	thread.Renew()
	run := func(in pregel.Input) *pregel.Loop {
		t.Helper()
		l, err := p.Start(thread, in, pregel.Options{RecursionLimit: 10}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := run(pregel.Input{Value: pregel.Value(`{}`)})
	tasks := l.Ready()
	keys := []string{tasks[0].Key(), tasks[1].Key()}
	l.Deliver(tasks[0], pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "log", Value: pregel.Value(`["a"]`)}}},
		Ledger: pregel.Value(`{"done":1}`)})
	l.Deliver(tasks[1], pregel.Outcome{Questions: []pregel.Question{{ID: "q"}}, Ledger: pregel.Value(`{"asks":1}`)})
	if l.Status() != pregel.StatusWaiting || len(p.Ledgers(thread)) != 2 {
		t.Fatalf("it stands at %v with %v", l.Status(), p.Ledgers(thread))
	}
	if err := p.Answer(thread, &pregel.Resume{ByID: map[string]pregel.Value{"q": pregel.Value(`1`)}}); err != nil {
		t.Fatal(err)
	}
	p.Drop(thread)
	if len(p.Ledgers(thread)) != 0 || len(p.OpenQuestions(thread)) != 0 || len(p.Next(thread.Head)) != 2 {
		t.Errorf("it kept %v, %v, next %v", p.Ledgers(thread), p.OpenQuestions(thread), p.Next(thread.Head))
	}
	again := run(pregel.Input{}).Ready()
	if len(again) != 2 || again[0].Key() != keys[0] || again[1].Key() != keys[1] || again[1].Ledger != nil || again[1].Answers != nil {
		t.Errorf("then it runs %+v, before it ran %v", again, keys)
	}
	thread = restored(t, p, thread)
	seen := map[string]bool{keys[0]: true}
	for range 3 { // renewed, stored and renewed again, its tasks are new each time
		p.Drop(thread)
		thread.Renew()
		l = run(pregel.Input{})
		key := l.Ready()[0].Key()
		if seen[key] {
			t.Errorf("the key %s comes again", key)
		}
		seen[key] = true
		thread = restored(t, p, thread)
	}
}

func restored(t *testing.T, p *pregel.Program, thread *pregel.Thread) *pregel.Thread {
	t.Helper()
	text, err := p.EncodeThread(thread)
	if err != nil {
		t.Fatal(err)
	}
	if thread, err = p.DecodeThread(text); err != nil {
		t.Fatal(err)
	}
	return thread
}
