package transporttest

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"superstep.dev/thread/live"
)

func fromTheStart(t *testing.T, transport live.Transport) {
	r, n := subscribe(t.Context(), t, transport, "t"), newNode(t, transport, "t", "a")
	n.emit(100)
	r.wants(n, 0, 100)
}

func comesLate(t *testing.T, transport live.Transport) {
	n := newNode(t, transport, "t", "a")
	n.emit(30)
	first := subscribe(t.Context(), t, transport, "t")
	n.emit(40)
	second := subscribe(t.Context(), t, transport, "t")
	n.emit(30)
	first.wants(n, 0, 100)
	second.wants(n, 0, 100)
}

// comesBetween: nothing is missed between what was emitted before and what comes after.
func comesBetween(t *testing.T, transport live.Transport) {
	const count = 1_000
	n := newNode(t, transport, "t", "a")
	shown := *n // n changes while it emits
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.emit(count)
	}()
	for range 10 {
		subscribe(t.Context(), t, transport, "t").wants(&shown, 0, count)
	}
	<-done
}

// comesTwice: a reader that lost its connection, and comes again.
func comesTwice(t *testing.T, transport live.Transport) {
	n := newNode(t, transport, "t", "a")
	n.emit(5)
	ctx, leave := context.WithCancel(t.Context())
	subscribe(ctx, t, transport, "t").wants(n, 0, 5)
	leave()
	n.emit(5)
	subscribe(t.Context(), t, transport, "t").wants(n, 0, 10)
}

// executions: what a lost or failed execution emitted comes before what the next one does. Readers void it themselves.
func executions(t *testing.T, transport live.Transport) {
	n := newNode(t, transport, "t", "a")
	n.emit(3)
	before := *n
	n.again()
	n.emit(2)
	r := subscribe(t.Context(), t, transport, "t")
	r.wants(&before, 0, 3)
	n.emit(1)
	r.wants(n, 0, 3)
}

// ended: a reader that comes after a task's end gets nothing of the task, and one that was there before has all of it.
func ended(t *testing.T, transport live.Transport) {
	a, b := newNode(t, transport, "t", "a"), newNode(t, transport, "t", "b")
	before := subscribe(t.Context(), t, transport, "t")
	a.emit(5)
	a.end()
	a.end() // twice is once
	late := subscribe(t.Context(), t, transport, "t")
	b.emit(1)
	late.wants(b, 0, 1)
	before.wants(a, 0, 5)
	before.wants(b, 0, 1)
}

func apart(t *testing.T, transport live.Transport) {
	a, b := newNode(t, transport, "one", "a"), newNode(t, transport, "two", "a")
	one := subscribe(t.Context(), t, transport, "one")
	b.emit(2)
	a.emit(1)
	one.wants(a, 0, 1)
	subscribe(t.Context(), t, transport, "two").wants(b, 0, 2)
}

// neverReads: a reader that does not read keeps neither nodes nor other readers waiting.
func neverReads(t *testing.T, transport live.Transport) {
	subscribe(t.Context(), t, transport, "t")
	r, n := subscribe(t.Context(), t, transport, "t"), newNode(t, transport, "t", "a")
	for number := 0; number < 20_000; number += 100 {
		began := time.Now()
		n.emit(100)
		if took := time.Since(began); took > 25*time.Second { // a node waits 250 ms for one emission at most
			t.Fatalf("a hundred emissions took %v", took)
		}
		r.wants(n, number, number+100)
	}
}

// leaves: the channel of a reader that leaves is closed, whether it has read or not.
func leaves(t *testing.T, transport live.Transport) {
	ctx, leave := context.WithCancel(t.Context())
	r, n := subscribe(ctx, t, transport, "t"), newNode(t, transport, "t", "a")
	n.emit(10)
	leave()
	deadline := time.After(patience)
	for open := true; open; {
		select {
		case _, open = <-r.comes:
		case <-deadline:
			t.Fatal("the channel is open although its context is done")
		}
	}
	n.emit(1)
}

// mostGrowth is how much memory tasks that never end may take, in this process.
const mostGrowth = 128 << 20

// bounded: tasks of lost workers never end, and readers may never read.
func bounded(t *testing.T, transport live.Transport) {
	subscribe(t.Context(), t, transport, "t")
	before := heap()
	var n *node
	for task := range 3 * 1024 {
		n = newNode(t, transport, "t", fmt.Sprintf("lost-%d", task))
		n.emitValue(`"` + strings.Repeat("x", 64<<10) + `"`)
	}
	if grown := heap() - before; grown > mostGrowth {
		t.Errorf("the transport keeps %d MiB of tasks that never end, at most %d MiB are allowed", grown>>20, mostGrowth>>20)
	}
	n = newNode(t, transport, "another", "a")
	n.emit(3)
	subscribe(t.Context(), t, transport, "another").wants(n, 0, 3)
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
