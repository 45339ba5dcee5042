package remote

import (
	"maps"
	"slices"

	"superstep.dev/workflows/protocol"
)

// endings are what runs left that had finished, as this client has read it last: a thread's next run begins with it. A run's last event
// never changes.
type endings struct{ remembered[ending] }

// ending is what a thread's newest run left.
type ending struct {
	run  string
	left protocol.GraphResult
}

func (e ending) size() uint64 { return uint64(len(e.left.State)) }

// of returns what a run of a thread left, if that is known.
func (e *endings) of(thread, run string) (protocol.GraphResult, bool) {
	known, ok := e.remembered.of(thread)
	if !ok || known.run != run {
		return protocol.GraphResult{}, false
	}
	left := known.left
	left.Output, left.Life.Refused = maps.Clone(left.Output), slices.Clone(left.Life.Refused)
	return left, true
}
