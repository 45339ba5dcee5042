// Package activities runs the tasks that the workflows hand out. Nodes serves a worker's nodes by one dynamic activity:
// it runs one execution of one task under the retry policy of its node, keeps the task's ledger in heartbeats, and
// reports every ending so that nothing it did is forgotten.
//
//	nodes.go, task.go                           what a worker serves; one execution of one task
//	lease.go, lost.go, leave.go                 heartbeats: how long a task is this worker's, lost workers, what was stored
//	recovery.go, traced.go                      telling of attempts; counting that an execution goes on for a lost one
//	decoded.go, opening.go, segment.go          consecutive supersteps: what stays decoded, their first half second, and in one activity
//	inputs.go, rebuild.go, room.go              values sent by reference, replays that find them, graphs, room in the history
//	compensate.go                               undoing effects
//	people.go                                   asking the gate about replies, telling people
//	live.go                                     emissions while nodes run, and their ends
//	plan.go, outputs.go                         planners, and what attempts of subjobs returned
package activities
