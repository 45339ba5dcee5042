package superstep

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
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
	bind(s *scope, field string, raw pregel.Held)
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
	// decoded is what the tasks of one driver have decoded of the state, a jsonfit.Kept by decodedField; nil for nothing.
	decoded *sync.Map

	mu    sync.Mutex
	err   error
	named int // messages
}

func newScope(graph, node string) *scope { return &scope{graph: graph, node: node} }

// taskScope is the scope of the task that ctx belongs to.
func taskScope(ctx context.Context, graph, node string) *scope {
	s := newScope(graph, node)
	if t, ok := taskrun.TaskFrom(ctx); ok {
		s.decoded = t.Decoded()
		s.task = func() string {
			i := t.Info()
			return fmt.Sprintf("%q", []string{i.Origin, i.Thread, i.Branch, i.Namespace, strconv.Itoa(i.Step), i.Path})
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
	raw   pregel.Held
	field string
	scope *scope
	// copies says that the field hands out nothing but copies of the value, a list or a map.
	copies bool

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
	var err error
	if kept := s.kept(); kept != nil {
		v, err = kept.Decode(s.raw, s.copies)
	} else {
		err = jsonfit.Decode(s.raw.Value(), &v)
	}
	if err != nil {
		s.scope.fail(&StateError{Graph: s.scope.graph, Node: s.scope.node, Field: s.field,
			Type: jsonfit.TypeName(reflect.TypeFor[T]()), Cause: err})
		return
	}
	s.value = v
}

// decodedField names what a driver keeps decoded: a field of a graph, as one Go type.
type decodedField struct {
	graph, field string
	typ          reflect.Type
}

// kept is the field's value as tasks of the same driver have decoded it; nil where nothing is kept.
func (s *stored[T]) kept() *jsonfit.Kept[T] {
	if s.scope.decoded == nil || s.raw.Len() < jsonfit.MinKept || !jsonfit.CanKeep[T]() {
		return nil
	}
	key := decodedField{s.scope.graph, s.field, reflect.TypeFor[T]()}
	at, ok := s.scope.decoded.Load(key)
	if !ok {
		at, _ = s.scope.decoded.LoadOrStore(key, &jsonfit.Kept[T]{})
	}
	return at.(*jsonfit.Kept[T])
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

// field is what the fields of a state have in common that take several writes of one task: the value V that the task read, and its
// writes U.
type field[V, U any] struct {
	read  *stored[V]
	local *change[U]
}

// IsZero reports whether the field was neither read nor written.
func (f field[V, U]) IsZero() bool { return f.read == nil && f.local == nil }

func (f *field[V, U]) bind(s *scope, name string, raw pregel.Held) {
	*f = field[V, U]{read: &stored[V]{raw: raw, field: name, scope: s}}
}

func (f *field[V, U]) load() { f.read.get() }

func (f *field[V, U]) write(u U, overwrite bool) {
	f.local = &change[U]{before: f.local, value: u, overwrite: overwrite}
}

// encoded is the value as it was read, or what get makes of it and the task's writes.
func (f field[V, U]) encoded(get func() V) (pregel.Value, error) {
	if f.local == nil && f.read != nil {
		return f.read.raw.Value(), nil
	}
	return jsonfit.Encode(get())
}

// eachWritten is a write for each change.
func eachWritten[U any](changes []*change[U]) ([]pregel.Write, error) {
	out := make([]pregel.Write, len(changes))
	for i, w := range changes {
		raw, err := jsonfit.Encode(w.value)
		if err != nil {
			return nil, err
		}
		out[i].Value = raw
	}
	return out, nil
}

// unmarshal decodes a value and hands it to write.
func unmarshal[V any](data []byte, write func(V)) error {
	var v V
	if err := jsonfit.Decode(data, &v); err != nil {
		return err
	}
	write(v)
	return nil
}

// overwritten reports whether the changes that count begin with an overwrite.
func overwritten[U any](changes []*change[U]) bool {
	return len(changes) > 0 && changes[0].overwrite
}

// single is the common part of the channels that hold one value and are written by setting it.
type single[T any] struct {
	read *stored[T]
	set  *T
}

// Get returns the value: the one set last in this node, else the one that the task read, else T's zero value. It is
// decoded at the first call. What T points to is shared by the copies of this state, so change it only to Set it. A
// stored value that is not a T fails the task with a *[StateError] after the node returned; Get returns the zero value
// then. Numbers inside an any are json.Number, so that int64 survives exactly.
func (c single[T]) Get() T {
	if c.set != nil {
		return *c.set
	}
	return c.read.get()
}

// IsSet reports whether the channel has a value. An explicit null is one.
func (c single[T]) IsSet() bool { return c.set != nil || c.read != nil }

// IsZero reports whether the channel has no value; the json option omitzero follows it.
func (c single[T]) IsZero() bool { return !c.IsSet() }

// Set writes the value. Several calls in one node are one write, of the last value. It is encoded when the node
// returns.
func (c *single[T]) Set(v T) { c.set = &v }

// String returns the value as fmt prints it, or "unset".
func (c single[T]) String() string {
	if !c.IsSet() {
		return "unset"
	}
	return fmt.Sprint(c.Get())
}

// MarshalJSON returns the value's JSON, null while there is none.
func (c single[T]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON sets the value.
func (c *single[T]) UnmarshalJSON(data []byte) error { return unmarshal(data, c.Set) }

func (c *single[T]) bind(s *scope, field string, raw pregel.Held) {
	*c = single[T]{read: &stored[T]{raw: raw, field: field, scope: s}}
}

func (c *single[T]) load() { c.read.get() }

func (c *single[T]) written() ([]pregel.Write, error) {
	if c.set == nil {
		return nil, nil
	}
	raw, err := jsonfit.Encode(*c.set)
	return []pregel.Write{{Value: raw}}, err
}

// encode hands on what was read as it is: it may have more fields than T knows.
func (c single[T]) encode() (pregel.Value, error) {
	switch {
	case c.set != nil:
		return jsonfit.Encode(*c.set)
	case c.read != nil:
		return c.read.raw.Value(), nil
	}
	return pregel.Null, nil
}

func (c *single[T]) declareAs(kind pregel.Kind, name string, o fieldOptions) (declaration, error) {
	if o.accumulate {
		return declaration{}, errAccumulate
	}
	if o.unguarded && kind != pregel.KindEphemeral && kind != pregel.KindUntracked {
		return declaration{}, errUnguarded
	}
	t := reflect.TypeFor[T]()
	return declaration{
		spec:  pregel.ChannelSpec{Name: name, Kind: kind, Unguarded: o.unguarded},
		value: t, update: t,
		check: jsonfit.CheckSingle[T],
	}, nil
}

// Value is a state field that holds the last value written (LangGraph's LastValue). Two nodes that set it in the same
// superstep are an error of the run; make the field a reducing one, such as [List], or let one node write it.
type Value[T any] struct{ single[T] }

func (c *Value[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindLast, name, o)
}

// AnyValue is a state field that holds the last value written in task order (LangGraph's AnyValue): several nodes may
// set it in one superstep, meant for when they all set the same. A superstep without a write to it empties it.
type AnyValue[T any] struct{ single[T] }

func (c *AnyValue[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindAny, name, o)
}

// Ephemeral is a state field whose value is visible only in the superstep after the write (LangGraph's
// EphemeralValue). Two writes in one superstep are an error, unless the field has the tag `superstep:"unguarded"`: then
// the last in task order stays.
type Ephemeral[T any] struct{ single[T] }

func (c *Ephemeral[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindEphemeral, name, o)
}

// Untracked is a state field that is kept during a run but never part of a checkpoint (LangGraph's UntrackedValue):
// after an interrupt or a crash it is empty. The tag `superstep:"unguarded"` lets several writes of one superstep
// through; the last in task order stays.
type Untracked[T any] struct{ single[T] }

func (c *Untracked[T]) declare(name string, o fieldOptions) (declaration, error) {
	return c.declareAs(pregel.KindUntracked, name, o)
}

// customReducer is a user's reducer as the engine takes it, comparable so that two uses of one name can be told apart.
type customReducer interface {
	pregel.Reducer
	implementation() reflect.Type
}

var (
	errAccumulate = errors.New(`the tag superstep:"accumulate" is for superstep.Topic only`)
	errUnguarded  = errors.New(`the tag superstep:"unguarded" is for superstep.Ephemeral and superstep.Untracked only`)
)

// none refuses every option.
func (o fieldOptions) none() error {
	switch {
	case o.accumulate:
		return errAccumulate
	case o.unguarded:
		return errUnguarded
	}
	return nil
}
