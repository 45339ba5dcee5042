// Package job is the pure model of a leader's job: subjobs that depend on each other, who does them, how they end, and
// what follows from that. It knows no Temporal, no clock and no model. A [Board] takes what happened and says what is to
// be done next; the workflow superstep.leader drives it durably, and a leader in memory drives the same Board.
//
// A [Job] is planned into a graph of subjobs. A [SubJob] is done in attempts, each by an expert. An attempt ends with a
// [WorkflowMessage], whose status decides: successors run, the same subjob is tried again, its predecessors are done again, or
// the subjob is planned into smaller ones.
//
//	board, err := job.New(j, experts, now)
//	for work := board.Ready(now); !work.Done; work = board.Ready(now) {
//		// work.Plan: ask the planner, then board.Planned; work.Run: begin attempts, then board.Reported
//	}
//
// # What the board promises
//
//   - It has one writer. A call that the job cannot take now is a [RefusedError] and changes nothing.
//   - It is data: encoded as JSON and decoded again it goes on where it was. The same calls lead to the same state.
//   - Every attempt that began is reported once. A late or second report counts for nothing but its usage.
//   - Everything is bounded: attempts, repeats of predecessors, plans, subjobs, texts, and what a job may spend. A board fits
//     into one payload of Temporal (2 MiB).
//   - What has finished is kept when a job stops or fails; [Board.Recover] does the rest.
//
// The names follow Chat2Graph's leader. Where its code does not do what its documents promise, the documents win.
//
// # The files, in order of reading
//
//	job       Job, Policy, Profile, the statuses and the ids of workflows
//	subjob    SubJob, Assignment, WorkflowMessage, Usage, Budget
//	graph     a directed graph of ids
//	room      bounds of texts, and what texts take in the state
//	plan      Planner, Draft, and what is wrong with a draft
//	board     Board, Work, events
//	new       the board of a job that begins, and the only moves between statuses
//	experts   experts that come and go
//	settle    what follows from a change: the end of a job, Stop, Fail
//	replace   a plan in the place of a job or a subjob
//	budget    what may be spent, and Raise
//	planned   the planner's answer, and a person's decision on a plan
//	reopen    work that is done again, and Recover
//	ready     what is to be done now
//	reported  how an attempt ended, and Retry
//	view      the job as people see it
package job
