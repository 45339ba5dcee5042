package remote

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/history"
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

// Wait is Follow of a thread without the reports. The run itself says when it rests or ends, by an update that returns then:
// nobody looks at its history meanwhile. When the run cannot be asked, its history tells.
func (c *Threads) Wait(ctx context.Context, threadID string) (thread.View, error) {
	w := c.waiterFor(threadID)
	for {
		reply, run, err := w.ask(ctx)
		var v thread.View
		var over *serviceerror.NotFound
		var closing *serviceerror.Aborted // the run ended with the workflow task that the update came too late for
		switch {
		case ctx.Err() != nil:
			return thread.View{}, ctx.Err()
		case errors.As(err, &over), errors.As(err, &closing):
			v, err = w.left(c.Show(ctx, threadID))
		case err != nil:
			v, err = c.followLast(ctx, threadID)
		default:
			rest, stands, err := w.rested(ctx, run, reply)
			if err != nil || stands {
				return rest.Whole(), err
			}
			continue
		}
		if err != nil || v.Status != thread.StatusRunning {
			return v, err
		}
		select { // somebody has continued the thread meanwhile
		case <-ctx.Done():
		case <-time.After(updatePause):
		}
	}
}

// followLast waits by the history of the thread's newest run.
func (c *Threads) followLast(ctx context.Context, threadID string) (thread.View, error) {
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return thread.View{}, err
	}
	return c.follow(ctx, last, last.runID, 0, func(history.Step) {})
}

// waiter waits until a thread's run rests, and shows the run as it says itself that it stands: what is in hand is not asked for.
type waiter struct {
	*reader
	thread string
	has    map[string]*pregel.HadList // what this client has of the thread's output
	input  pregel.Value               // what it gives the run; nil for nothing
}

func (c *reader) waiterFor(thread string) waiter {
	known, _ := c.outputs.of(thread)
	return waiter{reader: c, thread: thread, has: known.lists}
}

// request says what the waiter has, if it is to wait.
func (w waiter) request(rest bool) protocol.RestRequest {
	r := protocol.RestRequest{Rest: rest}
	if rest && len(w.has) > 0 {
		r.Has = map[string]pregel.Had{}
		for name, had := range w.has {
			r.Has[name] = had.Had
		}
	}
	return r
}

// ask returns when the thread's newest run rests or has ended, and which run that is. It fails when the run cannot say so: nobody
// takes the update, or too many wait.
func (w waiter) ask(ctx context.Context) (reply protocol.RestReply, run string, err error) {
	id := newCall()
	handle, err := patiently(ctx, w.server, w.thread, func() (client.WorkflowUpdateHandle, error) {
		return w.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: w.thread, UpdateID: id, UpdateName: protocol.UpdateRest,
			Args: []any{w.request(true)}, WaitForStage: client.WorkflowUpdateStageCompleted})
	})
	if err != nil {
		return reply, "", err
	}
	return reply, handle.RunID(), w.outcome(ctx, w.thread, handle, &reply)
}

// left keeps the output of a run that was over before it could be asked: who always comes late decodes of a thread what is new, too.
func (w waiter) left(v thread.View, err error) (thread.View, error) {
	if err == nil && v.Status == thread.StatusFinished {
		w.outputs.keep(w.thread, pregel.HoldAll(v.Output))
	}
	return v, err
}

// shown is rested with StatusRunning where the run goes on again by now.
func (w waiter) shown(ctx context.Context, run string, reply protocol.RestReply) (runtime.Rest, error) {
	rest, stands, err := w.rested(ctx, run, reply)
	if err == nil && !stands {
		rest = runtime.Rest{View: thread.View{Thread: w.thread, RunID: run, Status: thread.StatusRunning}}
	}
	return rest, err
}

// rested is a run as it told when it came to rest, or had ended; stands is false when it goes on, or may.
func (w waiter) rested(ctx context.Context, run string, reply protocol.RestReply) (rest runtime.Rest, stands bool, err error) {
	w.changed.note(w.thread, true)
	w.ended.note(w.thread, reply.Ends)
	w.open.note(w.thread, !reply.Ends)
	if !reply.Ends || reply.Status == protocol.StatusFinished {
		rest.Long = w.complete(reply.Stands)
	}
	rest.View, stands, err = w.standing(ctx, run, reply)
	if err != nil || !stands {
		return rest, stands, err
	}
	maps.DeleteFunc(rest.Long, func(name string, _ pregel.Held) bool { return rest.Output[name] != nil }) // it was asked for
	w.outputs.keep(w.thread, rest.Held())
	return rest, true, nil
}

// standing is the view of what the reply tells. What did not fit the reply is asked for.
func (w waiter) standing(ctx context.Context, run string, reply protocol.RestReply) (v thread.View, stands bool, err error) {
	last, s := &lastRun{thread: w.thread, runID: run}, reply.Stands
	switch {
	case reply.Moved:
		return v, false, nil
	case reply.Ends && (s == nil || reply.Status != protocol.StatusFinished):
		if err := w.closed(ctx, last); err != nil {
			return v, false, err
		}
		v, err = w.showEnded(ctx, w.thread, run, last.closing)
		return v, err == nil, err
	case reply.Ends:
		v, err = w.finished(ctx, last, s)
		return v, err == nil, err
	}
	if s != nil && s.State == nil {
		var all protocol.State
		if w.query(ctx, last, protocol.QueryState, &all) == nil {
			s.State = &all
		}
	}
	if s == nil || s.State == nil || s.State.Cancel != nil {
		now, err := w.theLastRun(ctx, w.thread)
		if err != nil {
			return v, false, err
		}
		return w.standsStill(ctx, now)
	}
	if s.State.Status == protocol.StatusRunning {
		return v, false, nil
	}
	v = standingView(last, s)
	addState(&v, *s.State)
	return v, v.Held || !v.Status.Unfinished(), nil
}

// complete returns the long lists of the output of which the reply tells what is new: what the waiter has, with that. A reply to an
// earlier call may be in terms of what the waiter has no more: then the values are asked for.
func (w waiter) complete(s *protocol.Standing) map[string]pregel.Held {
	if s == nil || s.State == nil {
		return nil
	}
	long := map[string]pregel.Held{}
	var given map[string]pregel.Value
	if slices.ContainsFunc(slices.Collect(maps.Values(s.Grown)), func(g pregel.Grown) bool { return g.Given }) {
		if sent, err := json.Marshal(w.input); err == nil { // as the run got it
			given = protocol.GivenBy(sent)
		}
	}
	for name, grown := range s.Grown {
		v, ok := grown.Value(w.has[name], given[name])
		if !ok {
			s.State = nil
			return nil
		}
		if s.State.Output == nil || slices.Contains(s.State.Output, name) {
			long[name] = v
		}
	}
	return long
}

func standingView(last *lastRun, s *protocol.Standing) thread.View {
	return thread.View{Thread: last.thread, RunID: last.runID, Graph: s.Graph, Started: s.Began, Events: int64(s.Events),
		HistoryBytes: int64(s.Bytes)}
}

// finished is the view of a run that has finished, with the output of its last event where that does not fit the reply.
func (w waiter) finished(ctx context.Context, last *lastRun, s *protocol.Standing) (thread.View, error) {
	v := standingView(last, s)
	v.Status, v.Closed = thread.StatusFinished, s.At
	if s.State == nil {
		last.status = enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED
		if err := w.closed(ctx, last); err != nil {
			return v, err
		}
		return v, w.addClosed(ctx, last, &v)
	}
	addState(&v, *s.State)
	v.Step = s.State.Snapshot.Step
	if retention, err := w.retention(ctx); err == nil {
		v.Expires = v.Closed.Add(retention)
	}
	return v, nil
}

// closed reads the last event of a run that has ended, or is about to.
func (w waiter) closed(ctx context.Context, last *lastRun) (err error) {
	if last.closing, err = w.tail.Closed(ctx, last.thread, last.runID); err != nil {
		return w.explain(err, "", last.thread)
	}
	return nil
}
