// Package segment runs consecutive supersteps of a run in one execution: the loop of a run goes in suspended, and the outcomes
// of its tasks come out in the order in which they were delivered. Whoever has the same loop delivers them to it and comes to
// the same place, so a segment decides nothing that stays: it saves the round trips between supersteps.
//
// # Life
//
// [OpenSegment] restores the loop, delivers what an earlier execution recorded, and [Segment.Run] goes on from there. Before
// each superstep but the first it calls Host.Keep, which makes [Segment.Record] and [Segment.Left] durable as the run's
// mode asks. It leaves when no task is under way, and at the latest
//
//   - at a question, a failure or the end of the run;
//   - before a task of another task queue, or one that this worker does not serve (Result.Apart);
//   - when its outcomes are as many as one result holds, or its heartbeats have carried 2 MiB together;
//   - after 30 s, or when its host wants it to.
//
// Its [Result] goes through [Result.Encode] and [DecodeResult] (or [DecodeWhole]). [Redeliver] gives the outcomes to the run's
// own loop and checks that each is of a task, and of a state, that this loop came to by itself: else [StrayDeliveryError].
// [TakeIn] also gives back the tasks that were under way, with what they had done outside (Result.Left).
//
// # Promises
//
// Sync: a superstep begins when the outcomes of the one before are durable. After a lost worker exactly the tasks behind the
// record may have run without a trace. Those are the [Suspicion]: before such a task acts outside again, the effects that it
// may have had are looked up.
//
// Async: the record follows in the background. After a lost worker all tasks behind it are suspected, as nobody knows how far
// the execution came.
//
// Exit: there is no record. After a lost worker the segment begins anew and all of its tasks are suspected.
//
// In each mode: what was recorded is delivered as it was written, or is an error. A record that was cut off is a shorter one
// or an error, one that was changed is an error. Equal outcomes have equal bytes. No outcome is larger than a payload; one that
// cannot be stored fails its node, with a reason.
//
// # The files, in order of reading
//
//	deliver  outcomes, and delivering them to another loop
//	codec    the binary format of outcomes
//	request  the request, and what it says of tasks that may have run
//	result   the result, and the point from which a reader goes on without what was before
//	record   the record that heartbeats carry, and what the server has of it
//	handover a run's side: handing its loop over, and taking in what comes back
//	segment  an execution, and making resume points
//	task     the tasks under way, and how a segment stores what they record; outcomes that do not fit
//	guard    when tasks may start, and the execution ends
package segment
