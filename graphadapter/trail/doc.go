// Package trail makes the audit of a thread: which entry follows from what happened, in which words, and in which order.
//
// Both runtimes drive it, so a thread has the same audit in memory and on Temporal. It is pure: the time of an entry, and
// what happened, are arguments. A [Trail] adds entries to the thread's chain; the functions that return an entry say what
// happened and are the only places where entries are made.
//
//	t := trail.Trail{State: &state, Thread: "order-1815", Noted: keep}
//	t.Note(now, trail.Paused(trail.Actor{Claimed: "ann"}, "the books are closed"))
//
// The audit holds names, hashes and reasons, and never parameters, answers, receipts or tokens.
package trail
