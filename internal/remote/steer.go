package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// EventRun implements runtime.Runtime.
func (c *Threads) EventRun(ctx context.Context, _ *graphadapter.Graph, r thread.EventRequest) (thread.EventReply, error) {
	if err := runtime.CheckEvent(r); err != nil {
		return thread.EventReply{}, err
	}
	wire := protocol.EventRequest{ID: cmp.Or(r.ID, uuid.NewString()), Call: newCall(), Name: r.Name, Value: pregel.Value(r.Value), By: r.By, Token: r.Token}
	for {
		last, err := c.theLastRun(ctx, r.Thread)
		if err != nil {
			return thread.EventReply{}, err
		}
		if !last.open {
			return c.noEvents(ctx, last, wire)
		}
		reply, err := c.sendEvent(ctx, last, wire)
		if !errors.Is(err, errEnded) {
			return reply, err
		}
	}
}

// noEvents says why a closed run takes no event. One that was taken before is no error.
func (c *Threads) noEvents(ctx context.Context, last *lastRun, wire protocol.EventRequest) (thread.EventReply, error) {
	left, _, err := c.left(ctx, last)
	if taken, again := left.Life.TakenEvent(wire.ID); err == nil && again { // what cannot be read has nothing to add
		return thread.EventReply{Thread: last.thread, Event: wire.Name, Nodes: taken.Nodes, Repeated: true}, nil
	}
	return thread.EventReply{}, &thread.Error{Kind: thread.ErrAnswerRefused, Graph: last.graph, Thread: last.thread,
		Message: fmt.Sprintf("thread %q takes no event: its run is %s", last.thread, statusOf(last.status)),
		Do:      "Look at it", Command: []string{"show", last.thread}}
}

// sendEvent has the run take the event, or stores it for the next worker.
func (c *Threads) sendEvent(ctx context.Context, last *lastRun, wire protocol.EventRequest) (thread.EventReply, error) {
	reply := thread.EventReply{Thread: last.thread, Event: wire.Name}
	err := c.somebodyPolls(ctx, last.graph, last.queue)
	if err == nil {
		var taken protocol.EventReply
		err = c.updateSoon(ctx, last, wire.ID, protocol.UpdateEvent, wire, &taken)
		// The server itself gives the outcome of an update again to who repeats it.
		reply.Nodes, reply.Repeated, reply.Paused = taken.Nodes, err == nil && (taken.Repeated || taken.Call != wire.Call), taken.Paused
	}
	if unanswered(err) {
		// Should the update have got through all the same, the id makes one of the two.
		if err = (eventRoom{c}).check(ctx, last, len(wire.Value)); err == nil {
			err = c.signal(ctx, last, protocol.SignalEvent, wire)
		}
		reply.Stored = err == nil
	}
	return reply, err
}

// eventRoom says whether one more event is stored for a run while no worker reads them.
type eventRoom struct{ *Threads }

// check refuses to store one more event for a run that keeps as many as it may, or has as many unread. What was stored is delivered,
// so a sender must hear of that before.
func (c eventRoom) check(ctx context.Context, last *lastRun, size int) error {
	full := false
	if field, ok := last.described.GetWorkflowExecutionInfo().GetMemo().GetFields()[protocol.MemoFull]; ok {
		_ = c.cfg.DataConverter.FromPayload(field, &full) // what cannot be read says nothing
	}
	events, bytes := 0, 0
	if !full {
		var err error
		if events, bytes, err = c.unread(ctx, last); err != nil {
			return err
		}
	}
	if !full && events < graphadapter.MaxUnreadEvents && bytes+size <= graphadapter.MaxUnreadBytes {
		return nil
	}
	return &thread.Error{Kind: thread.ErrBusy, Graph: last.graph, Thread: last.thread,
		Message: fmt.Sprintf("thread %q has no room for another event while no worker reads them: %d with %d bytes are unread, of at most %d and %d bytes",
			last.thread, events, bytes, graphadapter.MaxUnreadEvents, graphadapter.MaxUnreadBytes),
		Do: "Start a worker, then send the event again"}
}

// unread counts the events that were stored since a worker has last read what came for the run, and their bytes.
func (c eventRoom) unread(ctx context.Context, last *lastRun) (events, bytes int, err error) {
	for token := []byte(nil); ; {
		page, err := c.service.GetWorkflowExecutionHistoryReverse(ctx, &workflowservice.GetWorkflowExecutionHistoryReverseRequest{
			Namespace: c.cfg.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: last.thread, RunId: last.runID}, NextPageToken: token})
		if err != nil {
			return 0, 0, c.explain(err, last.graph, last.thread)
		}
		for _, e := range page.GetHistory().GetEvents() {
			if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
				return events, bytes, nil
			}
			if s := e.GetWorkflowExecutionSignaledEventAttributes(); s.GetSignalName() == protocol.SignalEvent {
				events++
				bytes += proto.Size(s.GetInput())
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return events, bytes, nil
		}
	}
}

// PauseRun implements runtime.Runtime.
func (c *Threads) PauseRun(ctx context.Context, _ *graphadapter.Graph, r thread.PauseRequest, unpause bool) (thread.PauseReply, error) {
	if err := runtime.CheckPause(r); err != nil {
		return thread.PauseReply{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.PauseReply{}, err
	}
	reply := thread.PauseReply{Thread: r.Thread}
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
func (c *Threads) sendPause(ctx context.Context, last *lastRun, wire protocol.PauseRequest) (thread.PauseReply, error) {
	reply := thread.PauseReply{Thread: last.thread, Status: thread.StatusRunning}
	err := c.somebodyPolls(ctx, last.graph, last.queue)
	if err == nil {
		var taken protocol.PauseReply
		err = c.updateSoon(ctx, last, wire.ID, protocol.UpdatePause, wire, &taken)
		reply.Paused, reply.Changed = taken.Paused, taken.Changed
	}
	if unanswered(err) {
		// Should the update have got through all the same, the id makes one of the two.
		err = c.signal(ctx, last, protocol.SignalPause, wire)
		reply.Stored = err == nil
	}
	return reply, err
}

// DrainRun implements runtime.Runtime.
func (c *Threads) DrainRun(ctx context.Context, _ *graphadapter.Graph, r thread.DrainRequest) (thread.View, error) {
	if err := runtime.CheckDrain(&r); err != nil {
		return thread.View{}, err
	}
	last, err := c.theLastRun(ctx, r.Thread)
	if err != nil {
		return thread.View{}, err
	}
	if last.open {
		req := protocol.DrainRequest{ID: uuid.NewString(), Reason: r.Reason, By: r.By, Token: r.Token}
		err := c.update(ctx, last, req.ID, protocol.UpdateDrain, req, nil)
		if err != nil && !errors.Is(err, errEnded) {
			return thread.View{}, err
		}
	}
	return c.Show(ctx, r.Thread)
}

// Viewed notes in a thread's audit that somebody has looked at a question which asks for an approval.
func (c *reader) Viewed(ctx context.Context, thread, question, by string) error {
	last, err := c.theLastRun(ctx, thread)
	if err != nil || !last.open {
		return err
	}
	if err := c.signal(ctx, last, protocol.SignalViewed, protocol.ViewRequest{Question: question, By: by}); !errors.Is(err, errEnded) {
		return err
	}
	return nil
}

// CancelRun implements runtime.Runtime.
func (c *Threads) CancelRun(ctx context.Context, _ *graphadapter.Graph, r thread.CancelRequest) (thread.View, error) {
	if err := runtime.CheckCancel(r); err != nil {
		return thread.View{}, err
	}
	r.Mode, r.ID = cmp.Or(r.Mode, thread.CancelKeep), cmp.Or(r.ID, uuid.NewString())
	for {
		v, err := c.cancelOnce(ctx, r)
		if !errors.Is(err, errEnded) {
			return v, err
		}
	}
}

// cancelOnce fails with errEnded when the thread's last run ended, or went on as a new one, before it took the request.
func (c *Threads) cancelOnce(ctx context.Context, r thread.CancelRequest) (thread.View, error) {
	last, err := c.theLastRun(ctx, r.Thread)
	switch {
	case err != nil:
		return thread.View{}, err
	case last.open:
		err = c.cancelOpen(ctx, last, r)
	case r.Mode != thread.CancelKeep && canRetry(last.status):
		last, err = c.cancelBehind(ctx, last, r)
	default:
		return c.Show(ctx, r.Thread)
	}
	if err != nil {
		return thread.View{}, err
	}
	if err := c.awaitCancelled(ctx, last, r.Mode); err != nil {
		return thread.View{}, err
	}
	v, err := c.Show(ctx, r.Thread)
	if err == nil && v.Cancel != nil && r.Mode != thread.CancelKeep && v.Cancel.Mode != r.Mode {
		return v, &thread.Error{Kind: thread.ErrRunning, Graph: last.graph, Thread: r.Thread, Do: "Look at it", Command: []string{"show", r.Thread},
			Message: fmt.Sprintf("thread %q was being cancelled with mode %s already: %s came too late", r.Thread, v.Cancel.Mode, r.Mode)}
	}
	return v, err
}

// cancelOpen tells an open run how to end, and the server that it is to: either would do, but tasks that run for long look
// at the server. The reason is the run's alone: to the server it would be plain text, whatever encodes payloads.
func (c *Threads) cancelOpen(ctx context.Context, last *lastRun, r thread.CancelRequest) error {
	wire := protocol.CancelRequest{ID: r.ID, Mode: r.Mode, Reason: r.Reason, By: r.By, Token: r.Token}
	if r.Token == "" { // stored at once, and held to the rules by the run: to ask for them takes a worker, and the last one may just have been lost
		if err := c.signal(ctx, last, protocol.SignalCancel, wire); err != nil {
			return err
		}
	}
	admitted, unasked := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph})
	if unasked == nil && admitted.Governs {
		return c.update(ctx, last, r.ID, protocol.UpdateCancel, wire, nil) // which says whether they may
	}
	if r.Token != "" {
		return c.signal(ctx, last, protocol.SignalCancel, wire)
	}
	if unasked != nil {
		return nil // what Temporal is told passes no rules, and nobody is there to say that there are none
	}
	defer func() { c.changed.note(last.thread, true) }()
	_, err := c.temporal.WorkflowService().RequestCancelWorkflowExecution(ctx, &workflowservice.RequestCancelWorkflowExecutionRequest{
		Namespace: c.cfg.Namespace, Identity: c.cfg.Identity, RequestId: uuid.NewString(),
		WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: last.thread}, FirstExecutionRunId: last.first,
	})
	var ended *serviceerror.NotFound
	if err != nil && !errors.As(err, &ended) {
		return c.explain(err, last.graph, last.thread)
	}
	return nil
}

// cancelBehind starts a run that only cleans up behind one that has ended.
func (c *Threads) cancelBehind(ctx context.Context, last *lastRun, r thread.CancelRequest) (*lastRun, error) {
	in := protocol.GraphInput{Graph: last.graph, Cancel: &protocol.CancelBehind{
		CancelRequest: protocol.CancelRequest{ID: r.ID, Mode: r.Mode, Reason: r.Reason, By: r.By, Token: r.Token},
		Suspect:       last.status != enumspb.WORKFLOW_EXECUTION_STATUS_FAILED && last.status != enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED,
	}}
	if _, err := c.admit(ctx, protocol.AdmitRequest{Graph: last.graph, Control: controlCheck(last,
		approval.Control{Op: approval.OpCancel, On: string(r.Mode)}, runtime.Asker{By: r.By, Token: r.Token})}); err != nil && !unanswered(err) {
		return nil, err
	}
	settings, err := c.carryOver(ctx, last, &in)
	if err != nil {
		return nil, err
	}
	req := runtime.Start{StartRequest: thread.StartRequest{Graph: last.graph, Thread: last.thread}}
	req.Restore(settings)
	v, err := c.launch(ctx, req, in, last)
	return &lastRun{thread: last.thread, graph: last.graph, runID: v.RunID, first: v.RunID, open: true}, err
}

// cancelPause is between two looks at a run that undoes its effects.
const cancelPause = 100 * time.Millisecond

// awaitCancelled waits until a run has ended, or undoes its effects and waits for people; not for long, as both may take
// any time.
func (c *Threads) awaitCancelled(ctx context.Context, last *lastRun, mode thread.CancelMode) error {
	bounded, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if mode != thread.CancelKeep { // a run that undoes its effects may wait for people by now, whatever it is told
		go func() {
			defer cancel()
			c.awaitParked(bounded, last)
		}()
	}
	if err := c.awaitEnd(bounded, last); err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return nil
}

// awaitParked waits until a run that undoes its effects waits for people.
func (c *Threads) awaitParked(ctx context.Context, last *lastRun) {
	for ctx.Err() == nil {
		var s protocol.State
		if err := c.query(ctx, last, protocol.QueryOutline, &s); err == nil && s.Cancel != nil && thread.Status(s.Status) == thread.StatusWaiting {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(cancelPause):
		}
	}
}
