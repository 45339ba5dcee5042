// Package workflows holds Superstep's Temporal workflows: Graph drives one run of a thread through the pure engine,
// and Desk lets a client ask the workers of a task queue what they serve without leaving a trace.
//
// Everything here is deterministic. Handlers only note what arrived; the main coroutine alone touches the engine, and
// takes in what was noted at fixed points: answers by update before answers by signal, results in the order in which
// their tasks were scheduled.
package workflows
