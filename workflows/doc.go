// Package workflows holds Superstep's Temporal workflows: Graph drives one run of a thread through the pure engine,
// and Desk lets a client ask the workers of a task queue what they serve without leaving a trace.
//
// Everything here is deterministic. Handlers only note what arrived; the main coroutine alone touches the engine, and
// takes in what was noted at fixed points: answers by update before answers by signal, results in the order in which
// their tasks were scheduled.
//
// # The files, in order of reading
//
//	traced                  spans of a run
//	graphs                  what a worker serves
//	bounds                  what is sent to a run
//	checkpoints             what is kept of a run, and handed back
//	counted                 the worker's figures of a run
//	engine                  the thread, and the loop that drives it
//	room                    how long the history and a superstep may get
//	inputs, outcome, tasks  tasks as activities, and what an execution that was lost may have done
//	segment, delivery
//	gate                    asking rules, telling people
//	listed                  what lists and Temporal's screens show
//	people                  what arrives, and what the run's life decides about that
//	updates, waiters, compensation, queries
//	run                     what a run is made of
//	signals, close, continue, rest, handlers
//	beginning               how runs begin
//	graph                   the workflows
package workflows
