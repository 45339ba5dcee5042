package superstep

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// inCache stands in a cached result for the task in the ids that it gave to messages. Whoever reuses the result puts its
// own there: otherwise a message would replace the one of the task before instead of coming after it.
const inCache = "t--"

// unnamedMessages and namedMessages are the ways into and out of a cache for a node's writes to these channels.
func unnamedMessages(channels []string) func(context.Context, pregel.Command) (pregel.Command, error) {
	return renamed(channels, func(sc *scope) (from, to string) { return sc.messagePrefix(), inCache })
}

func namedMessages(channels []string) func(context.Context, pregel.Command) (pregel.Command, error) {
	return renamed(channels, func(sc *scope) (from, to string) { return inCache, sc.messagePrefix() })
}

// renamed changes the beginning of the ids of a command's messages.
func renamed(
	channels []string, change func(*scope) (from, to string),
) func(context.Context, pregel.Command) (pregel.Command, error) {
	return func(ctx context.Context, c pregel.Command) (pregel.Command, error) {
		from, to := change(taskScope(ctx, "", ""))
		c.Update = slices.Clone(c.Update)
		for i, w := range c.Update {
			if !slices.Contains(channels, w.Channel) {
				continue
			}
			var messages []map[string]json.RawMessage
			if err := json.Unmarshal(w.Value, &messages); err != nil {
				return c, err
			}
			for _, m := range messages {
				var id string
				if json.Unmarshal(m["id"], &id) == nil && strings.HasPrefix(id, from) {
					m["id"], _ = encodeJSON(to + id[len(from):]) // a string always encodes
				}
			}
			raw, err := encodeJSON(messages)
			if err != nil {
				return c, err
			}
			c.Update[i].Value = raw
		}
		return c, nil
	}
}
