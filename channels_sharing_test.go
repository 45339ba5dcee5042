package superstep

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"superstep.dev/graphadapter/pregel"
)

func TestCopiesOfAStateDoNotSeeEachOthersWrites(t *testing.T) {
	s, _ := bound(t, `{"list":["a"]}`)
	s.List.Append("b")
	left, right := s, s
	left.List.Append("left")
	left.Value.Set(1)
	right.List.Append("right")
	right.Value.Set(2)
	assert.Equal(t, []string{"a", "b"}, s.List.Get())
	assert.Equal(t, []string{"a", "b", "left"}, left.List.Get())
	assert.Equal(t, []string{"a", "b", "right"}, right.List.Get())
	assert.False(t, s.Value.IsSet())
	assert.Equal(t, int64(1), left.Value.Get())
	assert.Equal(t, int64(2), right.Value.Get())
}

func TestWhatGetReturnsBelongsToTheCaller(t *testing.T) {
	s, _ := bound(t, `{"list":["a","b"],"map":{"k":1},"topic":[1],"messages":[{"id":"m","role":"user","content":"hi"}]}`)
	s.List.Get()[0] = "changed"
	_ = append(s.List.Get()[:1], "changed")
	s.Map.Get()["k"] = 99
	s.Topic.Get()[0] = 99
	s.Messages.Get()[0].Role = "changed"
	assert.Equal(t, []string{"a", "b"}, s.List.Get())
	assert.Equal(t, map[string]int{"k": 1}, s.Map.Get())
	assert.Equal(t, []int{1}, s.Topic.Get())
	assert.Equal(t, "user: hi", s.Messages.String())
}

func TestAppendedAndOverwrittenSlicesAreCopied(t *testing.T) {
	var s allChannels
	in := []string{"a"}
	s.List.Append(in...)
	in[0] = "changed"
	assert.Equal(t, []string{"a"}, s.List.Get())
	m := map[string]int{"k": 1}
	s.Map.Overwrite(m)
	m["k"] = 2
	assert.Equal(t, map[string]int{"k": 1}, s.Map.Get())
}

func TestTasksThatReadTheSameStateShareNothing(t *testing.T) {
	raw := map[string]pregel.Value{
		"order": pregel.Value(`{"id":"o","items":["a","b"]}`), "list": pregel.Value(`["a"]`), "items": pregel.Value(`["x"]`),
	}
	var states [8]allChannels
	for i := range states {
		schemaFor[allChannels]().bind(&states[i], newScope("g", "n"), raw)
	}
	var wg sync.WaitGroup
	for i := range states {
		wg.Go(func() {
			s := states[i]
			s.Order.Get().Items[0] = fmt.Sprint("changed by ", i)
			s.List.Append("b")
			s.Items.Write([]string{"y"})
			assert.Equal(t, []string{"a", "b"}, s.List.Get())
			assert.Equal(t, []string{"x", "y"}, s.Items.Get())
		})
	}
	wg.Wait()
	var fresh allChannels
	schemaFor[allChannels]().bind(&fresh, newScope("g", "n"), raw)
	assert.Equal(t, []string{"a", "b"}, fresh.Order.Get().Items)
	assert.Equal(t, `{"id":"o","items":["a","b"]}`, string(raw["order"]))
}

func TestGoroutinesOfOneNodeMayRead(t *testing.T) {
	s, sc := bound(t, `{"list":["a"],"order":{"id":"o"},"longest":"x","value":"wrong"}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			assert.Equal(t, []string{"a"}, s.List.Get())
			assert.Equal(t, "o", s.Order.Get().ID)
			assert.Zero(t, s.Value.Get())
		})
	}
	wg.Wait()
	assert.Error(t, sc.failure())
}
