package pregel_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

// TestScriptsSuspended runs the scripts, suspending the run and restoring it before and after every outcome: they show
// the same.
func TestScriptsSuspended(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := newSession()
		s.suspended = true
		datadriven.RunTest(t, path, s.directive)
	})
}

// suspend replaces the run by what is left of it after suspending it, and checks that suspending that gives the same.
func (s *session) suspend() error {
	if !s.suspended || s.loop == nil || s.loop.Thread() != s.thread {
		return nil // an edit or a replay went on without the loop
	}
	open := make([]*pregel.Task, len(s.open))
	for i, name := range s.open {
		open[i] = s.tasks[name]
	}
	s.loop.PutBack(open...)
	loop, err := suspended(s.program, s.loop, s.observe)
	if err == nil {
		loop, err = s.thaw(loop)
	}
	if err != nil {
		return err
	}
	s.loop, s.thread, s.open = loop, loop.Thread(), nil
	for i, r := range s.records { // the newest one learns what its tasks do
		if head := s.thread.Head; head != nil && r.Checkpoint.ID == head.Checkpoint.ID {
			s.records[i] = head
		}
	}
	s.takeReady()
	return nil
}

// thaw freezes a loop, and goes on with what it is restored to. What was frozen before is as it was, whatever has become of the loop
// that was restored of it.
func (s *session) thaw(loop *pregel.Loop) (*pregel.Loop, error) {
	if s.whole != nil {
		before, err := s.frozen.Restore(s.frozenBy, nil)
		if err != nil {
			return nil, err
		}
		if whole, err := before.Suspend(); err != nil || !bytes.Equal(whole, s.whole) {
			return nil, fmt.Errorf("what was frozen has changed: %v\n%s\n%s", err, s.whole, whole)
		}
	}
	var err error
	if s.frozen, err = loop.Freeze(); err != nil {
		return nil, err
	}
	if s.whole, err = loop.Suspend(); err != nil {
		return nil, err
	}
	s.frozenBy = s.program
	return s.frozen.Restore(s.program, s.observe)
}

// suspended suspends a loop and restores it, first within the process and then from text.
func suspended(p *pregel.Program, l *pregel.Loop, observe pregel.Observer) (*pregel.Loop, error) {
	whole, err := l.Suspend()
	if err != nil {
		return nil, err
	}
	here, err := pregel.SuspendLoop(l)
	if err != nil {
		return nil, err
	}
	elsewhere, err := pregel.ReadSuspended(here.Bytes())
	if err != nil {
		return nil, err
	}
	frozen, err := l.Freeze()
	if err != nil {
		return nil, err
	}
	for _, s := range []interface {
		Restore(*pregel.Program, pregel.Observer) (*pregel.Loop, error)
	}{here, elsewhere, frozen} {
		again, err := s.Restore(p, nil)
		if err != nil {
			return nil, err
		}
		same, err := again.Suspend()
		if err == nil && !bytes.Equal(whole, same) {
			err = fmt.Errorf("suspended with its long values beside it is another run:\n%s\n%s", whole, same)
		}
		if err != nil {
			return nil, err
		}
	}
	return p.Restore(whole, observe)
}

// TestAThreadWithItsLongValuesBeside comes back as it was, byte for byte, also what encoders like to write in another way.
func TestAThreadWithItsLongValuesBeside(t *testing.T) {
	p := compiled(t, storedGraph)
	for _, list := range []string{`["short"]`, `["` + strings.Repeat("long <&> \u2028 ", 1000) + `"]`} {
		loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"y":"<1>","log":` + list + `}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		further(loop, nil)
		want, err := p.EncodeThread(loop.Thread())
		if err != nil {
			t.Fatal(err)
		}
		beside, err := pregel.SuspendThread(p, loop.Thread())
		if err != nil {
			t.Fatal(err)
		}
		data := beside.Bytes()
		if len(data) < beside.Size() || len(data) > beside.Size()+100 {
			t.Errorf("it has %d bytes, and says %d", len(data), beside.Size())
		}
		read, err := pregel.ReadSuspended(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []pregel.Suspended{beside, read} {
			thread, err := s.Thread(p)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := p.EncodeThread(thread); err != nil || !bytes.Equal(got, want) {
				t.Errorf("it is another thread (%v):\n%.300s\n%.300s", err, got, want)
			}
			_, values, err := p.NowHeld(thread)
			if err != nil || !strings.HasPrefix(values["log"].String(), strings.TrimSuffix(list, "]")) {
				t.Errorf("the list is %.60s, %v", values["log"], err)
			}
			_, had, _ := p.NowHeld(loop.Thread())
			for name, v := range had {
				if values[name].String() != v.String() {
					t.Errorf("%s is %.60s, not %.60s", name, values[name], v)
				}
			}
		}
	}
}

// TestACutOffRunIsNone: of what was written nothing can be missing, and there is no more.
func TestACutOffRunIsNone(t *testing.T) {
	p := compiled(t, storedGraph)
	loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"x":1,"log":["` + strings.Repeat("long ", 1000) + `"]}`)},
		pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	here, err := pregel.SuspendLoop(loop)
	if err != nil {
		t.Fatal(err)
	}
	data := here.Bytes()
	for n := range data {
		if _, err := pregel.ReadSuspended(data[:n]); err == nil {
			t.Fatalf("the first %d of %d bytes are a run", n, len(data))
		}
	}
	if _, err := pregel.ReadSuspended(append(data, 0)); err == nil {
		t.Error("what stands behind it is not seen")
	}
}

// TestLongValuesStayWhereTheyAre: a run that is frozen has neither written nor read its long values, and
// two that go on from there do not see each other's.
func TestLongValuesStayWhereTheyAre(t *testing.T) {
	p := compiled(t, storedGraph)
	long := `["` + strings.Repeat("long ", 1000) + `"]`
	loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"x":1,"log":` + long + `}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	here, err := loop.Freeze()
	if err != nil {
		t.Fatal(err)
	}
	if here.Size() < len(long) {
		t.Errorf("it has %d bytes, its longest value alone %d", here.Size(), len(long))
	}
	original := loop.Ready()[0].State["log"].Value()
	var states []string
	for range 2 {
		again, err := here.Restore(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		task := again.Ready()[0]
		if got := task.State["log"].Value(); string(got) != long || &got[0] != &original[0] {
			t.Fatalf("the list was copied, or is %.60s", got)
		}
		again.Deliver(task, pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "log", Value: pregel.Value(`["more"]`)}}}})
		further(again, nil)
		state, err := again.Suspend()
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, string(state))
	}
	if states[0] != states[1] {
		t.Errorf("two that go on from one place differ:\n%s\n%s", states[0], states[1])
	}
}

// TestAValueMayLookLikeAnything: what stands for a long value in a text while that is written is never taken for a value, nor a value for it.
func TestAValueMayLookLikeAnything(t *testing.T) {
	p := compiled(t, storedGraph)
	long := strings.Repeat("long ", 1000)
	for _, x := range []string{`1`, `"@long 0@"`, `"@long 1@"`, `"@long x@"`, `["@long 0@"]`, `"\"@long 0@\""`, `"@long "`} {
		loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"x":` + x + `,"log":["` + long + `"]}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		text, err := loop.Suspend()
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Restore(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		state, err := p.EncodeThread(again.Thread())
		if err != nil {
			t.Fatal(err)
		}
		thread, err := p.DecodeThread(state)
		if err != nil {
			t.Fatal(err)
		}
		now, values, err := p.NowHeld(thread)
		if err != nil || values["x"].String() != x || values["log"].String() != `["`+long+`"]` {
			t.Errorf("x of %s is %v, and the list %.60s, at %v, %v", x, values["x"], values["log"], now, err)
		}
	}
}

// TestSuspendingChangesNothing: a run that is suspended and restored at quiet moments, also in the middle of a superstep,
// goes on as one that never was: the same events, ids, digests, answers asked for, and thread.
func TestSuspendingChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.Bool().Draw(t, "subgraphs"))
		w.drains, w.claims, w.pays = rapid.Bool().Draw(t, "drains"), rapid.Bool().Draw(t, "claims"), rapid.Bool().Draw(t, "pays")
		addBreakpoints(t, w.spec)
		for _, sub := range w.spec.Subgraphs {
			addBreakpoints(t, sub)
		}
		everywhere := rapid.Bool().Draw(t, "everywhere")
		moments := func() bool { return everywhere || rapid.Bool().Draw(t, "suspend") }
		// Both runs choose alike: by how often they chose.
		whole := &player{world: w, pick: alike(w.salt), crash: never, replies: rapid.Bool().Draw(t, "replies")}
		whole.play(t)
		cut := &player{world: w, pick: alike(w.salt), crash: never, replies: whole.replies, suspend: moments}
		cut.play(t)
		cut.once(t)
		compare(t, "the events", strings.Join(whole.events, "\n"), strings.Join(cut.events, "\n"))
		compare(t, "the thread", whole.state(t, true), cut.state(t, true))
	})
}

// alike chooses by a number and how often it chose before.
func alike(salt uint64) func(n int) int {
	return func(n int) int {
		salt = salt*6364136223846793005 + 1442695040888963407
		return int(salt >> 33 % uint64(n))
	}
}

func addBreakpoints(t *rapid.T, spec *pregel.Spec) {
	for _, n := range spec.Nodes {
		switch {
		case n.Handler:
		case rapid.IntRange(0, 9).Draw(t, "before") == 0:
			spec.InterruptBefore = append(spec.InterruptBefore, n.Name)
		case rapid.IntRange(0, 9).Draw(t, "after") == 0:
			spec.InterruptAfter = append(spec.InterruptAfter, n.Name)
		}
	}
}

// TestASuspendedLoopSurvivesEncoders: bytes that JSON encoders like to write in another way stay as they are.
func TestASuspendedLoopSurvivesEncoders(t *testing.T) {
	p := compiled(t, storedGraph)
	for _, text := range []string{"plain", "<b>&", "\u2028 \u2029", "\\u003c", "\xff<"} {
		thread := pregel.NewThread()
		loop, err := p.Start(thread, pregel.Input{Value: pregel.Value(`{"x":"` + text + `"}`)}, pregel.Options{RecursionLimit: 3}, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		v, err := loop.Suspend()
		if err != nil {
			t.Fatal(err)
		}
		again, err := p.Restore(reencoded(t, v), nil)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		want, got := loop.Ready()[0], again.Ready()[0]
		if want.State["x"].String() != got.State["x"].String() || want.Digest != got.Digest {
			t.Errorf("%q became %s", want.State["x"], got.State["x"].Value())
		}
	}
}

// TestOnlyQuietLoopsAreSuspended: a task that somebody may have started is no part of what another one starts.
func TestOnlyQuietLoopsAreSuspended(t *testing.T) {
	p := compiled(t, storedGraph)
	loop, err := p.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{"x":1}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !loop.Quiet() {
		t.Error("nothing was handed out, and it is not quiet")
	}
	tasks := loop.Ready()
	if _, err := loop.Suspend(); err == nil || loop.Quiet() {
		t.Errorf("it was suspended with a task under way: %v", err)
	}
	loop.PutBack(tasks...)
	loop.PutBack(tasks...) // twice is once
	if _, err := loop.Suspend(); err != nil || !loop.Quiet() {
		t.Errorf("all tasks were put back: %v", err)
	}
	again := loop.Ready()
	if len(again) != 1 || again[0] != tasks[0] {
		t.Fatalf("handed out again: %v", again)
	}
	loop.Deliver(again[0], pregel.Outcome{})
	next := loop.Ready()
	loop.PutBack(next...)
	loop.Deliver(next[0], pregel.Outcome{}) // its outcome came all the same
	for _, t2 := range loop.Ready() {
		if t2 == next[0] {
			t.Error("a task that has ended is handed out again")
		}
	}
}

// reencoded is a value as an encoder writes it that got it as part of something else.
func reencoded(t *testing.T, v pregel.Value) pregel.Value {
	t.Helper()
	text, err := json.Marshal(map[string]pregel.Value{"v": v})
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]pregel.Value
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out["v"]
}
