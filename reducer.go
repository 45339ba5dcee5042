package superstep

import (
	"fmt"
	"reflect"
	"regexp"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// Reducer folds an update into the value of a [Reduced] field. Implementations are used as their zero value, so they
// are types without fields, and they must be pure: the engine runs them inside workflow code and replays them.
type Reducer[T any] interface {
	// Name is the reducer's name with its version, such as "sections.longest/v1": lower case letters, digits, dots,
	// dashes and underscores, then /v and a number. Changed behaviour needs a new name, because runs in flight go on
	// with the name that they were started with. Names of the engine's own reducers, such as "sum/v1", are taken.
	Name() string
	// Reduce returns current with update folded in. It must not keep or change what its arguments point to. An error
	// fails the superstep with nothing of it applied.
	Reduce(current, update T) (T, error)
}

var reducerName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*/v[0-9]+$`)

// reducerOf adapts the reducer R over T to the engine's JSON values.
type reducerOf[T any, R Reducer[T]] struct{}

func (reducerOf[T, R]) implementation() reflect.Type { return reflect.TypeFor[R]() }

func (reducerOf[T, R]) Name() string {
	var r R
	return r.Name()
}

// Zero follows LangGraph: a type that has an obvious empty value starts with it, any other starts without a value.
func (reducerOf[T, R]) Zero() pregel.Value {
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return pregel.Value("[]")
		}
		return pregel.Value(`""`)
	case reflect.Map:
		return pregel.Value("{}")
	case reflect.String:
		return pregel.Value(`""`)
	case reflect.Bool:
		return pregel.Value("false")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return pregel.Value("0")
	}
	return nil
}

// Reduce takes the first update as it is when the channel has no value (LangGraph's rule for such channels).
func (reducerOf[T, R]) Reduce(current pregel.Value, updates []pregel.Value) (pregel.Value, error) {
	var (
		r     R
		value T
		empty = current == nil
	)
	if !empty {
		if err := jsonfit.Decode(current, &value); err != nil {
			return nil, fmt.Errorf("cannot read the current value as %s: %w", jsonfit.TypeName(reflect.TypeFor[T]()), err)
		}
	}
	for _, raw := range updates {
		var update T
		if err := jsonfit.Decode(raw, &update); err != nil {
			return nil, fmt.Errorf("cannot read the update %s as %s: %w", jsonfit.Found(raw), jsonfit.TypeName(reflect.TypeFor[T]()), err)
		}
		if empty {
			value, empty = update, false
			continue
		}
		var err error
		if value, err = r.Reduce(value, update); err != nil {
			return nil, err
		}
	}
	return jsonfit.Encode(value)
}

// Reduced is a state field folded by a reducer of yours (KindReduce with R's name). Before the first write it has T's
// zero value if T is a slice, map, string, number or bool, and no value otherwise.
type Reduced[T any, R Reducer[T]] struct {
	field[T, T]
}

// Get returns the value with this node's own writes folded in. What it points to is shared by the copies of this
// state. A stored value that is not a T, and an error of the reducer, fail the task after the node returned.
func (c Reduced[T, R]) Get() T {
	v, err := c.view()
	if err != nil && c.read != nil {
		c.read.scope.fail(&StateError{Graph: c.read.scope.graph, Node: c.read.scope.node, Field: c.read.field,
			Type: jsonfit.TypeName(reflect.TypeFor[T]()), Cause: err})
	}
	return v
}

// view starts from a value of its own: a reducer that changes its argument in place must not change what was read.
func (c Reduced[T, R]) view() (T, error) {
	changes := c.local.inOrder()
	if len(changes) == 0 {
		return c.read.get(), nil
	}
	var value T
	raw, err := c.folded(changes)
	if err != nil {
		return value, err
	}
	return value, jsonfit.Decode(raw, &value)
}

// folded runs the changes through the engine's view of the reducer: the node sees what the run will see.
func (c Reduced[T, R]) folded(changes []*change[T]) (pregel.Value, error) {
	updates := make([]pregel.Value, len(changes))
	for i, w := range changes {
		raw, err := jsonfit.Encode(w.value)
		if err != nil {
			return nil, err
		}
		updates[i] = raw
	}
	var current pregel.Value
	switch {
	case overwritten(changes):
		current, updates = updates[0], updates[1:]
	case c.read != nil:
		current = c.read.raw.Value()
	default:
		current = reducerOf[T, R]{}.Zero()
	}
	if len(updates) == 0 {
		return current, nil
	}
	return reducerOf[T, R]{}.Reduce(current, updates)
}

// Write writes an update for the reducer. It is encoded when the node returns.
func (c *Reduced[T, R]) Write(update T) { c.write(update, false) }

// Overwrite replaces the value and drops what siblings write in the same superstep; two overwrites of a channel in one
// superstep are an error of the run. What this node writes afterwards is folded into the replacement.
func (c *Reduced[T, R]) Overwrite(v T) {
	c.write(v, true)
}

// String returns the value as fmt prints it.
func (c Reduced[T, R]) String() string { return fmt.Sprint(c.Get()) }

// MarshalJSON returns the value with this node's own writes folded in.
func (c Reduced[T, R]) MarshalJSON() ([]byte, error) { return c.encode() }

// UnmarshalJSON writes an update.
func (c *Reduced[T, R]) UnmarshalJSON(data []byte) error {
	return unmarshal(data, c.Write)
}

func (c *Reduced[T, R]) declare(name string, o fieldOptions) (declaration, error) {
	reducer := reducerOf[T, R]{}
	if t := reflect.TypeFor[R](); t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return declaration{}, fmt.Errorf("the reducer %s has no usable zero value: use a type without fields",
			jsonfit.TypeName(t))
	}
	if !reducerName.MatchString(reducer.Name()) {
		return declaration{}, fmt.Errorf("the reducer %s has the name %q: it needs a version, such as \"longest/v1\"",
			jsonfit.TypeName(reducer.implementation()), reducer.Name())
	}
	if _, taken := pregel.Builtin(reducer.Name()); taken {
		return declaration{}, fmt.Errorf("the reducer %s has the name %q, which is one of the engine's own",
			jsonfit.TypeName(reducer.implementation()), reducer.Name())
	}
	t := reflect.TypeFor[T]()
	return declaration{
		spec:    pregel.ChannelSpec{Name: name, Kind: pregel.KindReduce, Reducer: reducer.Name()},
		reducer: reducer,
		value:   t, update: t,
		check: jsonfit.CheckSingle[T],
	}, o.none()
}

func (c *Reduced[T, R]) written() ([]pregel.Write, error) {
	changes := c.local.inOrder()
	if overwritten(changes) {
		raw, err := c.folded(changes)
		return []pregel.Write{{Value: raw, Overwrite: true}}, err
	}
	return eachWritten(changes)
}

func (c Reduced[T, R]) encode() (pregel.Value, error) {
	changes := c.local.inOrder()
	switch {
	case len(changes) > 0:
		return c.folded(changes)
	case c.read != nil:
		return c.read.raw.Value(), nil
	}
	if zero := (reducerOf[T, R]{}).Zero(); zero != nil {
		return zero, nil
	}
	return pregel.Null, nil
}
