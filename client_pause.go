package superstep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	workflowpb "go.temporal.io/api/workflow/v1"

	"superstep.dev/graphadapter"
	"superstep.dev/workflows/protocol"
)

// PauseView says who paused a run, when and why.
type PauseView struct {
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at"`
}

// PauseRequest asks to pause a thread's run, or to let it go on.
type PauseRequest struct {
	Thread string
	// By names who asks, at most 200 bytes; Reason says why, at most 1,000.
	By, Reason string
	// ID makes the request idempotent: the run takes the same ID once, in whichever order requests arrive. "" makes one.
	ID string
	// Token proves who asks, where rules want that.
	Token string
}

// PauseReply says how a thread stands after a pause was asked for or taken back.
type PauseReply struct {
	Thread string `json:"thread"`
	Status Status `json:"status"`
	// Paused is nil when the run is not paused. A run that was paused before keeps who did it first.
	Paused *PauseView `json:"paused,omitempty"`
	// Changed says that this request changed something.
	Changed bool `json:"changed"`
	// Stored says that no worker took the request yet: it is stored, and counts as soon as one runs.
	Stored bool `json:"stored,omitempty"`
}

// Pause keeps a thread's open run from starting anything: the tasks under way end and are kept, answers and updates of
// the state are taken, and nothing goes on before Unpause, also across restarts of everything. Without a worker the
// request is stored. A run that is over is left as it is. Errors: ErrNotFound, ErrBadInput, ErrNoServer.
func (c *Client) Pause(ctx context.Context, r PauseRequest) (PauseReply, error) {
	return c.pauseRun(ctx, nil, r, false)
}

// Unpause lets a paused run go on. Errors: those of Pause.
func (c *Client) Unpause(ctx context.Context, r PauseRequest) (PauseReply, error) {
	return c.pauseRun(ctx, nil, r, true)
}

func (c *Client) pauseRun(ctx context.Context, _ *graphadapter.Graph, r PauseRequest, unpause bool) (PauseReply, error) {
	if err := checkPause(r); err != nil {
		return PauseReply{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return PauseReply{}, err
	}
	reply := PauseReply{Thread: r.Thread}
	if last.open {
		reply, err = c.sendPause(ctx, last, protocol.PauseRequest{
			ID: cmp.Or(r.ID, uuid.NewString()), By: r.By, Reason: r.Reason, Unpause: unpause, Token: r.Token})
		if err != nil && !errors.Is(err, errEnded) || reply.Stored {
			return reply, err
		}
	}
	v, err := c.Show(ctx, r.Thread)
	reply.Status = v.Status
	return reply, err
}

// sendPause has the run take the request, or stores it for the next worker.
func (c *Client) sendPause(ctx context.Context, last *lastRun, wire protocol.PauseRequest) (PauseReply, error) {
	reply := PauseReply{Thread: last.thread, Status: StatusRunning}
	err := c.somebodyPolls(ctx, last.graph, last.queue)
	if err == nil {
		var taken protocol.PauseReply
		err = c.update(ctx, last, wire.ID, protocol.UpdatePause, wire, &taken)
		reply.Paused, reply.Changed = pauseView(taken.Paused), taken.Changed
	}
	if errors.Is(err, ErrNoWorker) {
		// Should the update have got through all the same, the id makes one of the two.
		reply.Stored = true
		if err = c.signal(ctx, last, protocol.SignalPause, wire); err != nil {
			err = c.explain(err, last.graph, last.thread)
		}
	}
	return reply, err
}

// The bounds of a pause, in bytes.
const (
	maxPauseBy     = 200
	maxPauseReason = 1000
)

func checkPause(r PauseRequest) error {
	if len(r.By) > maxPauseBy || len(r.ID) > maxPauseBy || len(r.Reason) > maxPauseReason {
		return &Error{Kind: ErrBadInput, Thread: r.Thread, Message: fmt.Sprintf(
			"a pause has a name and an id of at most %d bytes, and a reason of at most %d", maxPauseBy, maxPauseReason)}
	}
	return nil
}

func pauseView(p *protocol.Pause) *PauseView {
	if p == nil {
		return nil
	}
	return &PauseView{By: p.By, Reason: p.Reason, At: p.At}
}

// pauseOf reads from a run's memo who paused it, nil when nobody did.
func (c *Client) pauseOf(info *workflowpb.WorkflowExecutionInfo) *PauseView {
	var p protocol.Pause
	field, ok := info.GetMemo().GetFields()[protocol.MemoPause]
	if !ok || c.cfg.DataConverter.FromPayload(field, &p) != nil || p.At.IsZero() {
		return nil
	}
	return pauseView(&p)
}
