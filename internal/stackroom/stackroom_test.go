package stackroom_test

import (
	"testing"

	"superstep.dev/internal/stackroom"
)

// deep is a call of many frames, of some 6 KiB together.
//
//go:noinline
func deep(n int) byte {
	var frame [64]byte
	if n == 0 {
		return frame[0]
	}
	frame[n%len(frame)] = deep(n-1) + 1
	return frame[(n+1)%len(frame)]
}

// BenchmarkGrow takes a new goroutine deep, with and without room.
func BenchmarkGrow(b *testing.B) {
	for name, first := range map[string]func(){"with": stackroom.Grow, "without": func() {}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				done := make(chan byte)
				go func() {
					first()
					done <- deep(50)
				}()
				<-done
			}
		})
	}
}

// TestARoomIsOnTheStack: nothing of it is left on the heap.
func TestARoomIsOnTheStack(t *testing.T) {
	if n := testing.AllocsPerRun(100, stackroom.Grow); n > 0 {
		t.Errorf("%.0f allocations", n)
	}
}
