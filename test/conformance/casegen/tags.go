package casegen

import (
	"encoding/json"
	"slices"
)

// tagOfKey are the tags of what an object of a case holds, tagOfWord those of the words that stand as op, kind and so on.
var (
	tagOfKey = map[string]string{
		"branches": "branches", "subgraph": "subgraph", "send": "send", "retry": "retry", "defer": "defer",
		"interrupt_before": "static-interrupt", "interrupt_after": "static-interrupt", "from_checkpoint": "time-travel",
		"update_state": "update-state", "command": "commands", "resume_map": "partial-resume", "durability": "durability",
		"__overwrite__": "overwrite", "subgraphs": "substreams", "output": "output",
	}
	tagOfWord = map[string]string{
		"goto": "command", "interrupt": "interrupt", "fail": "failure", "call": "call", "parent": "parent-command",
		"topic": "topic", "topic_accumulate": "topic", "untracked_any": "untracked", "ephemeral_any": "ephemeral",
		"messages": "messages", "merge": "merge", "concat": "concat", "max": "max", "any": "any", "last": "last", "tasks": "tasks-mode",
	}
)

// tagsOf are the tags of a case: which constructs are in it.
func tagsOf(c Doc) []string {
	text, err := json.Marshal(c)
	if err != nil {
		panic("casegen: a drawn case is no JSON: " + err.Error()) // it is made of literals
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		panic("casegen: a drawn case is no JSON: " + err.Error())
	}
	found := map[string]bool{"random": true}
	collect(plain, found)
	out := make([]string, 0, len(found))
	for tag := range found {
		out = append(out, tag)
	}
	slices.Sort(out)
	return out
}

func collect(v any, found map[string]bool) {
	switch v := v.(type) {
	case string:
		if tag := tagOfWord[v]; tag != "" {
			found[tag] = true
		}
	case []any:
		for _, item := range v {
			collect(item, found)
		}
	case map[string]any:
		for k, item := range v {
			if tag := tagOfKey[k]; tag != "" {
				found[tag] = true
			}
			if k == "checkpointer" {
				found[map[bool]string{true: "subgraph-memory", false: "subgraph-stateless"}[item == true]] = true
			}
			if k == "edges" && hasJoin(item) {
				found["join"] = true
			}
			if k != "name" && k != "channel" {
				collect(item, found)
			}
		}
	}
}

// hasJoin reports whether one of the edges waits for several nodes.
func hasJoin(edges any) bool {
	list, _ := edges.([]any)
	return slices.ContainsFunc(list, func(e any) bool {
		ends, _ := e.([]any)
		if len(ends) == 0 {
			return false
		}
		from, several := ends[0].([]any)
		return several && len(from) > 1
	})
}
