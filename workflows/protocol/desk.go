package protocol

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/job"
)

// AdmitRequest asks a desk about a graph.
type AdmitRequest struct {
	Graph string       `json:"graph"`
	Input pregel.Value `json:"input,omitempty"`
	// Edits are updates of the state of the graph at the path Within, as in GraphInput.
	Edits  [][]graphadapter.StateUpdate `json:"edits,omitempty"`
	Within []string                     `json:"within,omitempty"`
	// WithSpec asks for the graph's Spec.
	WithSpec bool `json:"with_spec,omitempty"`
	// Leader asks about a leader instead of a graph.
	Leader string `json:"leader,omitempty"`
	// Control asks whether something may be done to a thread that has no run which could say so.
	Control *approval.ControlCheck `json:"control,omitempty"`
}

// AdmitReply is a desk's answer.
type AdmitReply struct {
	// Serves are the graphs of the worker that answered.
	Serves []string `json:"serves"`
	Known  bool     `json:"known"`
	// Problem says why the input or the updates are refused.
	Problem string       `json:"problem,omitempty"`
	Spec    *pregel.Spec `json:"spec,omitempty"`
	// Print is the fingerprint of the graph as that worker serves it.
	Print string `json:"print,omitempty"`
	// Governs says that what is done to runs is under rules, and Ruling what they say of the Control that was asked about.
	Governs bool             `json:"governs,omitempty"`
	Ruling  *approval.Ruling `json:"ruling,omitempty"`
	// Notices says that the worker tells people outside of questions.
	Notices bool `json:"notices,omitempty"`
	// Leaders are the leaders of the worker that answered, and Experts those of the leader that was asked about.
	Leaders []string      `json:"leaders,omitempty"`
	Experts []job.Profile `json:"experts,omitempty"`
}
