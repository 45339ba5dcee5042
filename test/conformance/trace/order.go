package trace

import (
	"maps"
	"slices"
)

// InOrder is a recorded result with the interrupts of each tasks chunk sorted: LangGraph lists those of a subgraph's task
// in the order in which its tasks asked, which is not the same each time. The result itself stays as it is.
func InOrder(result any) any {
	fields, ok := result.(map[string]any)
	if !ok {
		return result
	}
	out := maps.Clone(fields)
	if stream, ok := fields["stream"].([]any); ok {
		out["stream"] = streamInOrder(stream)
	}
	if all, ok := fields["substreams"].([]any); ok {
		sorted := make([]any, len(all))
		for i := range all {
			sorted[i] = all[i]
			if pair, ok := all[i].([]any); ok && len(pair) == 2 {
				if stream, ok := pair[1].([]any); ok {
					sorted[i] = []any{pair[0], streamInOrder(stream)}
				}
			}
		}
		out["substreams"] = Sort(sorted)
	}
	return out
}

// streamInOrder is such a stream, sorted again between its values chunks.
func streamInOrder(stream []any) []any {
	out := slices.Clone(stream)
	from := 0
	for i := range out {
		pair, _ := out[i].([]any)
		if len(pair) != 2 {
			return stream
		}
		switch chunk, _ := pair[1].(map[string]any); {
		case pair[0] == "values":
			Sort(out[from:i])
			from = i + 1
		case pair[0] == "tasks" && chunk["interrupts"] != nil:
			asked, _ := chunk["interrupts"].([]any)
			chunk = maps.Clone(chunk)
			chunk["interrupts"] = Sort(slices.Clone(asked))
			out[i] = []any{pair[0], chunk}
		}
	}
	Sort(out[from:])
	return out
}
