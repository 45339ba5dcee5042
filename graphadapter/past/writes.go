package past

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"superstep.dev/graphadapter/pregel"
)

// WritesOf turns a JSON object of channels into the writes of an update, in the order of their names. To a channel with a
// reducer the value {"__overwrite__": v} sets v instead of being reduced into what is there. null gives no writes. A function's object is any JSON: what it is to
// have returned and kept.
func WritesOf(spec *pregel.Spec, object pregel.Value) ([]pregel.Write, error) {
	if pregel.IsNull(object) {
		return nil, nil
	}
	if spec.Function {
		return pregel.FunctionWrites(object, object), nil
	}
	reduces := map[string]bool{}
	for _, ch := range spec.Channels {
		reduces[ch.Name] = ch.Kind == pregel.KindReduce
	}
	var fields map[string]pregel.Value
	if err := json.Unmarshal(object, &fields); err != nil {
		return nil, fmt.Errorf("the values of an update must be a JSON object of channels: %w", err)
	}
	writes := make([]pregel.Write, 0, len(fields))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		w := pregel.Write{Channel: name, Value: fields[name]}
		if inner, ok := overwritten(fields[name]); ok && reduces[name] {
			w.Value, w.Overwrite = inner, true
		}
		writes = append(writes, w)
	}
	return writes, nil
}

// overwritten returns what {"__overwrite__": v} sets a channel to.
func overwritten(v pregel.Value) (pregel.Value, bool) {
	if len(v) == 0 || v[0] != '{' {
		return nil, false
	}
	var fields map[string]pregel.Value
	if err := json.Unmarshal(v, &fields); err != nil || len(fields) != 1 {
		return nil, false
	}
	inner, ok := fields["__overwrite__"]
	return inner, ok
}
