package payments

import (
	"slices"
	"time"
)

// The paths that faults can be set on: the three writes of the service.
const (
	PathRefunds       = "/refunds"
	PathReversals     = "/refunds/{id}/reverse"
	PathNotifications = "/notifications"
)

var writePaths = []string{PathRefunds, PathReversals, PathNotifications}

// Bounds on faults, so that a slip of the keyboard does not park the service.
const (
	maxSlow       = 10 * time.Minute
	maxFaultCount = 1_000_000
)

// Faults is how one path is told to misbehave. The counts say how many more
// times; they are stored before they act, so a fault that kills the process is
// spent when the process comes back.
//
// They act in this order: SlowMS, Fail5xx, the commit, DieAfterCommit,
// HangAfterCommit. The last two act only on a request that commits, never on a
// repeat that is answered from the stored receipt.
type Faults struct {
	// Path is what misbehaves: one of the Path constants. Empty is
	// [PathRefunds].
	Path string `json:"path"`
	// SlowMS delays every request by so many milliseconds before its commit. A
	// caller that gives up meanwhile does not take its request back: it is
	// committed late, with nobody listening.
	SlowMS int64 `json:"slow_ms"`
	// Fail5xx is how many requests are answered 503 without committing.
	Fail5xx int64 `json:"fail_5xx"`
	// DieAfterCommit is how many requests commit and then end the process
	// before it replies.
	DieAfterCommit int64 `json:"die_after_commit"`
	// HangAfterCommit is how many requests commit and then are not answered
	// until the caller goes away or the service stops.
	HangAfterCommit int64 `json:"hang_after_commit"`
}

// validate refuses an unknown path and counts nobody can mean.
func (f Faults) validate() error {
	if !slices.Contains(writePaths, f.Path) {
		return refuse(statusInvalid, CodeInvalidFaults, "path %q: want one of %q", f.Path, writePaths)
	}
	if f.SlowMS < 0 || f.SlowMS > maxSlow.Milliseconds() {
		return refuse(statusInvalid, CodeInvalidFaults, "slow_ms %d: want 0 to %d", f.SlowMS, maxSlow.Milliseconds())
	}
	for _, count := range []int64{f.Fail5xx, f.DieAfterCommit, f.HangAfterCommit} {
		if count < 0 || count > maxFaultCount {
			return refuse(statusInvalid, CodeInvalidFaults, "count %d: want 0 to %d", count, maxFaultCount)
		}
	}
	return nil
}

// faultBefore is what a request meets on arrival.
type faultBefore struct {
	slow time.Duration
	fail bool // answer 503
}

// faultAfter is what a request meets once it has committed.
type faultAfter int

const (
	faultNone faultAfter = iota
	faultDie
	faultHang
)
