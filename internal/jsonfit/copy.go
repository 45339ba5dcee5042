package jsonfit

import (
	"encoding/json"
	"reflect"
	"sync"
	"time"
)

// copyPlan says how a decoded value of one type is copied for one more reader: the two share nothing that either can
// change.
type copyPlan struct {
	// able is false for a type whose values may hold what cannot be copied, or that decodes itself: what its decoding
	// shares or remembers is unknown. Such values are decoded for each reader.
	able bool
	// deep makes the copy in to, a settable zero value. Nil means that an assignment is a copy: strings, numbers, bools,
	// and structs and arrays of these.
	deep func(to, from reflect.Value)
}

// copies remembers the plans: reflect.Type → *copyPlan.
var copies sync.Map

// copyPlanOf returns the plan of a type.
func copyPlanOf(t reflect.Type) *copyPlan {
	if known, ok := copies.Load(t); ok {
		return known.(*copyPlan)
	}
	plan := planCopy(t, map[reflect.Type]*copyPlan{})
	copies.Store(t, plan)
	return plan
}

// alone are the types of [DecodesAlone].
var alone sync.Map // reflect.Type → true

// DecodesAlone says of a type with an UnmarshalJSON that nothing but the text has a part in what that makes, and that two
// values of one text share nothing: such values can be copied like those of any other type. It is for package variables.
func DecodesAlone[T any]() bool {
	alone.Store(reflect.TypeFor[T](), true)
	return true
}

var _ = DecodesAlone[json.RawMessage]()

// decodesItself reports whether JSON is decoded by the type and not by its kind.
func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(jsonUnmarshaler) || p.Implements(textUnmarshaler)
}

// planCopy makes a plan. Under way are those of the types around t: a type may hold itself.
func planCopy(t reflect.Type, underWay map[reflect.Type]*copyPlan) *copyPlan {
	if plan, ok := underWay[t]; ok {
		return plan
	}
	plan := &copyPlan{able: true}
	underWay[t] = plan
	if t == reflect.TypeFor[time.Time]() { // it points to its location, which nobody can change
		return plan
	}
	if _, known := alone.Load(t); !known && decodesItself(t) {
		plan.able = false
		return plan
	}
	switch k := t.Kind(); {
	case k >= reflect.Bool && k <= reflect.Float64 && k != reflect.Uintptr, k == reflect.String:
	case k == reflect.Struct:
		plan.ofStruct(t, underWay)
	case k == reflect.Array:
		plan.ofArray(planCopy(t.Elem(), underWay))
	case k == reflect.Slice:
		plan.ofSlice(t, underWay)
	case k == reflect.Map:
		plan.ofMap(t, underWay)
	case k == reflect.Pointer:
		plan.ofPointer(t, underWay)
	case k == reflect.Interface && t.NumMethod() == 0:
		plan.deep = func(to, from reflect.Value) {
			if !from.IsNil() {
				to.Set(reflect.ValueOf(copyAny(from.Interface())))
			}
		}
	default:
		plan.able = false
	}
	return plan
}

// ofStruct copies the struct as a whole, and then what its fields point to. Nobody but its package can set an unexported
// field, so such a field has to be copied by the assignment.
func (p *copyPlan) ofStruct(t reflect.Type, underWay map[reflect.Type]*copyPlan) {
	deep := map[int]*copyPlan{}
	for i := range t.NumField() {
		of := planCopy(t.Field(i).Type, underWay)
		p.able = p.able && of.able && (of.deep == nil || t.Field(i).IsExported())
		if of.deep != nil {
			deep[i] = of
		}
	}
	if len(deep) == 0 {
		return
	}
	p.deep = func(to, from reflect.Value) {
		to.Set(from)
		for i, of := range deep {
			to.Field(i).SetZero()
			of.deep(to.Field(i), from.Field(i))
		}
	}
}

func (p *copyPlan) ofArray(element *copyPlan) {
	p.able = element.able
	if element.deep == nil {
		return
	}
	p.deep = func(to, from reflect.Value) {
		for i := range from.Len() {
			element.deep(to.Index(i), from.Index(i))
		}
	}
}

// ofSlice, like ofMap and ofPointer, says first that there is something to copy: the elements may hold such slices, whose
// plan is this one.
func (p *copyPlan) ofSlice(t reflect.Type, underWay map[reflect.Type]*copyPlan) {
	var element *copyPlan
	p.deep = func(to, from reflect.Value) {
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeSlice(t, from.Len(), from.Len()))
		if element.deep == nil {
			reflect.Copy(to, from)
			return
		}
		for i := range from.Len() {
			element.deep(to.Index(i), from.Index(i))
		}
	}
	element = planCopy(t.Elem(), underWay)
	p.able = element.able
}

func (p *copyPlan) ofMap(t reflect.Type, underWay map[reflect.Type]*copyPlan) {
	var element *copyPlan
	p.deep = func(to, from reflect.Value) {
		if from.IsNil() {
			return
		}
		to.Set(reflect.MakeMapWithSize(t, from.Len()))
		for entry := from.MapRange(); entry.Next(); {
			v := entry.Value()
			if element.deep != nil {
				v = reflect.New(t.Elem()).Elem()
				element.deep(v, entry.Value())
			}
			to.SetMapIndex(entry.Key(), v)
		}
	}
	key := planCopy(t.Key(), underWay)
	element = planCopy(t.Elem(), underWay)
	p.able = key.able && key.deep == nil && element.able
}

func (p *copyPlan) ofPointer(t reflect.Type, underWay map[reflect.Type]*copyPlan) {
	var element *copyPlan
	p.deep = func(to, from reflect.Value) {
		if from.IsNil() {
			return
		}
		to.Set(reflect.New(t.Elem()))
		if element.deep == nil {
			to.Elem().Set(from.Elem())
			return
		}
		element.deep(to.Elem(), from.Elem())
	}
	element = planCopy(t.Elem(), underWay)
	p.able = element.able
}

// copyAny copies what JSON decodes into an any.
func copyAny(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = copyAny(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = copyAny(v[k])
		}
		return out
	}
	return v
}
