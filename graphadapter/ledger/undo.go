package ledger

// StateCompensated: the outside had it, and it was undone there. It is final: whoever wants the write again makes
// another one, with a key of its own.
const StateCompensated State = "compensated"

// Undo returns the entry of an effect that was compensated, with how we know. Result stays the receipt of the write
// that was undone.
func (e Entry) Undo(evidence string) (Entry, error) {
	if e.State == StateCompensated || e.State == StateFailed {
		return e, &TransitionError{Name: e.Name, Key: e.Key, From: e.State, To: StateCompensated}
	}
	e.State, e.Evidence = StateCompensated, evidence
	return e, nil
}
