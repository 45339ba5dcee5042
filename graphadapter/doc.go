// Package graphadapter is the untyped layer between the pure engine and whoever runs tasks: a [Graph] joins a pregel.Spec with
// the Go functions it names, and a [NodeRequest], a [Progress] and their like are what workflow and activities exchange.
// Package taskrun runs tasks, and whole threads in this process. The typed API of package superstep and the Temporal workflow
// are both built on it.
//
//	graph.go, options.go, retry.go              a graph, and the options of graphs, runs and nodes
//	effect.go, event.go, question.go, cache.go  what nodes do outside, wait for, ask and keep
//	wire.go, stored.go                         what workflow and activities exchange, by value or by reference, and its sizes
//	journal.go, digest.go                       ledgers in this process, executions that were lost; digests of parameters
//	verify.go                                   what a gate is asked, and by which activity
//	errors.go, failure.go, panic.go, misfit.go how functions fail, and how failures are stored
//	serve.go                                    functions that a worker does not have
//	recorder.go                                 who is told of everything that happens to a thread
package graphadapter
