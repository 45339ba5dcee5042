// Package transporttest tests a live.Transport: what a transport promises, so that a reader of a stream may come at
// any moment of a node's life.
//
//	func TestTransport(t *testing.T) {
//		transporttest.Run(t, func() live.Transport { return newRedisTransport(t) })
//	}
package transporttest

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread/live"
)

// patience bounds every wait for an emission.
const patience = 2 * time.Minute

// Run tests transports that open makes: each subtest opens one, empty and connected to nothing that another one is. Of a
// transport with two ends the one that open returns has both.
//
// A transport may deliver an emission twice; Run does not count repetitions. What Run publishes is far below any sensible
// bound, but for the subtest "memory is bounded": 192 MiB of tasks that never end, which no reader takes.
func Run(t *testing.T, open func() live.Transport) {
	t.Helper()
	for _, c := range []struct {
		name string
		test func(*testing.T, live.Transport)
	}{
		{"a reader from the start", fromTheStart},
		{"a reader that comes late", comesLate},
		{"a reader that comes while the node emits", comesBetween},
		{"a reader that comes twice", comesTwice},
		{"executions of a task", executions},
		{"a task that has ended", ended},
		{"threads are apart", apart},
		{"a reader that never reads", neverReads},
		{"a reader that leaves", leaves},
		{"memory is bounded", bounded},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open()) })
	}
}

// node is a task that emits.
type node struct {
	t         *testing.T
	transport live.Transport
	next      live.Emission
}

func newNode(t *testing.T, transport live.Transport, thread, task string) *node {
	return &node{t: t, transport: transport, next: live.Emission{Thread: thread, Run: "run-1", Task: task,
		Scheduled: time.Unix(1_700_000_000, 0).UTC(), Execution: 1}}
}

// emit emits that many values, which name task, execution and number.
func (n *node) emit(count int) {
	n.t.Helper()
	for range count {
		n.emitValue(fmt.Sprintf("%q", n.value(n.next.Sequence)))
	}
}

func (n *node) emitValue(value string) {
	n.t.Helper()
	e := n.next
	e.Emission = pregel.Emission{Kind: pregel.EmissionCustom, Value: pregel.Value(value)}
	n.next.Sequence++
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	if err := n.transport.Publish(ctx, e); err != nil {
		n.t.Errorf("Publish: %v", err)
	}
}

func (n *node) value(number int) string {
	return fmt.Sprintf("%s execution %d number %d", n.next.Task, n.next.Execution, number)
}

// again begins another execution, as after a lost worker.
func (n *node) again() { n.next.Execution, n.next.Sequence = n.next.Execution+1, 0 }

func (n *node) end() {
	n.t.Helper()
	if err := n.transport.Ended(n.t.Context(), n.next.Of()); err != nil {
		n.t.Errorf("Ended: %v", err)
	}
}

// reader reads a thread.
type reader struct {
	t     *testing.T
	comes <-chan live.Emission
	last  map[live.Task]live.Emission
}

func subscribe(ctx context.Context, t *testing.T, transport live.Transport, thread string) *reader {
	t.Helper()
	comes, err := transport.Subscribe(ctx, thread)
	if err != nil {
		t.Fatalf("Subscribe: %v", err)
	}
	return &reader{t, comes, map[live.Task]live.Emission{}}
}

// wants reads the emissions of a task from one number of an execution up to another, and nothing of other tasks.
func (r *reader) wants(n *node, from, to int) {
	r.t.Helper()
	for number := from; number < to; number++ {
		e := r.one()
		var got string
		if err := json.Unmarshal(e.Emission.Value, &got); err != nil {
			r.t.Fatalf("the value %s: %v", e.Emission.Value, err)
		}
		if got != n.value(number) || e.Of() != n.next.Of() || e.Sequence != number || e.Emission.Kind != pregel.EmissionCustom ||
			!e.Scheduled.Equal(n.next.Scheduled) {
			r.t.Fatalf("%q came as %+v, wanted %q", got, e, n.value(number))
		}
	}
}

// one is the next emission that is no repetition.
func (r *reader) one() live.Emission {
	r.t.Helper()
	for {
		select {
		case e, open := <-r.comes:
			if !open {
				r.t.Fatal("the channel was closed although its context is not done")
			}
			last, known := r.last[e.Of()]
			if known && (e.Execution < last.Execution || e.Execution == last.Execution && e.Sequence <= last.Sequence) {
				continue
			}
			r.last[e.Of()] = e
			return e
		case <-time.After(patience):
			r.t.Fatalf("nothing came for %v", patience)
		}
	}
}
