package pregel_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

// player plays a world to its end: it answers every question, goes on after every failure, and keeps what it saw.
type player struct {
	world   world
	program *pregel.Program
	thread  *pregel.Thread
	events  []string
	ran     map[string]int // outcomes by task
	done    map[string]int // those with which it finished
	kept    map[string]int // how often something was kept under a key
	paid    map[string]int // how often a task did something outside that its ledger did not tell of
	last    pregel.Status
	records []recordSeen // the root's checkpoints
	replays bool         // the thread's head was chosen
	// limited says that a subgraph ran into its limit, which counts anew whenever a run goes on.
	limited bool

	// pick chooses which of n open tasks ends next.
	pick func(n int) int
	// stored stores the thread and reads it back before every run.
	stored bool
	// suspend decides whether the run is suspended and restored now.
	suspend func() bool
	// replies answers questions while siblings of the task that asked run.
	replies bool
	// crash decides whether the process is lost now, with the outcomes of the tasks that have not ended.
	crash func() bool
}

// recordSeen is a checkpoint, and what a person would see of it.
type recordSeen struct {
	record *pregel.Record
	text   string
}

// The bounds of a play: random graphs loop.
const (
	maxRuns  = 8
	maxSteps = 9
)

func (p *player) play(t *rapid.T) {
	var err error
	if p.program, err = pregel.Compile(p.world.spec, nil); err != nil {
		t.Fatal(err)
	}
	p.thread, p.ran = pregel.NewThread(), map[string]int{}
	p.done, p.kept, p.paid = map[string]int{}, map[string]int{}, map[string]int{}
	p.goOn(t, pregel.Input{Value: pregel.Value(`{"log":["in"]}`)})
}

// goOn runs the thread to its end.
func (p *player) goOn(t *rapid.T, in pregel.Input) {
	for range maxRuns {
		if p.stored {
			p.storeAndRead(t)
		}
		crashed, err := p.run(in)
		p.replays = false
		switch {
		case err != nil:
			t.Fatal(err)
		case crashed:
			p.storeAndRead(t)
			in = pregel.Input{}
		case p.last == pregel.StatusWaiting:
			in = pregel.Input{Resume: p.answers()}
		case p.last == pregel.StatusFailed, p.last == pregel.StatusDrained, p.last == pregel.StatusBreakpoint:
			in = pregel.Input{}
		default:
			return
		}
	}
}

// run is one run of the thread; it reports whether the process was lost.
func (p *player) run(in pregel.Input) (crashed bool, err error) {
	loop, err := p.program.Start(p.thread, in, pregel.Options{RecursionLimit: maxSteps}, p.replays, p.observe)
	if err != nil {
		return false, err
	}
	open := loop.Ready()
	for len(open) > 0 {
		if p.crash() {
			return true, nil
		}
		if p.suspend != nil && p.suspend() {
			loop.PutBack(open...)
			if loop, err = suspended(p.program, loop, p.observe); err != nil {
				return false, err
			}
			p.thread, open = loop.Thread(), loop.Ready()
		}
		if p.replies && len(p.events)%3 == 0 {
			if err := loop.Resume(p.answers()); err != nil {
				return false, err
			}
			open = append(open, loop.Ready()...)
		}
		at := p.pick(len(open))
		task := open[at]
		open = slices.Delete(open, at, at+1)
		key := task.Key()
		outcome := p.world.outcome(task, p.ran[key])
		p.ran[key]++
		if string(outcome.Ledger) == string(paid) && string(task.Ledger) != string(paid) {
			p.paid[key]++
		}
		for k := range outcome.Kept {
			p.kept[k]++
		}
		if outcome.Error == nil && len(outcome.Questions) == 0 && !outcome.Again && !outcome.Yielded {
			p.done[key]++
		}
		loop.Deliver(task, outcome)
		open = append(open, loop.Ready()...)
	}
	p.last = loop.Status()
	p.events = append(p.events, fmt.Sprintf("end of run: %d %v", loop.Status(), loop.Err()))
	return false, nil
}

// once checks that nothing was kept twice under a key: who owned it later saw it. And that no task did twice what it did
// outside: its ledger told.
func (p *player) once(t *rapid.T) {
	for key, n := range p.paid {
		if n > 1 {
			t.Fatalf("task %s paid %d times", key, n)
		}
	}
	for key, n := range p.kept {
		if n > 1 {
			t.Fatalf("something was kept %d times under %s", n, key)
		}
	}
}

// answers answers every open question.
func (p *player) answers() *pregel.Resume {
	r := &pregel.Resume{ByID: map[string]pregel.Value{}}
	for _, q := range p.program.OpenQuestions(p.thread) {
		r.ByID[q.ID] = pregel.Value(`"yes"`)
	}
	return r
}

func (p *player) storeAndRead(t *rapid.T) {
	stored, err := p.program.EncodeThread(p.thread)
	if err == nil {
		p.thread, err = p.program.DecodeThread(stored)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (p *player) observe(e pregel.Event) {
	p.limited = p.limited || e.Error != nil && e.Error.Type == "GraphRecursionError"
	text := fmt.Sprintf("%s %d %s", e.Namespace, e.Step, e.Kind)
	if e.Task != nil {
		text += " " + e.Task.Path
	}
	if e.Kind == pregel.EventCheckpoint && e.Namespace == "" {
		seen := string(e.Checkpoint.Checkpoint.Source) + valuesText(p.program.StateOf(e.Checkpoint.Checkpoint)) + strings.Join(p.program.Next(e.Checkpoint), " ")
		p.records = append(p.records, recordSeen{e.Checkpoint, seen})
	}
	if e.Checkpoint != nil {
		text += " " + string(e.Checkpoint.Checkpoint.Source) + " " + e.Checkpoint.Checkpoint.Digest
	}
	if e.Values != nil {
		text += valuesText(e.Values())
	}
	p.events = append(p.events, text+writesText(e.Writes)+questionsText(e.Questions)+string(e.Value))
}

// state is the thread as stored. Checkpoints are numbered as they come, which for parallel subgraphs is a matter of
// time, so a comparison leaves the numbers out when asked to.
func (p *player) state(t *rapid.T, numbers bool) string {
	stored, err := p.program.EncodeThread(p.thread)
	if err != nil {
		t.Fatal(err)
	}
	if numbers {
		return string(stored)
	}
	var v any
	if err := json.Unmarshal(stored, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(withoutNumbers(v))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func withoutNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range []string{"id", "parent", "seq", "interrupt_seen"} {
			if _, number := v[key].(string); number || key != "id" {
				delete(v, key)
			}
		}
		for key := range v {
			v[key] = withoutNumbers(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutNumbers(v[i])
		}
	}
	return v
}

func first(int) int { return 0 }
func never() bool   { return false }

// TestDeliveryOrderDecidesNothing: whatever order tasks end in, the thread, the events and every digest are the same.
func TestDeliveryOrderDecidesNothing(t *testing.T) {
	for _, subgraphs := range []bool{false, true} {
		t.Run(fmt.Sprintf("subgraphs=%v", subgraphs), rapid.MakeCheck(func(t *rapid.T) {
			w := drawWorld(t, subgraphs)
			w.claims = rapid.Bool().Draw(t, "claims")
			inOrder := &player{world: w, pick: first, crash: never}
			inOrder.play(t)
			shuffled := &player{world: w, crash: never, pick: func(n int) int {
				return rapid.IntRange(0, n-1).Draw(t, "next to end")
			}}
			shuffled.play(t)
			compare(t, "the thread", inOrder.state(t, !subgraphs), shuffled.state(t, !subgraphs))
			slices.Sort(inOrder.events)
			slices.Sort(shuffled.events)
			compare(t, "the events", strings.Join(inOrder.events, "\n"), strings.Join(shuffled.events, "\n"))
		}))
	}
}

// TestStoringChangesNothing: a thread that is stored and read back before every run goes on exactly as one that is not.
func TestStoringChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.Bool().Draw(t, "subgraphs"))
		w.drains, w.claims, w.pays = rapid.Bool().Draw(t, "drains"), rapid.Bool().Draw(t, "claims"), rapid.Bool().Draw(t, "pays")
		kept := &player{world: w, pick: first, crash: never}
		kept.play(t)
		stored := &player{world: w, pick: first, crash: never, stored: true}
		stored.play(t)
		compare(t, "the events", strings.Join(kept.events, "\n"), strings.Join(stored.events, "\n"))
		compare(t, "the thread", kept.state(t, true), stored.state(t, true))
	})
}

// TestCrashesChangeNothing: a process may be lost at any time with whatever runs. The thread, stored as it is then and
// continued, comes to the same end by the same digests, and no finished task runs again.
func TestCrashesChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.Bool().Draw(t, "subgraphs"))
		w.drains, w.claims, w.pays = rapid.Bool().Draw(t, "drains"), rapid.Bool().Draw(t, "claims"), rapid.Bool().Draw(t, "pays")
		whole := &player{world: w, pick: first, crash: never}
		whole.play(t)
		whole.once(t)
		if whole.last != pregel.StatusDone {
			t.Skip("it comes to no end")
		}
		crashes := 0
		broken := &player{world: w, pick: first, crash: func() bool {
			if crashes < 3 && rapid.IntRange(0, 3).Draw(t, "crash") == 0 {
				crashes++
				return true
			}
			return false
		}}
		broken.play(t)
		broken.once(t)
		if broken.last != pregel.StatusDone || whole.limited || broken.limited {
			t.Skip("it comes to no end in as many runs")
		}
		if w.spec.Subgraphs != nil && hasHandlers(w.spec) {
			// A subgraph has failed when its superstep has ended. One that was lost before that is run on instead, and its
			// failed task may do better.
			t.Skip("a failure of the subgraph need not come again")
		}
		if memoryNone(w) {
			// It starts again from its input by design, so a failure that was handled before the crash need not come again.
			if hasHandlers(w.spec.Subgraphs["inner"]) {
				t.Skip("what runs again does not do the same")
			}
			compare(t, "the thread", whole.state(t, false), broken.state(t, false))
			return
		}
		compare(t, "the thread", whole.state(t, false), broken.state(t, false))
		for key, n := range broken.done {
			if n > 1 {
				t.Fatalf("task %s finished %d times", key, n)
			}
		}
	})
}

func memoryNone(w world) bool {
	inner, ok := w.spec.Subgraphs["inner"]
	return ok && inner.Memory == pregel.MemoryNone
}

func hasHandlers(spec *pregel.Spec) bool {
	return slices.ContainsFunc(spec.Nodes, func(n pregel.NodeSpec) bool { return n.ErrorHandler != "" })
}

func compare(t *rapid.T, what, want, got string) {
	t.Helper()
	if want != got {
		t.Fatalf("%s differs:\n%s\n---\n%s", what, want, got)
	}
}
