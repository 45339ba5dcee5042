// Package host is one execution of one task in an activity of its own, without Temporal: what its heartbeats carry, what
// an execution before has left to it, and how it ends. The activity sends the heartbeats and turns the end into its own.
//
// A task's calls, its attempts and its timeouts are those of package taskrun, in whose [taskrun.Outbox] they are recorded;
// a segment runs its tasks in the same way. What differs is where an outbox is stored, and who waits between two attempts:
// [Task] and a segment are a [taskrun.Store] each.
package host
