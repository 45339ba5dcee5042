package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"superstep.dev/message"
)

// Clerk is a [Model] that follows a rule: of each part that the first message names after its colon it looks at the
// stock, orders what is missing to Full of those below Low, and tells what it did.
//
//	Fill up: bolts, nuts
//
// What it says depends on the conversation alone, as a language model's words should and seldom do.
type Clerk struct{ Low, Full int }

// Next implements [Model].
func (c Clerk) Next(_ context.Context, conversation []message.Message) (message.Message, error) {
	turn := message.Message{ID: fmt.Sprintf("clerk-%d", len(conversation)), Role: message.RoleAssistant}
	results := resultsOf(conversation)
	parts := partsOf(conversation)
	for _, part := range parts {
		seen, looked := results["stock-"+part]
		n, err := strconv.Atoi(seen)
		switch {
		case !looked:
			turn.ToolCalls = append(turn.ToolCalls, call("stock", part, map[string]any{"part": part}))
		case err == nil && n < c.Low && results["order-"+part] == "":
			turn.ToolCalls = append(turn.ToolCalls, call("order", part, Order{part, c.Full - n}))
		}
	}
	if len(turn.ToolCalls) == 0 {
		turn.Content = message.Text(report(parts, results))
	}
	return turn, nil
}

// call asks for a tool, once for each part.
func call(name, part string, arguments any) message.ToolCall {
	raw, _ := json.Marshal(arguments) // strings and numbers always encode
	return message.ToolCall{ID: name + "-" + part, Name: name, Arguments: string(raw)}
}

// partsOf are what the first message asks for.
func partsOf(conversation []message.Message) []string {
	if len(conversation) == 0 {
		return nil
	}
	var parts []string
	_, list, _ := strings.Cut(conversation[0].Content.String(), ":")
	for part := range strings.SplitSeq(list, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// resultsOf are what the tools said, by the calls' ids.
func resultsOf(conversation []message.Message) map[string]string {
	results := map[string]string{}
	for _, m := range conversation {
		if m.Role == message.RoleTool {
			results[m.ToolCallID] = m.Content.String()
		}
	}
	return results
}

func report(parts []string, results map[string]string) string {
	lines := make([]string, len(parts))
	for i, part := range parts {
		lines[i] = part + ": " + results["stock-"+part]
		if said := results["order-"+part]; said != "" {
			lines[i] += ", " + said
		}
	}
	return strings.Join(lines, "\n")
}
