package superstep

import (
	"context"
	"sync"

	"superstep.dev/graphadapter"
)

// LiveEmission is what a node emitted with [Emit] or [EmitMessage], or that a repeated attempt voids it, on its way
// through a [Transport].
type LiveEmission graphadapter.LiveEmission

// Transport carries what nodes emit to the readers of streams while the nodes run. It is an addition: the node's result
// holds the same emissions, durably, and readers take from there what did not come live, each once. So a Transport may
// lose emissions, deliver them twice, late, or not at all; of one execution it must not swap them. Give the same one to
// WorkerConfig and ClientConfig, or two ends of the same.
//
// It is safe for concurrent use.
type Transport interface {
	// Publish hands out an emission, without waiting for those who listen: the node waits for Publish, for 250 ms at most.
	// After an error the rest of that execution is not published.
	Publish(ctx context.Context, e LiveEmission) error
	// Subscribe returns what is published of a thread from now on. The channel is closed after ctx is done, or when nothing
	// more can come; readers then go on with results alone.
	Subscribe(ctx context.Context, thread string) (<-chan LiveEmission, error)
}

// liveBacklog is how many emissions a subscriber may be behind; what comes then is lost to it.
const liveBacklog = 10_000

// LocalTransport is a [Transport] within one process: for workers and readers that live together, and for tests. The
// zero value is ready. A reader that is more than 10,000 emissions behind misses some, and gets them with the result.
type LocalTransport struct {
	mu          sync.Mutex
	subscribers map[string]map[chan LiveEmission]bool
}

// Publish implements [Transport].
func (t *LocalTransport) Publish(_ context.Context, e LiveEmission) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for subscriber := range t.subscribers[e.Thread] {
		select {
		case subscriber <- e:
		default: // the gap tells the reader
		}
	}
	return nil
}

// Subscribe implements [Transport].
func (t *LocalTransport) Subscribe(ctx context.Context, thread string) (<-chan LiveEmission, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	subscriber := make(chan LiveEmission, liveBacklog)
	if t.subscribers == nil {
		t.subscribers = map[string]map[chan LiveEmission]bool{}
	}
	if t.subscribers[thread] == nil {
		t.subscribers[thread] = map[chan LiveEmission]bool{}
	}
	t.subscribers[thread][subscriber] = true
	context.AfterFunc(ctx, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.subscribers[thread], subscriber)
		if len(t.subscribers[thread]) == 0 {
			delete(t.subscribers, thread)
		}
		close(subscriber)
	})
	return subscriber, nil
}
