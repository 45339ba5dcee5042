package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/internal/calendar"
	"superstep.dev/internal/runtime"
	"superstep.dev/job"
	"superstep.dev/thread"
	"superstep.dev/thread/storage"
	"superstep.dev/workflows/protocol"
)

// Schedules are what begins runs by the calendar: Temporal Schedules, whose ids begin with schedulePrefix.
type Schedules struct{ *Threads }

const (
	schedulePrefix = "superstep.schedule/"
	// memoSchedule is the memo field in which a schedule has what lists show of it.
	memoSchedule = "superstep.schedule"
	// maxScheduled bounds the beginning of the threads' ids, which have a time behind it.
	maxScheduled = 170
	// usualCatchUp is how late a run is still begun: what was due while the server was away for longer is left out.
	usualCatchUp = 10 * time.Minute
	leastCatchUp = 10 * time.Second
	leastEvery   = time.Second
	shownTimes   = 3
)

var overlaps = map[thread.Overlap]enumspb.ScheduleOverlapPolicy{thread.OverlapSkip: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
	thread.OverlapWait: enumspb.SCHEDULE_OVERLAP_POLICY_BUFFER_ONE, thread.OverlapAllow: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL}

// ScheduleAction is what a schedule does to begin runs.
func ScheduleAction(threadID, queue string, in protocol.GraphInput) *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{ID: threadID, Workflow: protocol.GraphWorkflow, Args: []any{in}, TaskQueue: queue,
		WorkflowTaskTimeout: protocol.WorkflowTaskTimeout, Memo: map[string]any{protocol.MemoGraph: in.Graph}}
}

func badSchedule(r thread.ScheduleRequest, format string, args ...any) error {
	return &thread.Error{Kind: thread.ErrBadInput, Graph: r.Run.Graph, Message: "schedule " + strconv.Quote(calendar.Clip(r.ID)) + ": " + fmt.Sprintf(format, args...)}
}

// checkSchedule completes a request, and refuses what cannot be meant.
func checkSchedule(r *thread.ScheduleRequest) error {
	if r.Run.Thread != "" && r.Run.Thread != r.ID {
		r.Run.Thread += "-" + r.ID // the server drops a run whose id another schedule's has, and tells nobody
	}
	r.Run.Thread, r.Overlap, r.CatchUp = cmp.Or(r.Run.Thread, r.ID), cmp.Or(r.Overlap, thread.OverlapSkip), cmp.Or(r.CatchUp, usualCatchUp)
	if r.Run.Input == nil {
		r.Run.Input = json.RawMessage("{}")
	}
	_, known := overlaps[r.Overlap]
	switch {
	case thread.IDProblem(r.ID) != "":
		return badSchedule(*r, "%s", thread.IDProblem(r.ID))
	case len(r.Run.Thread) > maxScheduled:
		return badSchedule(*r, "the ids of its threads begin with %d bytes, at most %d are kept beside the time", len(r.Run.Thread), maxScheduled)
	case r.Run.Resume != nil || r.Run.Control != nil || r.Run.Checkpoint != "" || r.Run.NewThread || r.Run.ID != "":
		return badSchedule(*r, "its runs are of new threads: they have no answers, commands, checkpoints and ids of requests")
	case r.Cron == "" && r.Every == 0:
		return badSchedule(*r, "say when: by a cron of five fields, or by a time between runs")
	case r.Every != 0 && r.Every < leastEvery:
		return badSchedule(*r, "%v between runs is below %v", r.Every, leastEvery)
	case r.Every%time.Second != 0:
		return badSchedule(*r, "%v between runs is no number of whole seconds", r.Every)
	case r.CatchUp < leastCatchUp:
		return badSchedule(*r, "a run that is begun %v late at most: the least is %v", r.CatchUp, leastCatchUp)
	case !known:
		return badSchedule(*r, "overlap %q is none of %v", calendar.Clip(string(r.Overlap)), thread.Overlaps)
	}
	if err := calendar.Zone(r.TimeZone); err != nil {
		return badSchedule(*r, "%v", err)
	}
	r.Run.By = r.By
	if strings.HasPrefix(r.Run.Thread, job.WorkflowID("")) {
		return badSchedule(*r, "%s", idsOfJobs)
	}
	return runtime.CheckStart(runtime.Start{StartRequest: r.Run})
}

func specOf(r thread.ScheduleRequest) (spec client.ScheduleSpec, err error) {
	spec = client.ScheduleSpec{TimeZoneName: r.TimeZone, EndAt: r.Until}
	if r.Cron != "" {
		if spec.CronExpressions, err = calendar.Expressions(r.Cron); err != nil {
			return spec, badSchedule(r, "%v", err)
		}
	}
	if r.Every > 0 {
		spec.Intervals = []client.ScheduleIntervalSpec{{Every: r.Every}}
	}
	return spec, nil
}

// Create makes a schedule, once a worker has said that it serves the graph and takes the input. One that would never come due is refused.
// The input is in no storage, neither for the worker that is asked nor for the schedule, which gives it to each run: there it would be
// among the values of one thread, while all of the schedule's need it, and would stay when they are erased.
func (s Schedules) Create(ctx context.Context, r thread.ScheduleRequest) (thread.ScheduleView, error) {
	if err := checkSchedule(&r); err != nil {
		return thread.ScheduleView{}, err
	}
	spec, err := specOf(r)
	if err != nil {
		return thread.ScheduleView{}, err
	}
	ctx = storage.Inline(ctx)
	req := runtime.Start{StartRequest: r.Run}
	if err := s.admitStart(ctx, nil, &req); err != nil {
		return thread.ScheduleView{}, err
	}
	in := protocol.GraphInput{Graph: r.Run.Graph, Input: protocol.Input(runtime.InputOf(req)), Asked: runtime.AskedOf(r.By, "", "")}
	in.Set(*runtime.SettingsOf(req))
	v := thread.ScheduleView{ID: r.ID, Graph: r.Run.Graph, Thread: r.Run.Thread, Cron: r.Cron, TimeZone: r.TimeZone, Until: r.Until, Overlap: r.Overlap, By: r.By}
	if r.Every > 0 {
		v.Every = r.Every.String()
	}
	h, err := s.temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{ID: schedulePrefix + r.ID, Spec: spec, Action: ScheduleAction(r.Run.Thread, s.cfg.TaskQueue, in),
		Overlap: overlaps[r.Overlap], CatchupWindow: r.CatchUp, Paused: r.Paused, Memo: map[string]any{memoSchedule: v}})
	if err != nil {
		return v, s.explained(err, r.ID)
	}
	v, err = s.described(ctx, r.ID)
	if err == nil && len(v.Next) == 0 {
		if err := h.Delete(ctx); err != nil {
			return v, s.explained(err, r.ID)
		}
		return v, badSchedule(r, "it never comes due, or not before its end")
	}
	return v, err
}

// explained is a refusal of the server, about a schedule.
func (s Schedules) explained(err error, id string) error {
	var missing *serviceerror.NotFound
	var bad *serviceerror.InvalidArgument
	switch {
	case errors.Is(err, temporal.ErrScheduleAlreadyRunning):
		return badSchedule(thread.ScheduleRequest{ID: id}, "there is one of that name already: delete it first, or choose another name")
	case errors.As(err, &missing):
		return &thread.Error{Kind: thread.ErrNotFound, Message: "there is no schedule " + strconv.Quote(calendar.Clip(id)), Do: "List those that there are",
			Command: []string{"schedule", "list"}}
	case errors.As(err, &bad):
		return badSchedule(thread.ScheduleRequest{ID: id}, "the server refused it: %s", calendar.Clip(bad.Message))
	}
	return s.explain(err, "", "")
}

func (s Schedules) handle(ctx context.Context, id string) client.ScheduleHandle {
	return s.temporal.ScheduleClient().GetHandle(ctx, schedulePrefix+id)
}

// described is a schedule as the server has it.
func (s Schedules) described(ctx context.Context, id string) (v thread.ScheduleView, err error) {
	d, err := s.handle(ctx, id).Describe(ctx)
	if err != nil {
		return v, s.explained(err, id)
	}
	if p, ok := d.Memo.GetFields()[memoSchedule]; !ok || s.cfg.DataConverter.FromPayload(p, &v) != nil {
		v = thread.ScheduleView{ID: id} // another program made it, or who has other keys
	}
	paused, note := false, ""
	if d.Schedule.State != nil {
		paused, note = d.Schedule.State.Paused, d.Schedule.State.Note
	}
	v = standing(v, paused, note, d.Info.NextActionTimes, d.Info.RecentActions)
	v.Skipped, v.Missed = d.Info.NumActionsSkippedOverlap, d.Info.NumActionsMissedCatchupWindow
	return v, nil
}

// standing is a schedule with how it stands now.
func standing(v thread.ScheduleView, paused bool, note string, next []time.Time, recent []client.ScheduleActionResult) thread.ScheduleView {
	v.Paused, v.Note, v.Next = paused, note, []time.Time{}
	for _, at := range next[:min(len(next), shownTimes)] {
		v.Next = append(v.Next, at.UTC())
	}
	if len(recent) > 0 {
		last := recent[len(recent)-1]
		if last.StartWorkflowResult != nil {
			v.Last = &thread.ScheduledRun{Thread: last.StartWorkflowResult.WorkflowID, At: last.ActualTime.UTC()}
		}
	}
	return v
}

// List returns schedules, in the order of the server's index, which is a moment behind.
func (s Schedules) List(ctx context.Context, limit int) ([]thread.ScheduleView, error) {
	out := []thread.ScheduleView{}
	all, err := s.temporal.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: listPage})
	for err == nil && all.HasNext() && len(out) < cmp.Or(limit, defaultList) {
		entry, next := all.Next()
		if err = next; err != nil {
			break
		}
		id, ours := strings.CutPrefix(entry.ID, schedulePrefix)
		if !ours {
			continue
		}
		v := thread.ScheduleView{ID: id}
		if p, ok := entry.Memo.GetFields()[memoSchedule]; ok && s.cfg.DataConverter.FromPayload(p, &v) != nil {
			v = thread.ScheduleView{ID: id}
		}
		v = standing(v, entry.Paused, entry.Note, entry.NextActionTimes, entry.RecentActions)
		// What came due and began nothing is in no index.
		if now, err := s.described(ctx, id); err == nil {
			v.Skipped, v.Missed = now.Skipped, now.Missed
		}
		out = append(out, v)
	}
	if err != nil {
		return nil, s.explain(err, "", "")
	}
	return out, nil
}

// Pause keeps a schedule from beginning runs.
func (s Schedules) Pause(ctx context.Context, r thread.SchedulePause) (thread.ScheduleView, error) {
	return s.noted(ctx, r, true, func(h client.ScheduleHandle, note string) error {
		return h.Pause(ctx, client.SchedulePauseOptions{Note: note})
	})
}

// Unpause lets a schedule go on.
func (s Schedules) Unpause(ctx context.Context, r thread.SchedulePause) (thread.ScheduleView, error) {
	return s.noted(ctx, r, false, func(h client.ScheduleHandle, note string) error {
		return h.Unpause(ctx, client.ScheduleUnpauseOptions{Note: note})
	})
}

// noted pauses a schedule, or lets it go on, with a note of who asked for it and why, and returns the schedule once it stands so. The server
// drops a change of a schedule that comes beside another one, and says nothing: the change is sent again until it is seen.
func (s Schedules) noted(ctx context.Context, r thread.SchedulePause, paused bool, do func(h client.ScheduleHandle, note string) error) (v thread.ScheduleView, err error) {
	if err := runtime.CheckAsker("", r.By, r.Reason); err != nil {
		return v, err
	}
	note := strings.Trim(r.By+": "+r.Reason, ": ")
	for late := time.Now().Add(begunWithin); ; {
		if err := do(s.handle(ctx, r.ID), note); err != nil {
			return v, s.explained(err, r.ID)
		}
		for range looksAtChange {
			if v, err = s.described(ctx, r.ID); err != nil || v.Paused == paused && (note == "" || v.Note == note) {
				return v, err
			}
			if err := awaitTime(ctx, time.Now().Add(lookEvery)); err != nil {
				return v, err
			}
		}
		if time.Now().After(late) {
			return v, &thread.Error{Kind: thread.ErrRunning, Message: fmt.Sprintf("schedule %s was changed by others again and again for %v, and is as they left it",
				strconv.Quote(calendar.Clip(r.ID)), begunWithin), Do: "Look at it, and try again", Command: []string{"schedule", "list"}}
		}
	}
}

// begunWithin is how long is waited for the run that a schedule is told to begin now, or for a change, looking each time after lookEvery. A
// change is sent again when it was not seen so many times.
const (
	begunWithin   = 30 * time.Second
	lookEvery     = 100 * time.Millisecond
	looksAtChange = 5
)

// Trigger lets a schedule begin a run now, beside those that are open, and returns the schedule when it has: Last is that run. The
// server names a run by the second that it begins in, and drops a second one of that name: a trigger waits until that second is over, and
// fails where another one was first all the same.
func (s Schedules) Trigger(ctx context.Context, id string) (thread.ScheduleView, error) {
	before, err := s.described(ctx, id)
	if err != nil {
		return before, err
	}
	if err := awaitTime(ctx, secondAfter(before)); err != nil {
		return before, err
	}
	if err := s.handle(ctx, id).Trigger(ctx, client.ScheduleTriggerOptions{Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_ALLOW_ALL}); err != nil {
		return before, s.explained(err, id)
	}
	late := time.Now().Add(begunWithin)
	for {
		now, err := s.described(ctx, id)
		if err != nil || now.Last != nil && (before.Last == nil || now.Last.Thread != before.Last.Thread) {
			return now, err
		}
		if time.Now().After(late) {
			return now, &thread.Error{Kind: thread.ErrRunning, Message: fmt.Sprintf("schedule %s has begun nothing within %v: it may have begun a run in the same second, or the server is busy",
				strconv.Quote(calendar.Clip(id)), begunWithin), Do: "Look at its runs, and try again", Command: []string{"list", "--graph", now.Graph}}
		}
		if err := awaitTime(ctx, time.Now().Add(lookEvery)); err != nil {
			return now, err
		}
	}
}

// secondAfter is when the second is over that names the last run of a schedule, zero for none. The server's clock may be another one, so
// it is no later than a second from now.
func secondAfter(v thread.ScheduleView) time.Time {
	if v.Last == nil {
		return time.Time{}
	}
	named, err := time.Parse(time.RFC3339, strings.TrimPrefix(v.Last.Thread, v.Thread+"-"))
	over := named.Add(time.Second)
	if soon := time.Now().Add(time.Second); err != nil || over.After(soon) {
		return soon
	}
	return over
}

// awaitTime waits until a time.
func awaitTime(ctx context.Context, at time.Time) error {
	select {
	case <-time.After(time.Until(at)):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Delete ends a schedule. Runs that it has begun go on.
func (s Schedules) Delete(ctx context.Context, id string) error {
	if err := s.handle(ctx, id).Delete(ctx); err != nil {
		return s.explained(err, id)
	}
	return nil // the server ends its workflow, which no other change undoes
}
