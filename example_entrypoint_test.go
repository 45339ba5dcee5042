package superstep_test

import (
	"context"
	"fmt"
	"strings"

	"superstep.dev"
)

// A function as a durable run: its tasks are remembered while it waits for a person, and what it returned is there for
// the thread's next run.
func ExampleNewEntrypoint() {
	essay := superstep.NewEntrypoint("essay", func(ctx context.Context, topic string) (string, error) {
		draft, err := superstep.Task(ctx, "write", func(context.Context) (string, error) {
			fmt.Println("writing about", topic)
			return "On " + topic, nil
		})
		if err != nil {
			return "", err
		}
		title, err := superstep.Interrupt[string](ctx, "A title for: "+draft)
		if err != nil {
			return "", err
		}
		before, known, err := superstep.Previous[string](ctx)
		if err != nil || !known {
			return title, err
		}
		return title + ", after " + before, nil
	})

	ctx, thread := context.Background(), essay.Thread(superstep.NewMemory(), "essays")
	for _, topic := range []string{"cats", "dogs"} {
		waiting, err := thread.Invoke(ctx, topic)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s\n", waiting.Questions[0].Value)
		done, err := thread.Resume(ctx, strings.ToUpper(topic))
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(done.Output)
	}
	// Output:
	// writing about cats
	// "A title for: On cats"
	// CATS
	// writing about dogs
	// "A title for: On dogs"
	// DOGS, after CATS
}

// What a run keeps need not be what it returns.
func ExampleSave() {
	counter := superstep.NewEntrypoint("count", func(ctx context.Context, word string) (string, error) {
		seen, _, err := superstep.Previous[map[string]int](ctx)
		if err != nil {
			return "", err
		}
		if seen == nil {
			seen = map[string]int{}
		}
		seen[word]++
		return fmt.Sprintf("%s, %d times", word, seen[word]), superstep.Save(ctx, seen)
	})
	thread := counter.Thread(superstep.NewMemory(), "words")
	for _, word := range []string{"tea", "milk", "tea"} {
		result, err := thread.Invoke(context.Background(), word)
		fmt.Println(result.Output, err)
	}
	// Output:
	// tea, 1 times <nil>
	// milk, 1 times <nil>
	// tea, 2 times <nil>
}
