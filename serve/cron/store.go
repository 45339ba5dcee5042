package cron

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"superstep.dev/internal/calendar"
)

// memoLine is the memo field in which a schedule has its cron's Line.
const memoLine = "superstep.cron"

// Store reads and changes crons. Somebody has to work on what they start: see [Register].
type Store struct {
	Temporal client.Client
	// TaskQueue is the servers'.
	TaskQueue string
	// DataConverter is that of the Temporal client.
	DataConverter converter.DataConverter
}

// prefix begins the ids of the schedules: other servers of the namespace have theirs.
func (s *Store) prefix() string { return "superstep.cron/" + s.TaskQueue + "/" }

func (s *Store) handle(ctx context.Context, id string) client.ScheduleHandle {
	return s.Temporal.ScheduleClient().GetHandle(ctx, s.prefix()+id)
}

// explained is a refusal as callers know it.
func explained(err error) error {
	var missing *serviceerror.NotFound
	var bad *serviceerror.InvalidArgument
	switch {
	case errors.As(err, &missing):
		return ErrMissing // the server names the schedule, which callers do not know
	case errors.As(err, &bad):
		return fmt.Errorf("%w: %s", ErrBadSchedule, calendar.Clip(bad.Message))
	}
	return err
}

// late is how long after its time a run is still asked for, when the Temporal server was away. While only the servers of the protocol
// are, what came due last waits for them.
const late = 10 * time.Minute

func (s *Store) action(c Cron) *client.ScheduleWorkflowAction {
	return &client.ScheduleWorkflowAction{ID: "superstep.cron-run/" + s.TaskQueue + "/" + c.ID, Workflow: Workflow, TaskQueue: s.TaskQueue,
		Args: []any{c}, WorkflowTaskTimeout: 5 * time.Second}
}

// Create makes a cron. One that would never come due is refused. Errors: ErrBadSchedule, ErrTooLarge.
func (s *Store) Create(ctx context.Context, c Cron) (Cron, error) {
	spec, err := c.spec()
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return c, err
	}
	h, err := s.Temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{ID: s.prefix() + c.ID, Spec: spec, Action: s.action(c), Paused: !c.Enabled,
		Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: late, Memo: map[string]any{memoLine: c.Line()}})
	if err != nil {
		return c, explained(err)
	}
	d, err := h.Describe(ctx)
	if err != nil {
		return c, explained(err)
	}
	if len(d.Info.NextActionTimes) == 0 {
		if err := h.Delete(ctx); err != nil {
			return c, err
		}
		return c, fmt.Errorf("%w: %q never comes, or not before its end", ErrBadSchedule, calendar.Clip(c.Schedule))
	}
	return s.read(d)
}

// Get returns a cron. Errors: ErrMissing.
func (s *Store) Get(ctx context.Context, id string) (Cron, error) {
	d, err := s.handle(ctx, id).Describe(ctx)
	if err != nil {
		return Cron{}, explained(err)
	}
	return s.read(d)
}

// read returns the cron of a schedule: it is what its workflows are given.
func (s *Store) read(d *client.ScheduleDescription) (c Cron, err error) {
	c, err = s.given(d.Schedule)
	if err == nil && len(d.Info.NextActionTimes) > 0 {
		next := d.Info.NextActionTimes[0].UTC()
		c.Next = &next
	}
	return c, err
}

func (s *Store) given(sched client.Schedule) (c Cron, err error) {
	action, ok := sched.Action.(*client.ScheduleWorkflowAction)
	if !ok || len(action.Args) != 1 {
		return c, errors.New("the schedule was changed by another program: it starts no cron")
	}
	p, ok := action.Args[0].(*commonpb.Payload)
	if !ok {
		return c, errors.New("the schedule's argument is no payload")
	}
	if err := s.DataConverter.FromPayload(p, &c); err != nil {
		return c, err
	}
	c.Enabled = sched.State == nil || !sched.State.Paused
	return c, nil
}

// Update changes a cron by a function of it. Errors: ErrMissing, ErrBadSchedule, ErrTooLarge, and those of the function.
func (s *Store) Update(ctx context.Context, id string, change func(*Cron) error) (Cron, error) {
	h := s.handle(ctx, id)
	err := h.Update(ctx, client.ScheduleUpdateOptions{DoUpdate: func(in client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
		sched := in.Description.Schedule
		c, err := s.given(sched)
		if err == nil {
			err = change(&c)
		}
		if err != nil {
			return nil, err
		}
		c.Updated = time.Now().UTC()
		spec, err := c.spec()
		if err == nil {
			err = c.check()
		}
		sched.Spec, sched.Action = &spec, s.action(c)
		if sched.State == nil {
			sched.State = &client.ScheduleState{}
		}
		sched.State.Paused = !c.Enabled
		return &client.ScheduleUpdate{Schedule: &sched}, err
	}})
	if err != nil {
		return Cron{}, explained(err)
	}
	return s.Get(ctx, id)
}

// Delete ends a cron. Runs that it has asked for go on. Errors: ErrMissing.
func (s *Store) Delete(ctx context.Context, id string) error {
	return explained(s.handle(ctx, id).Delete(ctx))
}

// List calls on for each cron that the server's index has, until it returns false. The index is a moment behind.
func (s *Store) List(ctx context.Context, on func(Line) bool) error {
	all, err := s.Temporal.ScheduleClient().List(ctx, client.ScheduleListOptions{PageSize: 500})
	for err == nil && all.HasNext() {
		var entry *client.ScheduleListEntry
		if entry, err = all.Next(); err != nil {
			break
		}
		if !strings.HasPrefix(entry.ID, s.prefix()) {
			continue
		}
		var l Line
		p, ok := entry.Memo.GetFields()[memoLine]
		if ok && s.DataConverter.FromPayload(p, &l) == nil && !on(l) {
			return nil
		}
	}
	return err
}
