package pregel_test

import (
	"encoding/json"
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// storedGraph is the graph that fuzzed threads and inputs belong to: every kind of channel, a join, a deferred node, a
// subgraph of each memory.
const storedGraph = `{"version":1,"name":"g","channels":[
 {"name":"x","kind":"last"},{"name":"log","kind":"reduce","reducer":"append/v1"},{"name":"t","kind":"topic"},
 {"name":"u","kind":"untracked"},{"name":"e","kind":"ephemeral"},{"name":"y","kind":"any"}],
 "nodes":[{"name":"a","error_handler":"h"},{"name":"h","handler":true},{"name":"b","reads":["x"]},{"name":"d","defer":true},{"name":"s","subgraph":"thread"},
  {"name":"r","subgraph":"run"},{"name":"n","subgraph":"none"}],
 "edges":[{"from":"__start__","to":"a"},{"from":"a","to":"s"},{"from":"a","to":"r"},{"from":"a","to":"n"},{"from":"a","to":"d"}],
 "joins":[{"from":["a","b"],"to":"d"}],
 "subgraphs":{
  "thread":{"version":1,"name":"thread","memory":"thread","channels":[{"name":"x","kind":"last"}],"nodes":[{"name":"i"}],"edges":[{"from":"__start__","to":"i"}]},
  "run":{"version":1,"name":"run","channels":[{"name":"x","kind":"last"}],"nodes":[{"name":"i"}],"edges":[{"from":"__start__","to":"i"}]},
  "none":{"version":1,"name":"none","memory":"none","channels":[{"name":"x","kind":"last"}],"nodes":[{"name":"i"}],"edges":[{"from":"__start__","to":"i"}]}}}`

func compiled(t testing.TB, text string) *pregel.Program {
	t.Helper()
	var spec pregel.Spec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	p, err := pregel.Compile(&spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// advance continues a thread for a few outcomes: no stored state may make the engine panic.
func advance(p *pregel.Program, thread *pregel.Thread, in pregel.Input) *pregel.Loop {
	loop, err := p.Start(thread, in, pregel.Options{RecursionLimit: 3}, false, nil)
	if err != nil {
		return nil
	}
	further(loop, nil)
	return loop
}

// further delivers a few outcomes; before each, while the loop is quiet, it calls quiet.
func further(loop *pregel.Loop, quiet func()) {
	for range 20 {
		tasks := loop.Ready()
		if len(tasks) == 0 {
			break
		}
		for i, t := range tasks {
			if quiet != nil {
				loop.PutBack(tasks[i:]...)
				quiet()
			}
			o := pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "x", Value: pregel.Value("1")}}}}
			if t.Step%4 == 3 && t.Failure == nil {
				o = pregel.Outcome{Error: &pregel.NodeError{Type: "Boom", Message: "no"}}
			}
			if i%3 == 1 && t.Kept == nil {
				o = pregel.Outcome{Yielded: true, Claim: "k", Ledger: pregel.Null}
			}
			if i%3 == 2 {
				o = pregel.Outcome{Questions: []pregel.Question{{ID: "q" + t.Key(), Value: pregel.Null}}}
			}
			loop.Deliver(t, o)
		}
	}
}

// stages are a thread's stored states along a run, for fuzzing to begin with.
func stages(t testing.TB, p *pregel.Program) []pregel.Value {
	t.Helper()
	thread := pregel.NewThread()
	var out []pregel.Value
	for _, in := range []pregel.Input{
		{Value: pregel.Value(`{"x":0,"u":1,"e":2,"y":3,"t":[4],"log":["in"]}`)},
		{Control: &pregel.Command{Goto: []pregel.Target{{Node: "b"}, {Node: "s", Send: true, Arg: pregel.Value(`{"x":1}`)}}}},
		{},
	} {
		advance(p, thread, in)
		stored, err := p.EncodeThread(thread)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, stored)
	}
	return out
}

// FuzzDecodeThread: whatever is stored, reading it, showing it and going on from it fails in order or works; what was
// read is stored as it was read.
func FuzzDecodeThread(f *testing.F) {
	p := compiled(f, storedGraph)
	for _, stored := range stages(f, p) {
		f.Add([]byte(stored))
	}
	f.Add([]byte(`{"head":{"checkpoint":{"step":3,"seq":1,"versions":{"join:a+b:d":2},"joins":{"join:a+b:d":["a","a","b"]}}},"seq":1}`))
	f.Add([]byte(`{"head":{"checkpoint":{"step":0,"seq":1},"tasks":{"a":{"node":"a","handled":true,"error":{}},"a:handler":{"node":"b"}}}}`))
	f.Add([]byte(`{"head":{"checkpoint":{"step":0,"seq":1},"tasks":{"a":null}},"memory":{"s":null}}`))
	f.Fuzz(func(t *testing.T, stored []byte) {
		thread, err := p.DecodeThread(stored)
		if err != nil {
			return
		}
		once, err := p.EncodeThread(thread)
		if err != nil {
			t.Skip("it holds values that are no JSON")
		}
		again, err := p.DecodeThread(once)
		if err != nil {
			t.Fatalf("what was stored cannot be read: %v", err)
		}
		if twice, err := p.EncodeThread(again); err != nil || string(twice) != string(once) {
			t.Fatalf("stored again it differs (%v):\n%s\n%s", err, once, twice)
		}
		for _, newest := range []bool{true, false} {
			_, _ = p.Snapshot(thread, thread.Head, newest)
		}
		p.OpenQuestions(thread)
		p.Ledgers(thread)
		advance(p, thread, pregel.Input{})
		advance(p, again, pregel.Input{Resume: &pregel.Resume{Scalar: pregel.Value("1")}})
	})
}

// FuzzCompile: whatever a Spec says, compiling it fails in order or gives a program that runs.
func FuzzCompile(f *testing.F) {
	f.Add(storedGraph)
	f.Add(strings.ReplaceAll(storedGraph, `"a"`, `"__start__"`))
	f.Add(`{"version":1,"name":"g","edges":[{"from":"__start__","to":"__end__"}],"subgraphs":{"x":null}}`)
	f.Add(`{"version":1,"name":"g","nodes":[{"name":"a","subgraph":"x"}],"edges":[{"from":"__start__","to":"a"}],"subgraphs":{"x":null}}`)
	f.Add(`{"version":1,"name":"g","channels":[{"name":"c","kind":"reduce","reducer":"sum/v1","default":"no"}],"edges":[{"from":"__start__","to":"__end__"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var spec pregel.Spec
		if json.Unmarshal([]byte(text), &spec) != nil {
			return
		}
		p, err := pregel.Compile(&spec, nil)
		if err != nil {
			return
		}
		thread := pregel.NewThread()
		if loop := advance(p, thread, pregel.Input{Value: pregel.Value("{}")}); loop == nil {
			t.Fatal("a program takes no empty input")
		}
		if _, err := p.EncodeThread(thread); err != nil {
			t.Fatalf("its thread cannot be stored: %v", err)
		}
	})
}

// FuzzInput: whatever the input, a run takes it or refuses it, and a refused one leaves the thread as it was.
func FuzzInput(f *testing.F) {
	p := compiled(f, storedGraph)
	for _, input := range []string{`{}`, `{"x":1,"log":[1]}`, `{"log":1}`, `null`, `[]`, `"x"`, `{"x":{"__overwrite__":1}}`,
		`{"log":{"__overwrite__":[2]}}`, `{"__command__":{"update":[{"channel":"x","value":2}]}}`, `{"__command__":1}`, `{"x":`} {
		f.Add([]byte(input))
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		thread := pregel.NewThread()
		if advance(p, thread, pregel.Input{Value: pregel.Value(`{"x":0}`)}) == nil {
			t.Fatal("an object is refused")
		}
		before, err := p.EncodeThread(thread)
		if err != nil {
			t.Fatal(err)
		}
		loop, err := p.Start(thread, pregel.Input{Value: input}, pregel.Options{RecursionLimit: 3}, false, nil)
		after, encodeErr := p.EncodeThread(thread)
		if encodeErr != nil {
			t.Fatalf("the thread cannot be stored: %v", encodeErr)
		}
		if err != nil {
			if string(before) != string(after) {
				t.Fatalf("a refused input (%v) changed the thread:\n%s\n%s", err, before, after)
			}
			return
		}
		if !json.Valid(input) {
			t.Fatal("it took what is not JSON")
		}
		loop.Ready()
	})
}
