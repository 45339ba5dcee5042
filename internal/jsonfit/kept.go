package jsonfit

import (
	"reflect"
	"sync"

	"superstep.dev/graphadapter/pregel"
)

// MinKept is the size from which on it is worth while to keep a decoded value. To decode a smaller one costs no more than
// to find it.
const MinKept = 1 << 10

// Kept is the newest decoded value of a text that many read and that grows. Whoever reads brings what is held, so what is
// found is always what that decodes into. The zero value has none. It is safe for concurrent use.
type Kept[T any] struct {
	mu    sync.Mutex
	raw   pregel.Held // none before the first
	value T           // of raw; nobody changes it, and a longer list has the same elements in front
}

// CanKeep reports whether values of T can be kept: they can be copied, and decode alone.
func CanKeep[T any]() bool { return copyPlanOf(reflect.TypeFor[T]()).able }

// Decode is [Decode] into a value of the caller's own. With inner the caller promises to change only what the elements of
// the list or map hold, and not the list or map itself.
func (k *Kept[T]) Decode(raw pregel.Held, inner bool) (own T, err error) {
	v, err := k.shared(raw)
	t := reflect.TypeFor[T]()
	plan := copyPlanOf(t)
	if err != nil || plan.deep == nil || inner && copyPlanOf(t.Elem()).deep == nil {
		return v, err
	}
	plan.deep(reflect.ValueOf(&own).Elem(), reflect.ValueOf(&v).Elem())
	return own, nil
}

// bytes is the size of the text whose value is kept.
func (k *Kept[T]) bytes() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.raw.Len()
}

// KeptBytes is the size of the texts whose values a map keeps, each in a [Kept]: values take two or three times as much.
func KeptBytes(values *sync.Map) (bytes uint64) {
	for _, one := range values.Range {
		if kept, ok := one.(interface{ bytes() int }); ok {
			bytes += uint64(kept.bytes())
		}
	}
	return bytes
}

// shared returns what raw decodes into, for reading.
func (k *Kept[T]) shared(raw pregel.Held) (T, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if more, ok := raw.Beyond(k.raw); ok && !k.raw.IsNone() && (more == nil || k.grow(more)) {
		k.raw = raw // at its newest place in memory it is found again at once
		return k.value, nil
	}
	var v T
	if err := Decode(raw.Value(), &v); err != nil {
		return v, err
	}
	k.raw, k.value = raw, v
	return v, nil
}

// grow adds the elements that a list has more. It reports false without a change where it cannot: then the whole of the list is
// decoded, which also says what is wrong with it. A slice that decodes itself need not have the elements of the list: a
// json.RawMessage has the bytes of its text.
func (k *Kept[T]) grow(elements pregel.Value) bool {
	value := reflect.ValueOf(&k.value).Elem()
	if value.Kind() != reflect.Slice || value.Len() == 0 || decodesItself(value.Type()) {
		return false
	}
	more := reflect.New(value.Type())
	if Decode(elements, more.Interface()) != nil || more.Elem().Len() == 0 {
		return false
	}
	value.Set(reflect.AppendSlice(value, more.Elem())) // behind what others have of it
	return true
}
