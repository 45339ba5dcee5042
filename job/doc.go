// Package job is the pure model of a leader's job: subjobs that depend on each other, who does them, how they end, and
// what follows from that. It knows no Temporal, no clock and no model; a [Board] is told what happened and says what is to
// be done next. The workflow superstep.leader drives it durably.
//
// A [Job] is planned into a graph of subjobs. A [SubJob] is done in attempts, each by an expert, which ends with a
// [WorkflowMessage]: its status decides whether successors run, the same is tried again, its predecessors are done again
// or the subjob is planned into smaller ones. Everything is bounded: attempts, repeats of predecessors, plans, subjobs,
// texts, and what a job may spend.
//
// The names follow Chat2Graph's leader. Where its code does not do what its documents promise, the documents win.
package job
