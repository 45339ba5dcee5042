package pregel

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMessagesAreWhatTheirTextSays: whatever has been read of a list that grows, an update of any of its versions comes to what the
// same update of its plain text comes to, byte for byte, and to what writing the list anew comes to.
func TestMessagesAreWhatTheirTextSays(t *testing.T) {
	message := rapid.Custom(func(t *rapid.T) string {
		id := rapid.SampledFrom([]string{"", `"id":"",`, `"id":null,`, `"id":"a",`, `"ID":"b",`, `"id":"c",`, `"id":"d",`, `"id":"e",`}).Draw(t, "id")
		role := rapid.SampledFrom([]string{"user", "user", "user", "assistant", "remove"}).Draw(t, "role")
		if rapid.IntRange(0, 20).Draw(t, "all") == 0 {
			id, role = `"id":"__remove_all__",`, "remove"
		}
		content := strings.Repeat(rapid.SampledFrom([]string{"x", `\"]`, "<", "{,"}).Draw(t, "content"), rapid.IntRange(0, 60).Draw(t, "times"))
		return fmt.Sprintf(`{%s"role":%q,"content":"%s"}`, id, role, content)
	})
	update := rapid.Custom(func(t *rapid.T) Value {
		all := rapid.SliceOfN(message, 0, 3).Draw(t, "messages")
		if len(all) == 1 && rapid.Bool().Draw(t, "alone") {
			return Value(all[0])
		}
		return Value("[" + strings.Join(all, ",") + "]")
	})
	rapid.Check(t, func(t *rapid.T) {
		versions := []Held{Hold(emptyList)}
		for range rapid.IntRange(1, 40).Draw(t, "updates") {
			from := versions[len(versions)-1]
			if rapid.IntRange(0, 4).Draw(t, "older") == 0 {
				from = rapid.SampledFrom(versions).Draw(t, "from")
			}
			u := update.Draw(t, "update")
			was := string(from.Value())
			got, err := reduceMessages(from, []Value{u})
			plain, plainErr := reduceMessages(Hold(Value(was)), []Value{u})
			anew, anewErr := mergeMessages(Value(was), u)
			if (err == nil) != (plainErr == nil) || (err == nil) != (anewErr == nil) {
				t.Fatalf("%s with %s: %v, of its text %v, anew %v", was, u, err, plainErr, anewErr)
			}
			if string(from.Value()) != was {
				t.Fatal("the list that it was made of is another one")
			}
			if err != nil {
				continue
			}
			if string(got.Value()) != string(plain.Value()) {
				t.Fatalf("%s with %s: %s, of its text %s", was, u, got, plain)
			}
			var a, b any
			if json.Unmarshal(got.Value(), &a) != nil || json.Unmarshal(anew.Value(), &b) != nil || fmt.Sprint(a) != fmt.Sprint(b) {
				t.Fatalf("%s with %s: %s, anew %s", was, u, got, anew)
			}
			versions = append(versions, got)
		}
	})
}

// BenchmarkMessages adds a message to a conversation of 3,000.
func BenchmarkMessages(b *testing.B) {
	list := Hold(emptyList)
	add := func(list Held, i int) Held {
		next, err := reduceMessages(list, []Value{Value(fmt.Sprintf(`[{"id":"m%d","role":"user","content":%q}]`, i, strings.Repeat("word ", 40)))})
		if err != nil {
			b.Fatal(err)
		}
		return next
	}
	for i := range 3000 {
		list = add(list, i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		list = add(list, 3000+i)
	}
}

// conversation is a graph with messages, of a node and of a subgraph with messages.
func conversation(t testing.TB) *Program {
	channels := []ChannelSpec{{Name: "m", Kind: KindReduce, Reducer: messagesReducer}}
	spec := &Spec{Version: SpecVersion, Name: "g", Channels: channels, Nodes: []NodeSpec{{Name: "e"}, {Name: "w", Subgraph: "s"}},
		Edges: []Edge{{From: Start, To: "e"}},
		Subgraphs: map[string]*Spec{"s": {Version: SpecVersion, Name: "s", Channels: channels, Nodes: []NodeSpec{{Name: "x"}},
			Edges: []Edge{{From: Start, To: "x"}}}}}
	p, err := Compile(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// said runs a thread to its end; each node says "done". It returns the thread as the next process reads it.
func said(t testing.TB, p *Program, thread *Thread, in Input) *Thread {
	t.Helper()
	l, err := p.Start(thread, in, Options{RecursionLimit: 9}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	for l.Status() == StatusRunning {
		for _, task := range l.Ready() {
			done := Command{Update: []Write{{Channel: "m", Value: Value(`{"role":"assistant","content":"done"}`)}}}
			at, _ := p.Subgraph(task.Graph)
			read, err := at.Read(task, done.Update)
			if err != nil {
				t.Fatal(err)
			}
			l.Deliver(task, Outcome{Command: done})
			if got := task.run.rec.Update[0].Value; !strings.Contains(read["m"].String(), idOf(t, got)) {
				t.Errorf("its branches read %s, and it wrote %s", read["m"], got)
			}
		}
	}
	if l.Err() != nil {
		t.Fatal(l.Err())
	}
	stored, err := p.EncodeThread(l.Thread())
	if err != nil {
		t.Fatal(err)
	}
	next, err := p.DecodeThread(stored)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func idOf(t testing.TB, message Value) string {
	t.Helper()
	m, err := parseMessage(message)
	if err != nil || m.id == "" {
		t.Fatalf("%s has no id: %v", message, err)
	}
	return m.id
}

// TestMessagesWithoutIDsAreAllKept: messages of the same text that come without ids are different messages, whichever way and however
// often they come, also in threads that were given the same; a replay gives the ids of the first run.
func TestMessagesWithoutIDsAreAllKept(t *testing.T) {
	p := conversation(t)
	hi := Value(`{"m":[{"role":"user","content":"go"},{"role":"user","content":"go"}]}`)
	ids := func(origin string) []string {
		thread := said(t, p, NewThread().Begin(origin), Input{Value: hi})
		thread = said(t, p, thread, Input{Value: hi})
		send := Target{Node: "w", Send: true, Arg: hi}
		write := Write{Channel: "m", Value: Value(`[{"role":"user","content":"go"}]`)}
		for range 2 {
			thread = said(t, p, thread, Input{Control: &Command{Update: []Write{write}, Goto: []Target{send, send}}})
			e, err := p.Edit(thread, nil, []Update{{Values: []Write{write}, AsNode: "w"}, {Values: []Write{write}, AsNode: "w"}})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Apply(nil); err != nil {
				t.Fatal(err)
			}
		}
		list, err := parseMessages(p.StateOf(thread.Head.Checkpoint)["m"], 0, func(string) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, m := range list {
			out = append(out, m.id)
		}
		return out
	}
	first, again, other := ids("one"), ids("one"), ids("two")
	if want := 2*(2+1) + 2*(1+2*3+2); len(first) != want {
		t.Fatalf("%d messages are left of %d", len(first), want)
	}
	if fmt.Sprint(first) != fmt.Sprint(again) {
		t.Errorf("replayed, the ids are others:\n%q\n%q", first, again)
	}
	seen := map[string]bool{}
	for _, id := range append(first, other...) {
		if seen[id] {
			t.Errorf("two messages have the id %s", id)
		}
		seen[id] = true
	}
	if copied := NewThread().Begin("one").AsCopy("x"); copied.Begin("two").origin != "two" {
		t.Error("a copied thread gives the ids that the other one gives")
	}
}
