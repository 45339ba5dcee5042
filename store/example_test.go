package store_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"superstep.dev"
	"superstep.dev/store"
)

type visit struct {
	User superstep.Value[string] `json:"user"`
	Log  superstep.List[string]  `json:"log"`
}

// Nodes of all threads share a store. What a node puts there is an effect: it is written once, whatever crashes.
func Example() {
	memory, err := store.NewMemory(store.Options{}) // sqlite.Open and postgres.Open keep it
	if err != nil {
		panic(err)
	}
	g := superstep.NewStateGraph[visit]("greeter")
	g.AddNode("greet", func(ctx context.Context, s visit) (visit, error) {
		memory, err := superstep.StoreFrom(ctx)
		if err != nil {
			return s, err
		}
		var seen struct {
			Times int `json:"times"`
		}
		user := []string{"users", s.User.Get()}
		item, err := memory.Get(ctx, user, "visits")
		if err == nil {
			err = item.Decode(&seen)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return s, err
		}
		seen.Times++
		s.Log.Append(fmt.Sprintf("visit %d of %s", seen.Times, s.User.Get()))
		return s, memory.Put(ctx, user, "visits", seen)
	})
	g.AddEdge(superstep.Start, "greet")
	graph := g.MustCompile()

	rt := superstep.NewMemory(superstep.WithStore(memory)) // a worker has WorkerConfig.Store
	for _, thread := range []string{"monday", "tuesday"} {
		out, err := graph.Thread(rt, thread).Invoke(context.Background(), map[string]any{"user": "ann"})
		if err != nil {
			panic(err)
		}
		fmt.Println(thread, out.Output.Log.Get())
	}
	item, err := memory.Get(context.Background(), []string{"users", "ann"}, "visits")
	fmt.Println(string(item.Value), item.Version, err)
	// Output:
	// monday [visit 1 of ann]
	// tuesday [visit 2 of ann]
	// {"times":2} 2 <nil>
}

// animals embeds texts by the animals in them; a model does it by what they mean.
type animals struct{}

func (animals) Embed(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, text := range texts {
		out = append(out, []float32{float32(strings.Count(text, "cat")), float32(strings.Count(text, "dog"))})
	}
	return out, nil
}

// A search has a filter on the members of values, and in a store with an index a text, whose meaning ranks what is found.
func ExampleStore_Search() {
	ctx := context.Background()
	memory, err := store.NewMemory(store.Options{Index: &store.Index{Embedder: animals{}, Dims: 2, Fields: []string{"text"}}})
	if err != nil {
		panic(err)
	}
	for key, value := range map[string]map[string]any{
		"a": {"text": "she has a cat", "weight": 3}, "b": {"text": "he has a dog and a cat", "weight": 9}, "c": {"text": "a dog", "weight": 1},
	} {
		if err := memory.Put(ctx, []string{"users", "7", "facts"}, key, value); err != nil {
			panic(err)
		}
	}
	hits, err := memory.Search(ctx, []string{"users", "7"}, store.Query{Text: "cats", Filter: map[string]any{"weight": map[string]any{"$gt": 2}}})
	for _, h := range hits {
		fmt.Printf("%s %.2f\n", h.Key, *h.Score)
	}
	fmt.Println(err)
	// Output:
	// a 1.00
	// b 0.71
	// <nil>
}
