package cron

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"

	"superstep.dev/internal/calendar"
)

// Object is a JSON object.
type Object = map[string]json.RawMessage

// Cron is a run that is asked for by a calendar, as the protocol writes it.
type Cron struct {
	ID        string `json:"cron_id"`
	Assistant string `json:"assistant_id"`
	// Thread is the thread that the runs are on, nil when each has one of its own.
	Thread *string `json:"thread_id"`
	// Schedule has five fields: minute, hour, day of the month, month and day of the week.
	Schedule string `json:"schedule"`
	// Timezone is an IANA name, nil for UTC.
	Timezone *string    `json:"timezone"`
	EndTime  *time.Time `json:"end_time"`
	// Payload is the body with which each run is asked for.
	Payload  Object `json:"payload"`
	Metadata Object `json:"metadata"`
	// OnCompletion says what becomes of a run's own thread, "delete" or "keep"; nil for runs on a given thread.
	OnCompletion *string   `json:"on_run_completed"`
	Enabled      bool      `json:"enabled"`
	Created      time.Time `json:"created_at"`
	Updated      time.Time `json:"updated_at"`
	// Next is when it comes due next, or would if it was enabled; nil for never.
	Next *time.Time `json:"next_run_date"`
	// User is who made it, nil where nobody was asked who they are.
	User *string `json:"user_id"`
	// Marks is metadata of the threads that its runs are given. It is the server's, and not shown.
	Marks Object `json:"marks,omitempty"`
}

// The errors that callers tell apart.
var (
	ErrMissing     = errors.New("there is no such cron")
	ErrBadSchedule = errors.New("the schedule does not fit")
	ErrTooLarge    = errors.New("the cron is too large")
)

// longest bounds a cron, in bytes of JSON.
const longest = 256 << 10

// spec is when a cron comes due.
func (c *Cron) spec() (client.ScheduleSpec, error) {
	when, err := calendar.Expressions(c.Schedule)
	spec := client.ScheduleSpec{CronExpressions: when}
	if c.Timezone != nil && err == nil {
		spec.TimeZoneName, err = *c.Timezone, calendar.Zone(*c.Timezone)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrBadSchedule, err)
	}
	if c.EndTime != nil {
		spec.EndAt = *c.EndTime
	}
	return spec, err
}

// check refuses what is too large.
func (c *Cron) check() error {
	raw, err := json.Marshal(c)
	if err != nil || len(raw) > longest {
		return fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, longest)
	}
	return nil
}

// Line is what lists know of a cron.
type Line struct {
	ID        string    `json:"id"`
	Assistant string    `json:"assistant"`
	Thread    string    `json:"thread,omitempty"`
	Created   time.Time `json:"created"`
	Deleted   bool      `json:"deleted,omitempty"`
}

// Line is what lists know of the cron.
func (c *Cron) Line() Line {
	l := Line{ID: c.ID, Assistant: c.Assistant, Created: c.Created}
	if c.Thread != nil {
		l.Thread = *c.Thread
	}
	return l
}

// Place is where a list has the line, and how new it is.
func (l Line) Place() (id string, created time.Time, version int64, deleted bool) {
	if l.Deleted {
		version = 1
	}
	return l.ID, l.Created, version, l.Deleted
}
