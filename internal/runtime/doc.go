// Package runtime is what the two runtimes of threads have in common: memory in this process, and remote on a Temporal server.
//
//	runtime.go  [Runtime], what a runtime does, and [Start], a request for a run
//	check.go    requests that no runtime takes
//	refusal.go  what callers are told of a request that is refused
//	match.go    the question that an answer is for
//	update.go   updates of the state, held against the graph
//	views.go    questions, waits, approvals and effects as people see them
//	state.go    states and histories as people see them
//	trace.go    what the engine's events tell beyond its checkpoints
package runtime
