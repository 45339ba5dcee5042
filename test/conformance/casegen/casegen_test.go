package casegen

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn is a case of a seed as JSON.
func drawn(t *testing.T, seed uint64, o Options) (Doc, string) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	c := Case(func(least, most int, label string) int {
		if most < least {
			t.Fatalf("seed %d: %s is drawn from %d to %d", seed, label, least, most)
		}
		return least + random.IntN(most-least+1)
	}, "drawn", o)
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return c, string(text)
}

// TestSameNumbersDrawTheSameCase: what was drawn from a seed can be drawn again.
func TestSameNumbersDrawTheSameCase(t *testing.T) {
	for seed := range uint64(200) {
		for _, o := range []Options{{}, {Pure: true}, {Recorded: true}, {Wide: true, Recorded: true}} {
			_, first := drawn(t, seed, o)
			if _, second := drawn(t, seed, o); first != second {
				t.Fatalf("seed %d with %+v draws two cases:\n%s\n%s", seed, o, first, second)
			}
		}
	}
}

// TestWideCasesHaveEveryConstruct keeps a construct from vanishing unnoticed.
func TestWideCasesHaveEveryConstruct(t *testing.T) {
	seen := map[string]int{}
	const cases = 400
	for seed := range uint64(cases) {
		c, _ := drawn(t, seed, Options{Wide: true})
		for _, tag := range c["tags"].([]string) {
			seen[tag]++
		}
	}
	for _, tag := range []string{
		"any", "branches", "call", "command", "commands", "concat", "defer", "durability", "ephemeral", "failure", "interrupt", "join",
		"last", "max", "merge", "messages", "output", "overwrite", "parent-command", "partial-resume", "retry", "send",
		"static-interrupt", "subgraph", "subgraph-memory", "subgraph-stateless", "substreams", "tasks-mode", "time-travel", "topic",
		"untracked", "update-state",
	} {
		if seen[tag] < cases/100 {
			t.Errorf("%d of %d wide cases have %s", seen[tag], cases, tag)
		}
	}
}

// TestPureCasesRepeat: a pure case has nothing by which a second run of a task would differ from its first.
func TestPureCasesRepeat(t *testing.T) {
	for seed := range uint64(400) {
		c, text := drawn(t, seed, Options{Pure: true})
		for _, tag := range []string{"interrupt", "failure", "untracked", "static-interrupt"} {
			if slices.Contains(c["tags"].([]string), tag) {
				t.Errorf("seed %d draws a pure case with %s:\n%s", seed, tag, text)
			}
		}
	}
}
