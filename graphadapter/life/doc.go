// Package life decides what a run owes to people and to time: answers, votes, deadlines and silence, events and their waits,
// pauses, drains, retries and cancellations, effects that are undone, what people outside are told, requests that are repeated,
// who may do what, and the audit of all of it.
//
// The package is pure. It has no clock, no I/O, no goroutines and no Temporal: a [Run] is told what somebody asks for, what a
// gate has said of that, and what time it is. So a thread lives by the same rules in memory and on Temporal, and a replay
// comes to the same result.
//
// # How a host drives it
//
// A host carries. It receives a message and gives it to [Run.Take] as a [Command]. Where the command has to be proven, the
// [Turn] that comes back says what a gate is to be asked, and [Run.Ruled] goes on with the gate's word:
//
//	turn := run.Take(life.Pause{ID: "p-1", By: "ann", Reason: "the books are closed"}, now)
//	for turn.Asks() {
//		turn = run.Ruled(turn, ask(turn), now)
//	}
//	do(turn.Actions)               // entries of the audit, what lists show, the end of the run
//	return turn.Reply, turn.Err
//
// After whatever may have changed what the run asks, and when [Run.Due] has come, the host calls [Run.Attend]. Between
// supersteps it looks whether [Run.GoesOn], and gives the engine [Run.Given]. [Run.State] is what a host stores; whatever
// continues the run is given that as one value.
//
// # Promises
//
//   - A command is done as a whole or not at all.
//   - A command that was taken is recognised when it comes again, by its id, and gets the same outcome.
//   - A token counts once on a thread.
//   - What anybody can send is bounded, and so is what a run keeps of it.
//
// # The files, in order of reading
//
//	refusal          why a command is not done
//	entries, trail   the thread's audit
//	answer, state    what is stored
//	run              what looks at a thread and at time
//	notice           what people outside are told
//	turn             how far a command has come
//	answering        commands, and what becomes of them
//	event, approval, steer
//	reply, batch     replies to approvals, and a gate's word on them
//	undo             how a run ends
//	due              what nobody has done in time
//	early            answers that come before their questions
//	take             the way of a command
package life
