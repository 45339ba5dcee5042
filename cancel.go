package superstep

import (
	"fmt"
	"time"

	"superstep.dev/workflows/protocol"
)

// CancelMode says what a cancelled run leaves behind. It is a [CancelOption].
type CancelMode string

const (
	// CancelKeep keeps what the superstep under way has finished, and accepted answers: a retry goes on from there. It is
	// the default.
	CancelKeep = CancelMode(protocol.CancelKeep)
	// CancelDrop forgets the superstep under way, and open questions with it: a retry runs it anew. Effects that were made
	// stay, and a retry does not make them again.
	CancelDrop = CancelMode(protocol.CancelDrop)
	// CancelCompensate forgets the superstep under way too, and undoes the effects of the thread since it last finished,
	// the newest receipt first, by their Compensate. For those that no program can undo the run waits for a person: each is
	// a question, answered "done" (it is undone), "repeat" (try again) or "leave". A second cancellation with CancelKeep
	// ends the waiting; what was not undone is listed in ThreadView.Cancel. The thread then stands before the oldest superstep
	// of which an effect was undone. A retry goes on from there: it makes undone effects anew, under other keys, and finds
	// those that were left.
	CancelCompensate = CancelMode(protocol.CancelCompensate)
)

// CancelOption shapes one cancellation.
type CancelOption interface{ applyCancel(*CancelRequest) }

func (m CancelMode) applyCancel(r *CancelRequest) { r.Mode = m }

// CancelRequest asks to end a thread's run.
type CancelRequest struct {
	Thread string
	// Mode is "" for CancelKeep. Of several that are asked for before the run begins to end, the strongest counts:
	// compensate, then drop, then keep.
	Mode CancelMode
	// Reason says why, at most 1,000 bytes, and By who asks, at most 200; both are kept with the run.
	Reason, By string
	// ID makes the request idempotent: the run takes the same ID once. "" makes one.
	ID string
	// Token proves who asks, where rules want that.
	Token string
}

// maxReason bounds a cancellation's reason, in bytes.
const maxReason = 1000

const maxCancelName = 200

func checkCancel(r CancelRequest) error {
	e := &Error{Kind: ErrBadInput, Thread: r.Thread}
	switch {
	case r.Mode != "" && !protocol.CancelMode(r.Mode).Valid():
		e.Message = fmt.Sprintf("a run is not cancelled with mode %q: there are keep, drop and compensate", r.Mode)
	case len(r.Reason) > maxReason:
		e.Message = fmt.Sprintf("a reason has at most %d bytes", maxReason)
	case len(r.By) > maxCancelName || len(r.ID) > maxCancelName:
		e.Message = fmt.Sprintf("a name and an id have at most %d bytes", maxCancelName)
	default:
		return nil
	}
	return e
}

// CancelView is how a run was cancelled, or is being cancelled.
type CancelView struct {
	Mode   CancelMode `json:"mode"`
	Reason string     `json:"reason,omitempty"`
	By     string     `json:"by,omitempty"`
	// Undone counts the effects that were undone, or of which it turned out that they had never been made.
	Undone int `json:"undone,omitempty"`
	// Left are those that were not undone, at most 200 of them; More counts the others.
	Left []LeftEffect `json:"left,omitempty"`
	More int          `json:"more,omitempty"`
	// Gone counts earlier runs of the thread that the server has no more: what they did was not undone.
	Gone int `json:"gone,omitempty"`
	// Problem says why not all effects were looked at, "" when they were.
	Problem string `json:"problem,omitempty"`
	// Checkpoint is where the thread goes on: a copy of the one before the oldest superstep of which an effect was undone.
	// It is "" when that superstep was the one under way.
	Checkpoint string `json:"checkpoint,omitempty"`
	// Waits is what the run waits for before it goes on to undo; nil when it does not wait.
	Waits *SettleView `json:"waits,omitempty"`
	// Halted says why the thread cannot go on by itself: effects were undone, and its state stands behind them. Cancel it
	// again in the same way, or run it from a checkpoint before them. It is "" when the thread can go on.
	Halted string `json:"halted,omitempty"`
}

// SettleView is a wait for an earlier call of an effect. The target may show that call until then, so what it says before
// is not believed.
type SettleView struct {
	Effect string    `json:"effect"`
	Key    string    `json:"key"`
	Until  time.Time `json:"until"`
}

// LeftEffect is an effect that a cancellation did not undo.
type LeftEffect struct {
	Key    string `json:"key"`
	Effect string `json:"effect"`
	Node   string `json:"node"`
	Reason string `json:"reason"`
}

func cancelView(c *protocol.Cancellation) *CancelView {
	if c == nil {
		return nil
	}
	v := &CancelView{Mode: CancelMode(c.Mode), Reason: c.Reason, By: c.By, Undone: c.Undone, More: c.More, Gone: c.Gone,
		Problem: c.Problem, Checkpoint: c.Checkpoint, Halted: c.Halted}
	for _, l := range c.Left {
		v.Left = append(v.Left, LeftEffect(l))
	}
	return v
}
