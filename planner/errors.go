package planner

import (
	"fmt"
	"strings"
	"time"
)

// Error says that a planner gave no answer, good or bad. Asking again may help unless it is Final.
type Error struct {
	Job    string
	SubJob string // what was to be planned, "" for the whole job
	// Planner is who was asked: a model and where it is served, or the rules.
	Planner string
	// Status is the HTTP status of the reply, 0 when there was none.
	Status  int
	Problem string
	Do      string // what to do about it, "" when waiting is all
	// Wait is how long the endpoint asks to be left alone: at most 15 minutes, 0 when it says nothing.
	Wait time.Duration
	// Final says that asking again the same way fails again.
	Final bool
	cause error
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s: ", e.Job)
	if e.SubJob != "" {
		fmt.Fprintf(&b, "subjob %s: ", e.SubJob)
	}
	b.WriteString(e.Planner + ": ")
	if e.Status != 0 {
		fmt.Fprintf(&b, "HTTP %d: ", e.Status)
	}
	b.WriteString(e.Problem)
	if e.Do != "" {
		b.WriteString(": " + e.Do)
	}
	return b.String()
}

// Unwrap returns what broke the exchange: of the network, or of the context. What an endpoint replied is not wrapped,
// because the client's errors hold the request, and with it the key.
func (e *Error) Unwrap() error { return e.cause }

// Permanent reports whether the activity that called the planner is to fail for good.
func (e *Error) Permanent() bool { return e.Final }

// NextRetryDelay is when to ask again; 0 leaves that to the retry policy.
func (e *Error) NextRetryDelay() time.Duration { return e.Wait }
