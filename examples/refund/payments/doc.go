// Package payments is the outside world of the refund example: a small
// payments service with its own process and its own SQLite file, and the Go
// client that a graph's effects call.
//
// It stands for what a graph cannot roll back. Money moves here, under rules a
// real provider has: every write carries an Idempotency-Key; the same key with
// the same parameters returns the stored receipt, the same key with other
// parameters is refused; a receipt can be found again by its key; and a refund
// can be reversed by a second, equally keyed, write.
//
// The service can be told to misbehave ([Faults]): to be slow, to answer 503,
// to commit and then die, or to commit and then never reply. Those are the
// cases in which a caller cannot know what happened from the call alone.
//
// All amounts are whole cents, held in int64. Nothing here is ever a float.
package payments
