package protocol

import (
	"fmt"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// Misfit says why what the request brings is too much for a run, whose state may have maxState bytes; "" when it is not. Clients ask
// before they send it: what is larger than the server takes in one payload would reach no run, which could say so.
func (r InvokeRequest) Misfit(maxState int) string {
	size := len(r.Input.Value)
	if c := r.Control; c != nil {
		size += writtenBytes(c.Update)
		for _, target := range c.Goto {
			size += len(target.Node) + len(target.Arg)
		}
	}
	if s := r.Settings; s != nil {
		size += len(s.Context) + names(s.Options.InterruptBefore) + names(s.Options.InterruptAfter)
	}
	return misfit("what a run is given to do", size, r.State, maxState)
}

// Misfit is [InvokeRequest.Misfit] of updates of the state.
func (r UpdateStateRequest) Misfit(maxState int) string {
	count, size := 0, names(r.Within)
	for _, updates := range r.Edits {
		for _, u := range updates {
			n, bytes := sizeOf(u)
			count, size = count+n, size+bytes
		}
	}
	if count > MaxUpdates {
		return fmt.Sprintf("a request has at most %d updates, it has %d: send several", MaxUpdates, count)
	}
	return misfit("an update of the state", size, r.State, maxState)
}

// misfit says why a request of that many bytes beside a state does not fit.
func misfit(what string, size int, state pregel.Value, maxState int) string {
	switch most := max(MaxPayloadBytes, maxState); {
	case size > MaxUpdateBytes:
		return fmt.Sprintf("%s has at most %d bytes beside its state, it has %d: keep large values outside and references in the state",
			what, MaxUpdateBytes, size)
	case len(state) > maxState:
		return fmt.Sprintf("the state to begin with has at most %d bytes, it has %d: give the worker a storage, or keep large values outside",
			maxState, len(state))
	case len(state)+size > most:
		return fmt.Sprintf("%s has %d bytes, and the state to begin with %d: together they have at most %d. Give the worker and this program "+
			"a storage, or write less at once", what, size, len(state), most)
	}
	return ""
}

func sizeOf(u graphadapter.StateUpdate) (count, bytes int) {
	count, bytes = 1, len(u.AsNode)+len(u.Input)+writtenBytes(u.Values)
	for _, c := range u.Copied {
		n, b := sizeOf(c)
		count, bytes = count+n, bytes+b
	}
	return count, bytes
}

func writtenBytes(writes []pregel.Write) int {
	size := 0
	for _, w := range writes {
		size += len(w.Channel) + len(w.Value)
	}
	return size
}

func names(all []string) int {
	size := 0
	for _, n := range all {
		size += len(n)
	}
	return size
}
