package graphadapter

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"superstep.dev/graphadapter/pregel"
)

// TestMemoryCacheIsBounded by entries and by bytes: what was not asked for the longest goes first.
func TestMemoryCacheIsBounded(t *testing.T) {
	key := func(i int) CacheKey { return CacheKey{Graph: "g", Node: "n", Input: fmt.Sprint(i)} }
	value := pregel.Value(strings.Repeat("1", 97)) // with its key 100 bytes
	for _, c := range []*MemoryCache{NewMemoryCache(3, 0), NewMemoryCache(0, 300)} {
		for i := range 5 {
			if err := c.Set(t.Context(), key(i), value, 0); err != nil {
				t.Fatal(err)
			}
			if v, err := c.Get(t.Context(), key(0)); err != nil || string(v) != string(value) {
				t.Errorf("after %d the first is %q, %v", i+1, v, err)
			}
		}
		if v, _ := c.Get(t.Context(), key(1)); v != nil || c.Len() != 3 {
			t.Errorf("it holds %d results, the second is %q", c.Len(), v)
		}
	}
	small := NewMemoryCache(0, 300)
	for _, v := range []pregel.Value{value, pregel.Value(strings.Repeat("1", 300))} {
		if err := small.Set(t.Context(), key(0), v, 0); err != nil {
			t.Fatal(err)
		}
	}
	if v, _ := small.Get(t.Context(), key(0)); v != nil {
		t.Errorf("what does not fit left %q behind", v)
	}
}

// TestMemoryCacheForgetsInTime, and makes room of it.
func TestMemoryCacheForgetsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewMemoryCache(0, 0)
		for i, ttl := range []time.Duration{time.Minute, 0, time.Hour} {
			if err := c.Set(t.Context(), CacheKey{Input: fmt.Sprint(i)}, pregel.Null, ttl); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Minute)
		if v, _ := c.Get(t.Context(), CacheKey{Input: "0"}); v != nil {
			t.Error("it outlived its time")
		}
		if err := c.Set(t.Context(), CacheKey{Input: "3"}, pregel.Null, 0); err != nil || c.Len() != 3 {
			t.Errorf("it holds %d results, %v", c.Len(), err)
		}
	})
}
