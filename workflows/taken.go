package workflows

import (
	"encoding/json"
	"superstep.dev/workflows/protocol"
)

// maxTaken bounds the requests that a run recognises when they are repeated. The server takes 2,000 updates for one run.
const maxTaken = 1000

// took notes an update and its outcome.
func (b *inbox) took(update, id string, reply any) {
	if id == "" {
		return
	}
	note := protocol.Taken{Update: update, ID: id}
	if reply != nil {
		if text, err := json.Marshal(reply); err == nil {
			note.Reply = text
		}
	}
	b.taken = append(b.taken, note)
	if len(b.taken) > maxTaken {
		b.taken = append(b.taken[:0:0], b.taken[len(b.taken)-maxTaken:]...)
	}
}

// isRepeat reports whether a call repeats what was taken, rather than being the call that was: the server may bring that
// again, when its outcome was lost. Who does not name calls is told that a request was taken before.
func isRepeat(call, taken string) bool { return call == "" || call != taken }

// again reports whether an update was taken before, and reads its outcome into reply unless that is nil.
func (b *inbox) again(update, id string, reply any) bool {
	if id == "" {
		return false
	}
	for _, t := range b.taken {
		if t.Update == update && t.ID == id {
			return reply == nil || json.Unmarshal(t.Reply, reply) == nil
		}
	}
	return false
}
