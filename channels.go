package superstep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
	"superstep.dev/internal/jsonfit"
)

// channel is what the engine's side needs of a state field. Every channel type implements it on its pointer; the
// zero value must answer declare and check.
type channel interface {
	// declare returns the field's channel as the Spec has it.
	declare(name string, o fieldOptions) (declaration, error)
	// bind gives the field the value that the task read. It is decoded at the first Get.
	bind(s *scope, field string, raw pregel.Value)
	// load decodes the bound value now; an undecodable one is reported to its scope.
	load()
	// written returns what was written since bind, without channel names. An error says what cannot be encoded.
	written() ([]pregel.Write, error)
	// IsZero reports whether the field was neither read nor written.
	IsZero() bool
	// encode returns the field's view as JSON.
	encode() (pregel.Value, error)
}

// declaration is a channel type's part of a schema.
type declaration struct {
	spec pregel.ChannelSpec
	// reducer is a custom reducer's implementation, nil for the engine's own.
	reducer customReducer
	// value is the Go type that the channel holds, update the one that a write of plain JSON must decode into.
	value, update reflect.Type
	// check refuses a plain JSON update that the channel cannot take.
	check func(pregel.Value) error
}

// fieldOptions are the words of a field's superstep tag.
type fieldOptions struct{ accumulate, unguarded bool }

// scope collects what goes wrong while one task reads its state: Get has no error result, so that nodes stay
// readable, and the task fails after the node returned instead.
type scope struct {
	graph, node string
	// task names the task: the same in each attempt, another in every other task and thread. Nil outside a task. Few tasks
	// name messages, and to write it down costs more than the rest of the scope.
	task func() string

	mu    sync.Mutex
	err   error
	named int // messages
}

func newScope(graph, node string) *scope { return &scope{graph: graph, node: node} }

// taskScope is the scope of the task that ctx belongs to.
func taskScope(ctx context.Context, graph, node string) *scope {
	s := newScope(graph, node)
	if t, ok := taskrun.TaskFrom(ctx); ok {
		s.task = func() string {
			i := t.Info()
			return fmt.Sprintf("%q", []string{i.Thread, i.Branch, i.Namespace, strconv.Itoa(i.Step), i.Path})
		}
	}
	return s
}

// messageID returns an id for one more message: one that follows from the task and the number of messages that it has
// named, outside a task a random one.
func (s *scope) messageID() string {
	if s.task == nil {
		return uuid.NewString()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.named++
	return s.messagePrefix() + strconv.Itoa(s.named)
}

// messagePrefix begins the ids of all messages that the task names, and of no other task's.
func (s *scope) messagePrefix() string {
	sum := sha256.Sum256([]byte(s.task()))
	return "t-" + hex.EncodeToString(sum[:10]) + "-"
}

// fail keeps the first error: later ones often follow from it.
func (s *scope) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *scope) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// stored is a channel's value as one task read it. All copies of the task's state share it, no other task does.
type stored[T any] struct {
	raw   pregel.Value
	field string
	scope *scope

	once  sync.Once
	value T
}

// get decodes the value once. A nil receiver is an empty channel.
func (s *stored[T]) get() T {
	if s == nil {
		var zero T
		return zero
	}
	s.once.Do(s.decode)
	return s.value
}

func (s *stored[T]) decode() {
	var v T
	if err := jsonfit.Decode(s.raw, &v); err != nil {
		s.scope.fail(&StateError{Graph: s.scope.graph, Node: s.scope.node, Field: s.field,
			Type: jsonfit.TypeName(reflect.TypeFor[T]()), Cause: err})
		return
	}
	s.value = v
}

// change is one write of a node to a reducing channel. Changes form a list from the newest to the oldest that is never
// modified, so that copies of a state struct may go on writing without seeing each other's writes.
type change[U any] struct {
	before    *change[U]
	value     U
	overwrite bool
}

// inOrder returns the changes that count, oldest first: nothing from before the last overwrite does.
func (c *change[U]) inOrder() []*change[U] {
	n := 0
	for at := c; at != nil; at = at.before {
		n++
		if at.overwrite {
			break
		}
	}
	out := make([]*change[U], n)
	for at := c; n > 0; at = at.before {
		n--
		out[n] = at
	}
	return out
}

// overwritten reports whether the changes that count begin with an overwrite.
func overwritten[U any](changes []*change[U]) bool {
	return len(changes) > 0 && changes[0].overwrite
}
