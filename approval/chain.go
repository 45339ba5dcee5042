package approval

import (
	"encoding/json"
	"fmt"
	"time"

	"superstep.dev/internal/clip"
)

// Append returns e as the next entry of the chain, and moves the chain on: Seq, Before and Hash are set, the time is in
// UTC, a reason has at most [MaxReason] bytes and every other text at most as many.
func (c *Chain) Append(e Entry) Entry {
	e = e.bounded()
	e.Seq, e.Before = c.Count+1, c.Head
	e.Hash = e.hash()
	c.Count, c.Head = e.Seq, e.Hash
	return e
}

// bounded returns the entry in a form that is the same after it was stored as JSON and read.
func (e Entry) bounded() Entry {
	for _, text := range []*string{
		(*string)(&e.Kind), &e.Thread, &e.Question, &e.Who, (*string)(&e.Verdict), &e.ParamsHash, &e.Token, &e.KeyID, (*string)(&e.Code),
		&e.Reason, &e.Policy,
		&e.Claimed, (*string)(&e.Op), &e.Mode, &e.Node, &e.Effect, &e.EffectKey, &e.State, &e.Checkpoint, &e.From, &e.Event,
	} {
		*text = clip.Text(*text, MaxReason)
	}
	e.At = e.At.Round(0).UTC()
	if year := e.At.Year(); year < 0 || year > 9999 {
		e.At = time.Time{} // JSON knows no such year
	}
	return e
}

// hash returns the hash of everything in the entry but its Hash, as canonical JSON.
func (e Entry) hash() string {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err != nil {
		return "" // a year that JSON does not know: no entry of a chain has it
	}
	canonical, err := Canonical(text)
	if err != nil {
		return ""
	}
	return hash(canonical)
}

// BrokenError says that an audit is not what was recorded: an entry was edited, left out, added or moved.
type BrokenError struct {
	// Seq is the number at which it shows.
	Seq    int
	Reason string
}

// Error implements error.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("the audit is broken at entry %d: %s; compare it with the run's event history", e.Seq, e.Reason)
}

// VerifyEntries checks that the entries follow the chain without a gap, and returns the chain after them. The error is a
// [*BrokenError]. Entries left out at the end show only when the chain that it returns is compared with the one known
// from elsewhere, as [Chain.Ends] does.
func VerifyEntries(from Chain, entries []Entry) (Chain, error) {
	for _, e := range entries {
		switch {
		case e.Seq != from.Count+1:
			return from, &BrokenError{Seq: from.Count + 1, Reason: fmt.Sprintf("entry %d stands in its place", e.Seq)}
		case e.Before != from.Head:
			return from, &BrokenError{Seq: e.Seq, Reason: "it follows another entry than the one before it"}
		case e.Hash == "" || e.Hash != e.hash():
			return from, &BrokenError{Seq: e.Seq, Reason: "its hash is not that of what it says"}
		}
		from = Chain{Count: e.Seq, Head: e.Hash}
	}
	return from, nil
}

// Ends returns a [*BrokenError] unless the chain ends as a known one does.
func (c Chain) Ends(known Chain) error {
	switch {
	case c.Count < known.Count:
		return &BrokenError{Seq: c.Count + 1, Reason: fmt.Sprintf("it and those up to %d are missing", known.Count)}
	case c.Count > known.Count:
		return &BrokenError{Seq: known.Count + 1, Reason: fmt.Sprintf("only %d entries were recorded", known.Count)}
	case c.Head != known.Head:
		return &BrokenError{Seq: c.Count, Reason: "it is not the last one that was recorded"}
	}
	return nil
}
