package pregel_test

import (
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// FuzzRestore: whatever is given as a suspended run, restoring it fails in order or gives a run that goes on, and that can
// be suspended and restored again.
func FuzzRestore(f *testing.F) {
	p := compiled(f, storedGraph)
	for _, v := range suspensions(f, p) {
		f.Add([]byte(v))
	}
	f.Add([]byte(`{"format":1,"thread":{"head":{"checkpoint":{"step":0,"seq":1}}},"stop":9,"planned":1,"runs":[{"at":0,"child":{}}]}`))
	f.Add([]byte(`{"format":1,"thread":{"seq":1},"status":"done","stop":9}`))
	f.Add([]byte(`"e30="`))
	f.Fuzz(func(t *testing.T, suspended []byte) {
		loop, err := p.Restore(suspended, nil)
		if err != nil {
			return
		}
		v, err := loop.Suspend()
		if err != nil {
			t.Fatalf("restored, it cannot be suspended: %v", err)
		}
		again, err := p.Restore(v, nil)
		if err != nil {
			t.Fatalf("suspended again it cannot be restored: %v\n%s", err, v)
		}
		if once, err := again.Suspend(); err != nil || string(once) != string(v) {
			t.Fatalf("suspended once more it differs (%v):\n%s\n%s", err, v, once)
		}
		if status := loop.Status(); status == pregel.StatusRunning && len(loop.Ready()) == 0 {
			t.Fatal("it runs, and has nothing to run")
		}
		_ = again.Resume(&pregel.Resume{Scalar: pregel.Null})
		further(again, nil)
		p.OpenQuestions(again.Thread())
		if again.Thread().Head != nil {
			_, _ = p.Snapshot(again.Thread(), again.Thread().Head, true)
		}
		again.Output()
	})
}

// suspensions are suspended runs along a thread's life.
func suspensions(t testing.TB, p *pregel.Program) []pregel.Value {
	t.Helper()
	thread := pregel.NewThread()
	var out []pregel.Value
	for _, in := range []pregel.Input{
		{Value: pregel.Value(`{"x":0,"u":1,"e":2,"y":3,"t":[4],"log":["in"]}`)},
		{Control: &pregel.Command{Goto: []pregel.Target{{Node: "b"}, {Node: "s", Send: true, Arg: pregel.Value(`{"x":1}`)}}}},
		{},
	} {
		loop, err := p.Start(thread, in, pregel.Options{RecursionLimit: 3}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		keep := func() {
			v, err := loop.Suspend()
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, v)
		}
		further(loop, keep)
		keep()
	}
	return out
}

// BenchmarkSuspend is the price of one suspension, and of one restoration: a graph of one node at its superstep.
func BenchmarkSuspend(b *testing.B) {
	p, err := pregel.Compile(&pregel.Spec{Version: pregel.SpecVersion, Name: "g",
		Channels: []pregel.ChannelSpec{{Name: "n", Kind: pregel.KindLast}}, Nodes: []pregel.NodeSpec{{Name: "a"}},
		Edges: []pregel.Edge{{From: pregel.Start, To: "a"}, {From: "a", To: "a"}}}, nil)
	if err != nil {
		b.Fatal(err)
	}
	loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"n":1}`)}, pregel.Options{RecursionLimit: 100}, false, nil)
	if err != nil {
		b.Fatal(err)
	}
	loop.Deliver(loop.Ready()[0], pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "n", Value: pregel.Value("2")}}}})
	v, err := loop.Suspend()
	if err != nil {
		b.Fatal(err)
	}
	b.Run("suspend", func(b *testing.B) {
		for b.Loop() {
			if _, err := loop.Suspend(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(v)), "bytes")
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.Restore(v, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
