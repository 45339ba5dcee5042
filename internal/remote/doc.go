// Package remote keeps threads and jobs on a Temporal server: it starts workflows, sends them signals and updates, queries them,
// and reads their histories. [Threads] changes threads, the reader in it only looks at them, and the server below both asks the
// Temporal server.
//
//	remote.go, explain.go, patient.go         the server: connection, errors in a caller's words, calls that wait for it
//	desk.go, last.go                          admission by a worker, newest runs
//	send.go                                   updates, signals and starts, each of which may be repeated
//	remembered.go, outputs.go                 what this client knows of threads
//	left.go, history.go, state.go             the reader: what runs left, checkpoints, states, audits
//	effects.go, show.go, show_open.go         effects, and everything that is known of one thread
//	list.go, questions.go, changed.go         what the server's index lists, the inbox, and what the index does not know yet
//	erase.go, erase_runs.go, erase_hold.go    removing threads, finding what they are, holding their ids meanwhile
//	prune.go                                  archiving them first
//	follow.go, wait.go                        the threads: progress for people; where a run says itself that it rests
//	start.go, begin.go, here.go, turn.go      runs, and input that begins one or is a turn of an open one; ends in this process
//	resume.go, steer.go, update.go            answers and going on after a failure; events, pauses, cancelling; writing to the state
//	stream.go, play.go, live.go               one reader of a stream
//	feed.go, replay.go                        what all readers of a run share: one long poll and one replay
//	job*.go                                   jobs
package remote
