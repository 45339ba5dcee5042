// Package tracing names the spans of runs, and tells of them through OpenTelemetry.
//
// A run is replayed, given over to other workers, and continued as a new one, and what tells of it dies in the middle. So the id
// of a span is made of the name of what it is of: run, superstep, task, execution, call. Whoever tells of a thing gives it the same
// id and the same parent, and a span may be the parent of others before anybody has told of it. Spans of runs, supersteps, tasks and
// questions are told by workflow code when they have ended, never while it is replayed; those of attempts and calls by the worker
// that makes them.
//
// Temporal's own go.temporal.io/sdk/contrib/opentelemetry is not used: it tells of workflows and activities and of nothing within
// them, ends the span of a workflow before that has done anything, and makes random ids, so that a replay on another worker
// begins other spans. Nor does it know of supersteps that one activity runs, of tasks that are several activities, or of calls.
//
//	trace    a run's place in a trace, and the ids of what is in it
//	tracer   telling
//	words    names of spans and attributes
package tracing
