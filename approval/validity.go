package approval

import (
	"slices"
	"time"
)

// DefaultValidity is how long an approval of a high or critical risk counts whose action does not say.
const DefaultValidity = 24 * time.Hour

// Validity returns how long an approval of the action counts once it was given, 0 for ever: as the action says, or as its
// policy does, 0 for nothing, when that is less.
func (a Action) Validity(policy time.Duration) time.Duration {
	own := time.Duration(a.ValidFor) * time.Millisecond
	if own <= 0 && a.Risk.Above(RiskMedium) {
		own = DefaultValidity
	}
	return sooner(own, policy)
}

// sooner is the shorter of two times, of which 0 is for ever.
func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return max(b, 0)
	}
	return a
}

// Standing returns the votes that still count for a reply that the ruling is about, and those that were given too long
// ago: with them the approval would have lapsed before it was given.
func (r Ruling) Standing(votes []Vote) (standing, lapsed []Vote) {
	for _, v := range votes {
		if isOver(v.At, r.ValidFor, r.At) {
			lapsed = append(lapsed, v)
		} else {
			standing = append(standing, v)
		}
	}
	return standing, lapsed
}

// given is when the decision was, as far as its validity goes: its oldest vote, or silence.
func (d Decision) given() time.Time {
	if len(d.Votes) == 0 {
		return d.At
	}
	return slices.MinFunc(d.Votes, func(a, b Vote) int { return a.At.Compare(b.At) }).At
}

// checkValidity refuses a decision that was made too long ago.
func checkValidity(d Decision, validity time.Duration, now time.Time) error {
	if !isOver(d.given(), validity, now) {
		return nil
	}
	return refuse(CodeLapsed, "it was approved at %s, which counts for %s", stamp(d.given()), validity)
}

func isOver(at time.Time, validity time.Duration, now time.Time) bool {
	return validity > 0 && !now.Before(at.Add(validity))
}

// UseWithoutGate says whether what was decided may be done now where there is no gate to ask: unless it has lapsed.
func UseWithoutGate(c UseCheck, now time.Time) Ruling {
	r := Ruling{Allowed: true, At: now.UTC(), ValidFor: c.Action.Validity(0)}
	if err := checkValidity(c.Decision, r.ValidFor, now); err != nil {
		r.Allowed, r.Code, r.Reason = false, CodeLapsed, err.Error()
	}
	return r
}

// AsksAnew reports whether what was refused with that code, right before it was to be done, is asked about anew: the
// approval itself does not count any more, and another would.
func (c Code) AsksAnew() bool { return oneOf(c, CodeLapsed, CodeRevoked) }
