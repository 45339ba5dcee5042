package pregel_test

import (
	"fmt"
	"strings"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// claimed starts a run of one node on the thread and lets its task claim the key. It returns the run, and the task that is
// handed out after that.
func claimed(t *testing.T, thread *pregel.Thread, key string) (*pregel.Loop, []*pregel.Task) {
	t.Helper()
	p := compiled(t, `{"version":1,"name":"g","nodes":[{"name":"a"}],"edges":[{"from":"__start__","to":"a"}]}`)
	loop, err := p.Start(thread, pregel.Input{Value: pregel.Value(`{}`)}, pregel.Options{RecursionLimit: 3}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	loop.Deliver(loop.Ready()[0], pregel.Outcome{Yielded: true, Claim: key})
	return loop, loop.Ready()
}

// TestAThreadKeepsSoMuch: beyond the bounds a task fails for good, and what was kept stays.
func TestAThreadKeepsSoMuch(t *testing.T) {
	full := pregel.NewThread()
	for i := range pregel.MaxKept {
		if err := full.Keep(fmt.Sprint("k", i), pregel.Value("1")); err != nil {
			t.Fatal(err)
		}
	}
	heavy, kilobytes := pregel.NewThread(), pregel.Value(`"`+strings.Repeat("x", 4000)+`"`)
	for i := range pregel.MaxKeptTotal / len(kilobytes) {
		if err := heavy.Keep(fmt.Sprint("k", i), kilobytes); err != nil {
			t.Fatal(err)
		}
	}
	large := pregel.Value(`"` + strings.Repeat("x", pregel.MaxKeptBytes) + `"`)
	fits := pregel.Value(`"` + strings.Repeat("x", pregel.MaxKeptBytes-len(`k""`)) + `"`)
	for name, failing := range map[string]struct {
		thread *pregel.Thread
		key    string
		kept   pregel.Value
		fails  bool
	}{
		"one key too many":     {full, "new", nil, true},
		"one that is known":    {full, "k7", pregel.Value("2"), false},
		"bytes for one more":   {heavy, "new", nil, true},
		"bytes for a known":    {heavy, "k7", pregel.Value("2"), false},
		"a key that is large":  {pregel.NewThread(), string(large), nil, true},
		"a value that is":      {pregel.NewThread(), "k", large, true},
		"a value that is none": {pregel.NewThread(), "k", pregel.Value("{"), true},
		"a value that fits":    {pregel.NewThread(), "k", fits, false},
	} {
		loop, tasks := claimed(t, failing.thread, failing.key)
		if len(tasks) == 1 {
			o := pregel.Outcome{}
			if len(failing.kept) > 0 {
				o.Kept = map[string]pregel.Value{failing.key: failing.kept}
			}
			loop.Deliver(tasks[0], o)
		}
		failure, failed := loop.Err().(*pregel.NodeError)
		if failed != failing.fails || failed && (failure.Type != pregel.KeyLimitType || !failure.Final || failure.Node != "a") {
			t.Errorf("%s: the run ended with %v", name, loop.Err())
		}
	}
	if v, ok := full.Kept("k7"); !ok || string(v) != "2" {
		t.Errorf("k7 is %s", v)
	}
}

// TestWhatIsKeptIsTheThreads: it outlives storage, copies and runs from earlier checkpoints, whichever state the thread
// ends with.
func TestWhatIsKeptIsTheThreads(t *testing.T) {
	p := compiled(t, storedGraph)
	thread := pregel.NewThread()
	loop, err := p.Start(thread, pregel.Input{Value: pregel.Value(`{"x":0}`)}, pregel.Options{RecursionLimit: 3}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := thread.Head
	further(loop, nil)
	keep := func(thread *pregel.Thread, v string) {
		t.Helper()
		if err := thread.Keep("k", pregel.Value(v)); err != nil {
			t.Fatal(err)
		}
	}
	has := func(what string, thread *pregel.Thread, want string) {
		t.Helper()
		if v, ok := thread.Kept("k"); string(v) != want || ok != (want != "") {
			t.Errorf("%s keeps %q, want %q", what, v, want)
		}
	}
	keep(thread, "1")
	stored, err := p.EncodeThread(thread)
	if err != nil {
		t.Fatal(err)
	}
	read, err := p.DecodeThread(stored)
	if err != nil {
		t.Fatal(err)
	}
	has("a thread read back", read, "1")
	earlier := thread.At(first, pregel.ForReplay)
	keep(earlier, "2")
	has("the thread of which an earlier one went on", thread, "1")
	has("the newer of both", pregel.Newer(thread, earlier), "2")
	earlier = pregel.NewThread()
	earlier.After(thread)
	has("an earlier state of the thread", earlier, "2")
	keep(thread.Copy(), "3")
	has("a thread of which a copy went on", thread, "2")
	keep(thread, "null")
	has("a thread that forgot", thread, "")
}
