// Package pregel is the superstep engine: a graph is data, a run is a loop over supersteps, and everything that decides what
// happens next is here. Who drives the loop only runs tasks and stores what comes of them.
//
// A [Spec] is a graph as plain data. [Compile] turns a Spec into a [Program], and [Program.Start] begins a [Loop], one run of
// one [Thread]. Ready hands out the tasks that may run now, Deliver takes in their outcomes in any order, and a superstep
// whose tasks have all ended is applied whole:
//
//	program, err := pregel.Compile(spec, nil)
//	loop, err := program.Start(pregel.NewThread(), pregel.Input{Value: input}, pregel.Options{RecursionLimit: 25}, false, nil)
//	for ready := loop.Ready(); len(ready) > 0; ready = loop.Ready() {
//		for _, task := range ready {
//			loop.Deliver(task, run(task)) // in this process, or in an activity
//		}
//	}
//	output := loop.Output() // loop.Status() says whether the run is done, waits for an answer, or failed
//
// # What the engine promises
//
//   - Its rules are those of LangGraph's Pregel loop (channels, versions, triggers, joins, Send, Command, defer, interrupts,
//     recursion limit): the same graph has the same trace. Comments that name a section mean the written semantics.
//   - It is a function of its arguments: no I/O, no clock, no randomness, no map order, no goroutine. The same calls give the
//     same results and the same checkpoint digests. So one engine runs in a test, in a workflow, where it is replayed, and in
//     an activity.
//   - The order in which outcomes arrive changes nothing: writes are applied in task order.
//   - A superstep is applied whole or not at all. An error leaves the newest checkpoint as it was, and a new Loop on the same
//     Thread goes on from there; tasks that have finished do not run again.
//   - A checkpoint is immutable. Its digest sums up every value that led to it, so a changed reducer shows at the next task.
//   - A quiet Loop can be suspended in the middle of a superstep and restored anywhere, and what follows is what would have
//     followed.
//
// # The files, in order of reading
//
//	value       a JSON value
//	messages    one message, and which messages a list has
//	held        a value as channels hold it: lists that grow share their memory
//	task        what is exchanged about a task: Task, Outcome, Command, Question, Answer, NodeError
//	errors      why a run or a call failed, and how errors are stored
//	spec        the graph as data
//	reducer, reducer_messages       append, sum, max, concat, merge; messages
//	digest, grown       the digest of a long value, made from that of the value before; a list that has only grown
//	channel     how a channel takes writes
//	validate    what is wrong with a Spec
//	program     the compiled Spec
//	checkpoint  a thread's state between two supersteps, and its digest
//	apply       one superstep's writes
//	plan        which tasks a checkpoint leads to
//	record      a checkpoint with what is known of its tasks
//	thread      the state of a thread: earlier states, branches, going back
//	walk        the tasks, questions and ledgers of a thread, subgraphs included
//	event       what an observer is told
//	budget      what a thread spends of its budget, and asking for more
//	loop        one run: Ready, Deliver, Status
//	begin       what a run starts with: input, commands, forks
//	run         one task from its start to its end
//	tick        one superstep from its plan to its checkpoint
//	handler     error handlers
//	subgraph    a subgraph's task as a loop within the loop
//	claim       thread-wide keys: one owner at a time, and what is kept under them
//	answers     answers to questions, also at checkpoints that were passed
//	inspect     snapshots for people
//	edit, edit_apply    updates of a thread's state from outside, and what comes of them
//	codec       a stored thread
//	aside, suspend, suspend_bytes, restore, frozen    a stored loop, with its long values beside it or in memory, and going on from it
package pregel
