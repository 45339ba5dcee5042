package superstep

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/internal/nearest"
	"superstep.dev/thread"
)

// inputCheck returns a check of JSON input for a graph that accepts these channels: each known, given once, and of the
// channel's type. Its errors are *[thread.Error]s of kind [thread.ErrBadInput] in one line that names every field at fault.
func inputCheck(graph string, fields []schemaField) func(pregel.Value) error {
	byName := make(map[string]*schemaField, len(fields))
	known := make(map[string]bool, len(fields))
	for i := range fields {
		byName[fields[i].name] = &fields[i]
		known[fields[i].name] = true
	}
	return func(raw pregel.Value) error {
		var problems []string
		seen := map[string]bool{}
		err := eachMember(raw, func(name string, v pregel.Value) {
			f, ok := byName[name]
			switch {
			case !ok:
				problems = append(problems, fmt.Sprintf("unknown field %q%s", name, nearest.DidYouMean(name, known)))
			case seen[name]:
				problems = append(problems, fmt.Sprintf("field %q is given twice", name))
			default:
				if err := f.check(v); err != nil {
					problems = append(problems, fieldProblem(name, err))
				}
			}
			seen[name] = true
		})
		if err != nil {
			problems = append(problems, err.Error())
		}
		if len(problems) == 0 {
			return nil
		}
		return &thread.Error{Kind: thread.ErrBadInput, Graph: graph,
			Message: fmt.Sprintf("bad input for graph %q: %s", graph, strings.Join(problems, "; "))}
	}
}

// updateCheck returns a check of writes from outside for a graph with these channels: each of its channel's type. Writes to
// others are the engine's business. Its errors are those of inputCheck.
func updateCheck(graph string, fields []schemaField) func([]pregel.Write) error {
	byName := make(map[string]*schemaField, len(fields))
	for i := range fields {
		byName[fields[i].name] = &fields[i]
	}
	return func(writes []pregel.Write) error {
		var problems []string
		for _, w := range writes {
			if f, ok := byName[w.Channel]; ok {
				if err := f.checkWrite(w); err != nil {
					problems = append(problems, fieldProblem(w.Channel, err))
				}
			}
		}
		if len(problems) == 0 {
			return nil
		}
		return &thread.Error{Kind: thread.ErrBadInput, Graph: graph,
			Message: fmt.Sprintf("bad update for graph %q: %s", graph, strings.Join(problems, "; "))}
	}
}

// checkWrite refuses a write that the channel cannot take: an update, or with Overwrite what the channel holds.
func (f *schemaField) checkWrite(w pregel.Write) error {
	if w.Value == nil {
		w.Value = pregel.Null
	}
	if !w.Overwrite || f.value == f.update {
		return f.check(w.Value)
	}
	return jsonfit.Explain(jsonfit.DecodeStrict(w.Value, reflect.New(f.value).Interface()), f.value, w.Value)
}

func fieldProblem(name string, err error) string {
	var m *jsonfit.Misfit
	if errors.As(err, &m) && m.Path != "" {
		name += "." + m.Path
	}
	return fmt.Sprintf("field %q: %v", name, err)
}

// eachMember calls on for each member of a JSON object, in order, the same name twice included.
func eachMember(raw pregel.Value, on func(name string, v pregel.Value)) error {
	if jsonfit.KindOf(raw) != '{' {
		return fmt.Errorf("expected a JSON object, found %s", jsonfit.Found(raw))
	}
	if !json.Valid(raw) {
		return fmt.Errorf("it is not JSON: %w", json.Unmarshal(raw, new(json.RawMessage)))
	}
	pregel.EachMember(raw, on)
	return nil
}

// encodeInput turns what a caller gives as input into JSON: JSON text as it is, a state struct by what was written to
// it, anything else by encoding/json. Nil is no input.
func encodeInput(graph string, input any) (pregel.Value, error) {
	switch in := input.(type) {
	case nil:
		return nil, nil
	case json.RawMessage:
		return in, nil
	case []byte:
		return in, nil
	}
	raw, err := encodeInputStruct(input)
	if err != nil {
		return nil, &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Cause: err,
			Message: fmt.Sprintf("bad input for graph %q", graph)}
	}
	return raw, nil
}

// InputOf returns what [Graph.Invoke] takes as input as the JSON that [thread.StartRequest] takes. What does not fit the graph is
// an [thread.ErrBadInput].
func InputOf(g Runnable, input any) (json.RawMessage, error) {
	r, err := newStart(g.Adapter(), "", input, runOptions{})
	return r.Input, err
}

func encodeInputStruct(input any) (pregel.Value, error) {
	v := reflect.ValueOf(input)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if !v.IsValid() || !isState(v.Type()) {
		return jsonfit.Encode(input)
	}
	at := reflect.New(v.Type())
	at.Elem().Set(v)
	return schemaOf(v.Type()).update(at.Interface())
}

// update returns what was written to the struct that state points to as one JSON object of updates.
func (s *schema) update(state any) (pregel.Value, error) {
	v := reflect.ValueOf(state).Elem()
	out := pregel.Value("{")
	for i := range s.fields {
		f := &s.fields[i]
		writes, err := f.writes(v, newScope("", ""))
		if err != nil {
			return nil, &StateError{Field: f.name, Type: jsonfit.TypeName(f.value), Write: true, Cause: err}
		}
		if len(writes) == 0 {
			continue
		}
		one, err := f.asOne(writes)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.name, err)
		}
		out = jsonfit.AppendMember(out, f.name, one)
	}
	return append(out, '}'), nil
}

// asOne folds several updates of a field into one that has the same effect.
func (f *schemaField) asOne(writes []pregel.Write) (pregel.Value, error) {
	if writes[0].Overwrite {
		return nil, errors.New("input cannot overwrite: append, add or put instead, or update the thread's state")
	}
	if len(writes) == 1 {
		return writes[0].Value, nil
	}
	updates := make([]pregel.Value, len(writes))
	for i, w := range writes {
		updates[i] = w.Value
	}
	if f.reducer != nil {
		return f.reducer.Reduce(nil, updates)
	}
	reducer, _ := pregel.Builtin(f.spec.Reducer)
	return reducer.Reduce(nil, updates)
}
