package workflows

import (
	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/workflows/protocol"
)

// mostWaiters bounds those who wait at once. The server lets ten updates of a run be under way: answers must find room.
const mostWaiters = 3

// maxStanding bounds the values and questions of a reply, in bytes: replies are stored, and every turn has one.
const maxStanding = 16 << 10

// waiters are those who are told when the run rests or ends: one update for each, in the place of a look at every event.
type waiters struct {
	*people
	goesOn func() bool // as [run.mayGoOn]

	now  int                        // those that wait
	told map[string]*pregel.HadList // the long lists as they were told last: only what is new in them is looked at
	// ends says that the run ends before its workflow task is over.
	ends bool
	// moves says that the run is continued as a new one once nobody waits here: that one is to be asked.
	moves bool
}

// refuse is the validator: who is refused leaves no event.
func (w *waiters) refuse(_ workflow.Context, _ protocol.RestRequest) error {
	switch {
	case w.now >= mostWaiters:
		return protocol.Refuse(protocol.ErrTypeBusy, "%d others wait already for the run to rest: follow its history", w.now)
	case w.updates >= w.in.ContinueAt.Filled().MostUpdates:
		return protocol.Refuse(protocol.ErrTypeBusy, "the run has taken %d updates: follow its history", w.updates)
	}
	return nil
}

// wait is the handler.
func (w *waiters) wait(ctx workflow.Context, req protocol.RestRequest) (protocol.RestReply, error) {
	w.updates++
	return w.await(ctx, req.Has, nil), nil
}

// awaitBeside is await for who has had something else done by the same update, nil where too many wait.
func (w *waiters) awaitBeside(ctx workflow.Context, has map[string]pregel.Had) *protocol.RestReply {
	if w.now >= mostWaiters {
		return nil
	}
	reply := w.await(ctx, has, nil)
	return &reply
}

// await returns when the run rests. What has arrived with the same workflow task is taken in before it is said to. has are values that the
// caller has, and input is what it gave the run.
func (w *waiters) await(ctx workflow.Context, has map[string]pregel.Had, input pregel.Value) protocol.RestReply {
	w.now++
	defer func() { w.now-- }()
	wait, _ := workflow.NewDisconnectedContext(ctx)
	if w.rests() {
		GiveWay(wait)
	}
	_ = workflow.Await(wait, func() bool { return w.ends || w.moves || w.rests() })
	if !w.ends && !w.rests() {
		return protocol.RestReply{Moved: true}
	}
	return protocol.RestReply{Status: w.status, Ends: w.ends, Stands: w.stands(wait, has, input)}
}

// move sends those who wait to the run that continues this one.
func (w *waiters) move(ctx workflow.Context) {
	if w.now == 0 {
		return
	}
	w.moves = true
	GiveWay(ctx)
	w.moves = false
}

// rests reports whether nothing goes on before somebody lets it.
func (w *waiters) rests() bool {
	said := w.taking > 0 || len(w.inbox.edits) > 0 || w.life.Claiming() || len(w.life.Replies) > 0 // and not done yet
	given := w.life.State.Paused == nil && w.life.Waiting()
	return w.status != protocol.StatusRunning && !w.ending && !said && !given && !w.goesOn()
}

// stands is where the run stands, for who has waited for that and has those values, and gave that input. Nobody
// gets what a replay says.
func (w *waiters) stands(ctx workflow.Context, has map[string]pregel.Had, input pregel.Value) *protocol.Standing {
	if workflow.IsReplaying(ctx) {
		return nil
	}
	info := workflow.GetInfo(ctx)
	s := &protocol.Standing{Graph: w.in.Graph, Began: w.since(info), At: workflow.Now(ctx), Events: info.GetCurrentHistoryLength(), Bytes: info.GetCurrentHistorySize()}
	now, values, err := w.program.NowHeld(w.thread)
	if err != nil {
		return s
	}
	state := (&view{w.people}).outlineOf(protocol.State{Questions: w.life.Questions(), Waits: w.life.Waits(), Ledgers: w.program.Ledgers(w.thread),
		Snapshot: pregel.Snapshot{Step: now.Step}})
	state.Answered, state.Output = nil, nil
	if state.Snapshot.Values, s.Grown = w.grownFrom(has, protocol.GivenBy(input), values); state.Snapshot.Values == nil {
		return s
	}
	if w.status != protocol.StatusFinished {
		state.Snapshot.Next = now.Next
	}
	size := stateBytes(&state)
	for _, name := range workflow.DeterministicKeys(s.Grown) {
		size += len(name) + len(s.Grown[name].More)
	}
	if size > maxStanding {
		s.Grown = nil
		return s
	}
	s.State = &state
	return s
}

// grownFrom parts the values into those that are told whole, nil for too much to tell, and those of which the caller has most.
func (w *waiters) grownFrom(has map[string]pregel.Had, given map[string]pregel.Value, values map[string]pregel.Held) (map[string]pregel.Value, map[string]pregel.Grown) {
	whole, grown, told := map[string]pregel.Value{}, map[string]pregel.Grown{}, map[string]*pregel.HadList{}
	size := 0
	for _, name := range workflow.DeterministicKeys(values) {
		if had, asked := has[name]; asked {
			told[name] = pregel.HadOf(values[name], w.told[name])
			if g, ok := told[name].Since(had); ok {
				grown[name] = g.Without(given[name])
				continue
			}
		}
		if size += values[name].Len(); size > maxStanding {
			continue
		}
		whole[name] = values[name].Value()
	}
	if len(has) > 0 {
		w.told = told
	}
	if size > maxStanding {
		return nil, nil
	}
	return whole, grown
}
