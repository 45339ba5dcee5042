// Package runtime is what the two runtimes of threads have in common: memory in this process, and remote on a Temporal server.
//
//	runtime.go  [Runtime], what a runtime does, and [Start], a request for a run
//	rest.go     [Rest], how a run rests
//	check.go    requests that no runtime takes; the question that an answer is for; updates of the state, held against the graph
//	refusal.go  what callers are told of a request that is refused
//	views.go    questions, waits, approvals and effects as people see them
//	state.go    states and histories as people see them, and what the engine's events tell beyond checkpoints
package runtime
