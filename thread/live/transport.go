package live

import (
	"context"

	"superstep.dev/graphadapter"
)

// Emission is what a node emitted with superstep.Emit or superstep.EmitMessage, or that a repeated attempt voids it, on its way
// through a [Transport].
type Emission = graphadapter.LiveEmission

// Task names a task that emits, or has ended.
type Task = graphadapter.LiveTask

// Transport carries what nodes emit to the readers of streams while the nodes run. Give the same one to WorkerConfig and
// ClientConfig, or two ends of the same.
//
// A transport keeps what the tasks under way have emitted, of all their executions, and hands that to whoever subscribes:
// a reader may come at any moment of a node's life. It forgets a task with Ended. A worker that is lost says nothing any
// more, so a transport also bounds what it keeps, and then forgets a task as a whole: emissions with a gap before them are
// of no use to readers.
//
// A transport is an addition: the node's result holds the same emissions, durably, and readers take from there what did not
// come live, each once. So a transport may lose emissions, deliver them twice, or late. Of one task it must not swap them.
//
// It is safe for concurrent use. Package graphtest/transporttest tests one.
type Transport interface {
	// Publish hands out an emission, without waiting for those who listen: the node waits for Publish, for 250 ms at most.
	// After an error the rest of that execution is not published.
	Publish(ctx context.Context, e Emission) error
	// Ended says that a task is over, after the last of its emissions: what is kept of it can be forgotten, because its
	// result has it. A task that is to run again is not over.
	Ended(ctx context.Context, task Task) error
	// Subscribe returns what the thread's tasks under way have emitted so far, and then what is published of the thread, with
	// nothing missed in between. The channel is closed after ctx is done, or when nothing more can come; readers then go on
	// with results alone.
	Subscribe(ctx context.Context, thread string) (<-chan Emission, error)
}
