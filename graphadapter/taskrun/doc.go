// Package taskrun runs tasks: their attempts, what they ask, remember and do outside, and the threads of this process.
//
// # One task
//
// [RunTask] takes a task to its outcome. It makes attempts until one is the last, as the node's retry policy says, each
// within the node's timeouts. In an attempt the node sees a [TaskRun] through its context: the calls that it has remembered,
// its effects, its questions.
//
// What a task does outside is in its [Outbox] before the task goes on: an effect is called only when its intent is stored.
// The [Store] behind an Outbox is the only thing in which hosts differ. In memory there is none, a segment keeps the outboxes
// of all its tasks in its own heartbeats, and package host keeps one in those of a node's activity.
//
// # One loop
//
// A [Driver] runs the tasks of a loop: those of a thread in memory ([Memory]), of a segment, of a graph that a node's code has
// called, and of the crash matrix of package graphtest. Its [Runner] says how a task runs, its [Guard] when.
//
// # Where things are
//
//	task.go, attempt.go, execute.go, run_task.go   one task: its attempts, and what comes of them
//	env.go, outbox.go, yield.go                    what a host gives a task, its journal, timeouts, tasks that begin again
//	ask.go, memo.go, branch.go, cached.go          what a node asks, remembers and emits; branches; cached results
//	effect*.go, call.go, ruling.go                 effects: the call, looking up, undoing, what people rule
//	approve*.go                                    approvals that a node asks for, or an effect
//	compensate.go, undo.go                         undoing what a cancelled run did outside
//	drive.go, inline.go, nested.go, memory*.go     loops in this process: threads, segments, graphs within nodes
//	fit.go, spend.go                               sizes; what a task spends
package taskrun
