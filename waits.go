package superstep

import (
	"encoding/json"
	"slices"
	"time"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// WaitView is one task's wait for an event.
type WaitView struct {
	ID    string `json:"id"`
	Event string `json:"event"`
	// Node waits, at superstep Step.
	Node string `json:"node"`
	Step int    `json:"step"`
	// Schema is the JSON schema of the event's value, nil for any JSON.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Due is when the wait is over; zero when it has no end.
	Due time.Time `json:"due,omitzero"`
}

// KeptEventView is an event that the thread keeps for the first wait of its name.
type KeptEventView struct {
	Event string    `json:"event"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at"`
}

func waitViews(waits []pregel.OpenQuestion, due func(question string) time.Time) []WaitView {
	var out []WaitView
	for _, q := range waits {
		out = append(out, WaitView{ID: q.ID, Event: q.Event, Node: q.Node, Step: q.Step, Schema: q.Schema, Due: due(q.ID)})
	}
	return out
}

// dueIn finds when a wait is over.
func dueIn(all []protocol.Due) func(question string) time.Time {
	return func(question string) time.Time {
		at := slices.IndexFunc(all, func(d protocol.Due) bool { return d.Question == question })
		if at < 0 {
			return time.Time{}
		}
		return all[at].At
	}
}

func keptViews(kept []protocol.KeptEvent) []KeptEventView {
	var out []KeptEventView
	for _, k := range kept {
		out = append(out, KeptEventView{Event: k.Name, By: k.By, At: k.At})
	}
	return out
}

// forPeople are the questions that people can answer: the others wait for events.
func forPeople(open []pregel.OpenQuestion) []pregel.OpenQuestion {
	return slices.DeleteFunc(slices.Clone(open), func(q pregel.OpenQuestion) bool { return q.Event != "" })
}

// forEvents are the others.
func forEvents(open []pregel.OpenQuestion) []pregel.OpenQuestion {
	return slices.DeleteFunc(slices.Clone(open), func(q pregel.OpenQuestion) bool { return q.Event == "" })
}

// waitingStatus is the status of a thread whose tasks wait for these.
func waitingStatus(open []pregel.OpenQuestion) Status {
	if len(open) > 0 && len(forPeople(open)) == 0 {
		return StatusWaitingEvent
	}
	return StatusWaiting
}
