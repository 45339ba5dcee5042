package ledger

// Target is what the outside guarantees about an effect's key.
type Target string

const (
	// TargetKeyed: the target itself makes a call with a key it already has a no-op. After "not found" the call may be
	// repeated at once.
	TargetKeyed Target = "keyed"
	// TargetLookupOnly: the target stores the key and finds it again, but does not refuse a second call with it.
	// "Not found" is believed only after an earlier call can no longer be under way.
	TargetLookupOnly Target = "lookup_only"
	// TargetNone: neither; nothing but a person can tell whether a call may be repeated.
	TargetNone Target = "none"
)

// Valid reports whether t is one of the declared targets.
func (t Target) Valid() bool { return t == TargetKeyed || t == TargetLookupOnly || t == TargetNone }

// Loss is what an effect wants done about a call that an execution was lost with, when the outside does not have it.
type Loss string

const (
	// LossRepeat: what the target's guarantee allows.
	LossRepeat Loss = ""
	// LossAsk: a person decides, where the target does not refuse a second call itself.
	LossAsk Loss = "ask"
)

// Valid reports whether l is one of the declared policies.
func (l Loss) Valid() bool { return l == LossRepeat || l == LossAsk }

// Guarantee is what an effect declares of its target.
type Guarantee struct {
	Target Target
	OnLoss Loss
}

// Earlier is what is known of the executions of a task before this one, beside its ledger.
type Earlier string

const (
	// EarlierNone: none of them called without leaving an entry.
	EarlierNone Earlier = ""
	// EarlierUncertain: one may have. It has ended.
	EarlierUncertain Earlier = "suspect"
	// EarlierLost: one may have, and nobody knows that it has ended: it may be frozen, with its call still to come.
	EarlierLost Earlier = "lost"
)

// Finding is what the outside says about a key.
type Finding string

const (
	// FindingNone: the outside was not asked yet.
	FindingNone Finding = ""
	// FindingCommitted: it has the write, with a receipt that fits the parameters.
	FindingCommitted Finding = "committed"
	// FindingNotFound: it does not have the write, as far as it can see now.
	FindingNotFound Finding = "not_found"
	// FindingStillNotFound: not found again, after an earlier call's deadline and the target's settle time.
	FindingStillNotFound Finding = "still_not_found"
	// FindingPartial: it has something under the key, but not all of it or not what the parameters say.
	FindingPartial Finding = "partial"
	// FindingUnknown: it gave no clear answer, or the effect has no Lookup.
	FindingUnknown Finding = "unknown"
)

// Action is what to do next about an effect.
type Action string

const (
	// ActionUse: return the recorded receipt; no call.
	ActionUse Action = "use"
	// ActionLookUp: ask the outside, then decide again with the finding.
	ActionLookUp Action = "look_up"
	// ActionCall: record the intent, then call with the same key.
	ActionCall Action = "call"
	// ActionAccept: record the receipt that was found, then go on.
	ActionAccept Action = "accept"
	// ActionWaitSettle: wait the call deadline and the settle time, look up again, and decide with
	// FindingStillNotFound in place of FindingNotFound.
	ActionWaitSettle Action = "wait_settle"
	// ActionAskPerson: record StateUnknown and wait for a person's ruling.
	ActionAskPerson Action = "ask_person"
)

// rule is one row of the table; an empty field matches everything.
type rule struct {
	finding Finding
	target  Target
	action  Action
	asks    bool // only for an effect that wants a person asked about a loss, when there was one
}

// reconcile is the table for an effect that may have reached the outside, once the outside was asked. The first
// matching row decides. "Partial" pauses for a person: a compensation is bound to the effect, never invented.
var reconcile = []rule{
	{FindingCommitted, "", ActionAccept, false},
	{FindingPartial, "", ActionAskPerson, false},
	{FindingUnknown, "", ActionAskPerson, false},
	{FindingNotFound, TargetKeyed, ActionCall, false},
	{FindingNotFound, TargetLookupOnly, ActionWaitSettle, false},
	{FindingStillNotFound, TargetKeyed, ActionCall, false},
	{FindingStillNotFound, TargetLookupOnly, ActionAskPerson, true},
	{FindingStillNotFound, TargetLookupOnly, ActionCall, false},
}

// Decide says what to do next about an effect: entry is its ledger entry, nil when there is none; before says whether an
// earlier execution may have called without leaving an entry; finding is what the outside said since.
//
// A recorded receipt is used. Without a trace of an earlier call the call is made. Everything else asks the outside
// first, then follows the table; what the table does not know, a person decides. The answer is never a blind repeat.
func Decide(g Guarantee, entry *Entry, before Earlier, finding Finding) Action {
	return decideBy(reconcile, g, entry, before, finding)
}

// decideBy is the action of the first row that matches, once the outside was asked; what no row knows, a person decides.
func decideBy(table []rule, g Guarantee, entry *Entry, before Earlier, finding Finding) Action {
	switch {
	case entry != nil && entry.State == StateCommitted:
		return ActionUse
	case finding == FindingNone && mayBeOutside(entry, before != EarlierNone):
		return ActionLookUp
	case finding == FindingNone:
		return ActionCall
	}
	asks := g.OnLoss == LossAsk && mayBeUnderWay(entry, before)
	for _, r := range table {
		if r.finding == finding && (r.target == "" || r.target == g.Target) && (asks || !r.asks) {
			return r.action
		}
	}
	return ActionAskPerson
}

// mayBeOutside reports whether a call may have reached the outside. A refusal was the last word of the execution that
// saw it; only a suspect one may have been overtaken by a frozen call that thawed later.
func mayBeOutside(entry *Entry, suspect bool) bool {
	if suspect {
		return true
	}
	return entry != nil && entry.State != StateFailed
}

// mayBeUnderWay reports whether a call may be under way of which nobody knows that it has ended: its worker was lost, and
// may go on when it thaws.
func mayBeUnderWay(entry *Entry, before Earlier) bool {
	return before == EarlierLost || entry != nil && entry.Attempts > entry.Returned
}

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
	case finding == FindingStillNotFound && g.OnLoss == LossAsk && mayBeUnderWay(entry, EarlierNone):
		return ActionAskPerson
	case finding == FindingStillNotFound && g.Target != TargetNone:
		return ActionUse
	}
	return ActionAskPerson
}
