package ledger

// StateCompensated: the outside had it, and it was undone there. It is final: whoever wants the write again makes
// another one, with a key of its own.
const StateCompensated State = "compensated"

// FindingStillCommitted: the outside still has the write, after an earlier call's deadline and the target's settle time.
const FindingStillCommitted Finding = "still_committed"

// Undo returns the entry of an effect that was compensated, with how we know. Result stays the receipt of the write
// that was undone.
func (e Entry) Undo(evidence string) (Entry, error) {
	if e.State == StateCompensated || e.State == StateFailed {
		return e, &TransitionError{Name: e.Name, Key: e.Key, From: e.State, To: StateCompensated}
	}
	e.State, e.Evidence = StateCompensated, evidence
	return e, nil
}

// undoing is the table for a compensation that may have reached the outside, by what the outside says of the write
// itself. The first matching row decides.
var undoing = []rule{
	{FindingNotFound, TargetLookupOnly, ActionWaitSettle, false}, // the write itself may not show yet
	{FindingNotFound, "", ActionAccept, false},                   // it is undone already
	{FindingStillNotFound, "", ActionAccept, false},
	{FindingPartial, "", ActionAskPerson, false},
	{FindingUnknown, "", ActionAskPerson, false},
	{FindingCommitted, TargetKeyed, ActionCall, false},
	{FindingCommitted, TargetLookupOnly, ActionWaitSettle, false},
	{FindingStillCommitted, TargetKeyed, ActionCall, false},
	{FindingStillCommitted, TargetLookupOnly, ActionAskPerson, true},
	{FindingStillCommitted, TargetLookupOnly, ActionCall, false},
}

// DecideUndo says what to do next to undo an effect that the outside has: own is the entry of its compensation, nil when
// there is none; before says whether an earlier execution may have called without leaving one; finding is what the outside
// said of the effect since.
//
// It is [Decide] the other way round: what may have been called already is asked for first, and it is not called again
// unless the target's guarantee allows.
func DecideUndo(g Guarantee, own *Entry, before Earlier, finding Finding) Action {
	return decideBy(undoing, g, own, before, finding)
}

// DecideStanding says what to do about an effect that is to be undone and of which it is not known that the outside has
// it: ActionAccept when it is there after all, ActionUse when it never was. entry is the effect's.
func DecideStanding(g Guarantee, entry *Entry, finding Finding) Action {
	switch {
	case finding == FindingNone:
		return ActionLookUp
	case finding == FindingCommitted:
		return ActionAccept
	case finding == FindingNotFound && g.Target != TargetNone:
		return ActionWaitSettle // a call that is still under way could write after the question
	case finding == FindingStillNotFound && g.AfterLoss == LossAsk && mayBeUnderWay(entry, EarlierNone):
		return ActionAskPerson
	case finding == FindingStillNotFound && g.Target != TargetNone:
		return ActionUse
	}
	return ActionAskPerson
}
