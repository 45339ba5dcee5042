package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// update sends an update and repeats it under the same id while the run cannot take it for the moment: a worker was
// lost, or the run is between two workflow tasks. A run that is continued as a new one takes it there, and knows the id
// of what it had taken before.
func (c *server) update(ctx context.Context, last *lastRun, id, name string, arg, reply any) error {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	for {
		err := c.updateOnce(ctx, bounded, last, id, name, arg, reply)
		if err == nil || !passing(err) {
			return c.explainUpdate(ctx, err, last.thread)
		}
		select {
		case <-bounded.Done():
			return c.explainUpdate(ctx, err, last.thread)
		case <-time.After(updatePause):
		}
	}
}

// updatePause keeps repeated updates from spinning; nothing that succeeds ever waits for it.
const updatePause = 200 * time.Millisecond

// updateOnce returns when the run has done what the update asks for. Only its acceptance is bounded: what was accepted is
// stored, and may take as long as a node does.
func (c *server) updateOnce(ctx, accept context.Context, last *lastRun, id, name string, arg, reply any) error {
	handle, err := c.temporal.UpdateWorkflow(accept, client.UpdateWorkflowOptions{
		WorkflowID: last.thread, FirstExecutionRunID: last.first, UpdateID: id, UpdateName: name, Args: []any{arg},
		WaitForStage: client.WorkflowUpdateStageAccepted,
	})
	if err != nil {
		return err
	}
	return handle.Get(ctx, reply)
}

// errEnded says that an open run has ended before it took a message.
var errEnded = errors.New("it ended first")

// passing reports whether an update may be taken a moment later.
func passing(err error) bool {
	var (
		notReady *serviceerror.WorkflowNotReady
		aborted  *serviceerror.Aborted
		busy     *serviceerror.ResourceExhausted
	)
	return errors.As(err, &notReady) || errors.As(err, &aborted) || errors.As(err, &busy)
}

// signal stores a message for a run, or for the one that it was continued as meanwhile. The error is the server's.
func (c *server) signal(ctx context.Context, last *lastRun, name string, arg any) error {
	for run := last.runID; ; {
		err := c.temporal.SignalWorkflow(ctx, last.thread, run, name, arg)
		var over *serviceerror.NotFound
		if !errors.As(err, &over) {
			return err
		}
		now, lookErr := c.lastRun(ctx, last.thread)
		if lookErr != nil || now == nil || now.first != last.first || now.runID == run || !now.open {
			return err
		}
		run = now.runID
	}
}

// newCall names one call, so that its outcome can be told from that of a call before.
func newCall() string { return rand.Text()[:16] }
