// Package figures names every metric that a worker has of its own, and counts them through Temporal's metrics handler.
//
// Figures of runs are counted by workflow code as it decides, never while it is replayed; figures of executions by the
// activities. So the worker that goes on counts what a lost one began. What is counted is a number; its labels are names that
// the worker's own graphs declare and words of the engine: no thread, no value, no text of a person.
//
//	table   the metrics
//	count   counting
package figures
