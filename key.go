package superstep

import (
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
)

// ErrYielded is what tasks and effects return when this execution of the node ends here and the node begins again, with
// what it has recorded: to own a thread-wide key, or because its record is as large as the run can hold for one execution.
// Pass it on; the node begins again even if it is swallowed. Nothing that was recorded is repeated.
var ErrYielded = graphadapter.ErrYielded

// ConflictError says that a key was used again with other parameters; nothing was called.
type ConflictError = ledger.ConflictError

// KeyOption is what [WithKey] returns: an option of tasks, effect calls and questions.
type KeyOption interface {
	TaskOption
	CallOption
	QuestionOption
}

// WithKey names a call or a question within its node, where otherwise its position among those of the same name does.
// Use it when the order of calls depends on something that may change: a loop over a map, goroutines of your own. Two
// calls with the same key are the same call. The key is empty by mistake only, so that is an error.
func WithKey(key string) KeyOption { return keyOption{key, true} }

type keyOption struct {
	key   string
	given bool
}

func (k keyOption) applyTask(o *taskOptions)         { o.key, o.threadWide = k, false }
func (k keyOption) applyCall(o *callOptions)         { o.key, o.ThreadWide = k, false }
func (k keyOption) applyQuestion(o *questionOptions) { o.key = k }

// value returns the key, "" when none was given.
func (k keyOption) value() (string, error) {
	if k.given && k.key == "" {
		return "", fmt.Errorf("WithKey needs a key that is not empty, and so does WithThreadKey: %w", ErrBadInput)
	}
	return k.key, nil
}

// ThreadKeyOption is what [WithThreadKey] returns: an option of tasks and effect calls.
type ThreadKeyOption interface {
	TaskOption
	CallOption
}

// WithThreadKey names a call within its whole thread: the business key of a write that must not happen twice, whichever
// node makes it, and however often an agent comes back to it.
//
//	refund.Call(ctx, params, superstep.WithThreadKey("order/"+order))
//
// The first call with the key is made; every other one, in a loop, in a parallel task, after a retry, from an earlier
// checkpoint or in a later run of the thread, returns its receipt, or fails with a [ConflictError] when its parameters are
// other ones. Different effects with one key are different calls, and so are those of a forked thread.
//
// A task that uses a key for the first time is given back and begins again as its owner, so its node runs from its start
// up to there. A task that wants the key meanwhile waits until the owner's task has ended. A thread keeps up to 10,000
// keys, each with a receipt of up to about 3 KiB; a larger receipt is looked up when it is needed.
func WithThreadKey(key string) ThreadKeyOption { return threadKeyOption{key} }

type threadKeyOption struct{ key string }

func (k threadKeyOption) applyTask(o *taskOptions) {
	o.key, o.threadWide = keyOption{k.key, true}, true
}
func (k threadKeyOption) applyCall(o *callOptions) {
	o.key, o.ThreadWide = keyOption{k.key, true}, true
}
