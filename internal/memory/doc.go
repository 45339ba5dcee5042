// Package memory keeps and runs threads in this process. The rules are those of other packages: graphadapter/pregel for
// supersteps, graphadapter/life for what a run owes to people and to time. This package only carries.
//
//	runtime.go               the threads
//	life.go                  what life decides for a thread, carried out; the gate
//	start.go                 runs: begun, held, ended, gone on with
//	steer.go                 answers, pauses, events, retries, drains
//	cancel.go                cancelling and undoing
//	past.go                  updates and forks; states, histories, effects, audits and streams
//	recording.go             what the engine reports, kept for effects, audits and streams
package memory
