package pregel_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

// TestAnyCheckpointGivesTheSameSuffix: a run from an earlier checkpoint, in memory or stored and read back, comes by the
// same tasks and values to the same end as the run that came after it then.
func TestAnyCheckpointGivesTheSameSuffix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.Bool().Draw(t, "subgraphs"))
		w.calm = true
		whole := &player{world: w, pick: first, crash: never}
		whole.play(t)
		if whole.last != pregel.StatusDone || memoryNone(w) {
			t.Skip("it comes to no end")
		}
		from := rapid.IntRange(0, len(whole.records)-1).Draw(t, "from")
		again := &player{world: w, pick: first, crash: never, program: whole.program,
			thread: whole.thread.At(whole.records[from].record, pregel.ForReplay), ran: map[string]int{}, done: map[string]int{}, kept: map[string]int{}, paid: map[string]int{}}
		if rapid.Bool().Draw(t, "stored") && w.spec.Subgraphs == nil {
			again.storeAndRead(t)
		}
		again.replays = true
		again.goOn(t, pregel.Input{})
		if again.last != pregel.StatusDone || whole.limited || again.limited {
			t.Skip("it comes to no end in as many runs")
		}
		if remembers(w) && (whole.wentOn() || again.wentOn()) {
			t.Skip("a run that goes on resumes a subgraph that remembers, even a finished one: LangGraph's rule")
		}
		compare(t, "the end", whole.values(), again.values())
		// The fork is a checkpoint of its own, in front of what runs again.
		want, got := whole.records[from+1:], again.records[1:]
		if len(want) != len(got) {
			t.Fatalf("%d checkpoints came after, now %d", len(want), len(got))
		}
		for i := range want {
			compare(t, "a checkpoint", want[i].text, got[i].text)
		}
	})
}

// remembers reports whether the world's subgraph keeps its state between runs of its node.
func remembers(w world) bool {
	for _, sub := range w.spec.Subgraphs {
		if sub.Memory == pregel.MemoryThread {
			return true
		}
	}
	return false
}

// wentOn reports whether a run ended at its limit and the thread had to be continued.
func (p *player) wentOn() bool {
	return slices.ContainsFunc(p.events, func(e string) bool { return strings.Contains(e, "GRAPH_RECURSION_LIMIT") })
}

// values are those of the thread's newest checkpoint, with what is next.
func (p *player) values() string {
	return valuesText(p.program.StateOf(p.thread.Head.Checkpoint)) + strings.Join(p.program.Next(p.thread.Head), " ")
}

// TestEditsAreAllOrNothing: whatever is updated, at whatever checkpoint, a refusal leaves the thread as it was, and what
// is taken makes a checkpoint that the thread goes on from, also when it was stored in between.
func TestEditsAreAllOrNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, rapid.Bool().Draw(t, "subgraphs"))
		p := &player{world: w, pick: first, crash: never}
		p.play(t)
		at := p.records[rapid.IntRange(0, len(p.records)-1).Draw(t, "at")].record
		p.thread = p.thread.At(at, pregel.ForReplay)
		before := p.state(t, true)
		e, err := p.program.Edit(p.thread, nil, drawUpdates(t, w))
		var made []*pregel.Record
		if err == nil {
			made, err = e.Apply(make([][]pregel.Target, len(e.Tasks())))
		}
		if err != nil {
			compare(t, "the thread after "+err.Error(), before, p.state(t, true))
			return
		}
		head := p.thread.Head.Checkpoint
		if made[len(made)-1].Checkpoint != head || head.Seq <= at.Checkpoint.Seq || at.Checkpoint.ID == head.ID {
			t.Fatalf("the update made %+v, the head is %+v", made, head)
		}
		stored := &player{world: w, program: p.program, thread: p.thread.Copy(), pick: first, crash: never}
		stored.storeAndRead(t)
		for _, q := range []*player{p, stored} {
			q.ran, q.done, q.kept, q.paid, q.events = map[string]int{}, map[string]int{}, map[string]int{}, map[string]int{}, nil
			if _, err := q.run(pregel.Input{}); err != nil {
				q.events = append(q.events, err.Error())
			}
		}
		compare(t, "what comes after", strings.Join(p.events, "\n"), strings.Join(stored.events, "\n"))
	})
}

// drawUpdates draws a superstep of updates, right or wrong.
func drawUpdates(t *rapid.T, w world) []pregel.Update {
	names := []string{"", pregel.Start, pregel.End, pregel.AsInput, pregel.AsCopy, "nobody"}
	for _, n := range w.spec.Nodes {
		names = append(names, n.Name, n.Name)
	}
	var out []pregel.Update
	for i := range rapid.IntRange(1, 3).Draw(t, "updates") {
		u := pregel.Update{AsNode: rapid.SampledFrom(names).Draw(t, "as")}
		switch u.AsNode {
		case pregel.AsInput:
			u.Input = pregel.Value(`{"log":["input"]}`)
		case pregel.AsCopy:
			if rapid.Bool().Draw(t, "copied") {
				u.Copied = []pregel.Update{{AsNode: w.spec.Nodes[0].Name}, {AsNode: pregel.Start}}
			}
		case pregel.End:
		default:
			channel := rapid.SampledFrom(stateChannels).Draw(t, "channel").Name
			value := rapid.SampledFrom([]string{`["v"]`, `1`, `null`, `{`}).Draw(t, "value")
			u.Values = []pregel.Write{{Channel: channel, Value: pregel.Value(value)}, {Channel: "log", Value: pregel.Value(fmt.Sprintf("[%d]", i))}}
		}
		out = append(out, u)
	}
	return out
}
