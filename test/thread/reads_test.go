package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/message"
	"superstep.dev/test/rig"
)

// shelf is a state of long values that grow, of types that can be changed behind their backs.
type shelf struct {
	Names  superstep.List[string]          `json:"names"`
	Docs   superstep.List[map[string]any]  `json:"docs"`
	Labels superstep.Map[[]string]         `json:"labels"`
	Notes  superstep.Value[[]string]       `json:"notes"`
	Deep   superstep.Value[map[string]any] `json:"deep"`
	Said   superstep.Messages              `json:"said"`
	Turn   superstep.Value[int]            `json:"turn"`
	Seen   superstep.List[string]          `json:"seen"`
}

var longWord = strings.Repeat("word ", 400)

// read is all that a node reads, as text.
func (s shelf) read() string {
	text, err := json.Marshal([]any{s.Names.Get(), s.Docs.Get(), s.Labels.Get(), s.Notes.Get(), s.Deep.Get(), s.Said.Get()})
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// spoil changes whatever the node that has the state can reach.
func (s shelf) spoil() {
	names, docs, notes, deep, said := s.Names.Get(), s.Docs.Get(), s.Notes.Get(), s.Deep.Get(), s.Said.Get()
	for i := range names {
		names[i] = "spoilt"
	}
	_ = append(names[:0], "spoilt", "spoilt")
	for _, d := range docs {
		d["parts"].([]any)[0] = "spoilt"
		d["spoilt"], d["name"] = true, "spoilt"
	}
	for k, v := range s.Labels.Get() {
		v[0] = "spoilt " + k
	}
	notes[0] = "spoilt"
	_ = append(notes[:1], "spoilt")
	deep["inner"].(map[string]any)["list"].([]any)[0] = "spoilt"
	delete(deep, "text")
	for i := range said {
		said[i].Fields["extra"][0] = '7'
		said[i].Fields["spoilt"] = json.RawMessage(`1`)
		said[i].Content.Parts[0].Text = "spoilt"
	}
}

// shelfGraph has two nodes at a time read the state that grows: one spoils all that it can, the other tells what it sees.
func shelfGraph(turns int) *superstep.Graph[shelf] {
	g := superstep.NewStateGraph[shelf]("shelf")
	g.AddNode("grow", func(_ context.Context, s shelf) (shelf, error) {
		before, n := s.read(), s.Turn.Get()+1
		s.spoil()
		name := fmt.Sprintf("%s%d", longWord, n)
		s = shelf{}
		s.Seen.Append(before)
		s.Names.Append(name)
		s.Docs.Append(map[string]any{"name": name, "parts": []any{n, "part"}})
		s.Labels.Put(fmt.Sprint("label", n), []string{name})
		s.Said.Append(message.Message{ID: fmt.Sprint("m", n), Role: "user", Content: message.Content{Parts: []message.Part{{Type: "text", Text: name}}},
			Fields: map[string]json.RawMessage{"extra": json.RawMessage("1")}})
		s.Turn.Set(n)
		if n == 1 {
			s.Notes.Set([]string{name, "note"})
			s.Deep.Set(map[string]any{"text": name, "inner": map[string]any{"list": []any{n, nil}}})
		}
		return s, nil
	})
	g.AddNode("spoil", func(_ context.Context, s shelf) (shelf, error) {
		s.spoil()
		return s, nil
	})
	g.AddNode("look", func(_ context.Context, s shelf) (out shelf, err error) {
		out.Seen.Append(s.read())
		return out, nil
	})
	g.AddEdge(superstep.Start, "grow")
	g.AddEdge("grow", "spoil")
	g.AddEdge("grow", "look")
	g.AddConditionalEdges("look", func(_ context.Context, s shelf) ([]superstep.Target, error) {
		s.spoil()
		if s.Turn.Get() < turns {
			return superstep.To("grow"), nil
		}
		return superstep.To(superstep.End), nil
	}, "grow", superstep.End)
	return g.MustCompile()
}

// TestNobodyChangesWhatOthersRead: a node that changes slices, maps and messages that it has read changes nothing for the
// nodes beside it, for later supersteps and for what is stored.
func TestNobodyChangesWhatOthersRead(t *testing.T) {
	t.Parallel()
	const turns = 6
	g := shelfGraph(turns)
	s := rig.NewServer(t)
	s.Work(g)
	start := map[string]any{"names": []string{longWord}, "docs": []any{map[string]any{"name": "first", "parts": []any{1}}},
		"labels": map[string][]string{"a": {longWord}}, "notes": []string{longWord}, "deep": map[string]any{"inner": map[string]any{"list": []any{0}}},
		"said": []any{map[string]any{"id": "m0", "role": "user", "content": []any{map[string]any{"type": "text", "text": longWord}}, "extra": 1}}, "turn": 0}
	run := func(name string, rt superstep.Runtime, opts ...superstep.RunOption) shelf {
		result, err := g.Thread(rt, s.Queue+name).Invoke(t.Context(), start, opts...)
		require.NoError(t, err, name)
		seen := result.Output.Seen.Get()
		require.Equal(t, 2*turns, len(seen), name)
		for i, text := range seen {
			assert.NotContains(t, text, "spoilt", "%s, read %d", name, i)
			if i%2 == 1 && i+1 < len(seen) {
				assert.Equal(t, text, seen[i+1], "%s: the node after read %d reads something else", name, i)
			}
		}
		assert.Equal(t, seen[len(seen)-1], result.Output.read(), "%s: the last node read something else than the run came to", name)
		return result.Output
	}
	want := run("memory", superstep.NewMemory())
	for _, mode := range []struct {
		name string
		opts []superstep.RunOption
	}{
		{"tasks", nil}, // an activity for each task: nothing is kept, so this is what JSON decodes into
		{"fused", []superstep.RunOption{superstep.WithFused()}},
		{"async", []superstep.RunOption{superstep.WithDurability(superstep.DurabilityAsync)}},
		{"exit", []superstep.RunOption{superstep.WithDurability(superstep.DurabilityExit)}},
	} {
		assert.Equal(t, want.Seen.Get(), run(mode.name, s.Client, mode.opts...).Seen.Get(), mode.name)
	}
}
