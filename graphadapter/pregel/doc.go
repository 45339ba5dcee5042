// Package pregel is the pure superstep engine: it decides, everything else only carries.
//
// A [Spec] is a graph as plain data. [Compile] turns it into a [Program], and a [Loop] drives one thread of that
// program: it says which tasks may run now, takes in their outcomes in any order, and applies the writes of a finished
// superstep in task order. The rules are those of LangGraph's Pregel loop (channels, versions, triggers, joins, Send,
// Command, defer, interrupts, recursion limit), so the same graph gives the same trace.
//
// The package does no I/O and reads no clock, no randomness and no map order: the same calls give the same results and
// the same checkpoint digests. That is what lets one engine run in a test, inside a Temporal workflow (where it is
// replayed) and inside an activity.
package pregel
