package thread

import "time"

// ScheduleRequest asks for runs of a graph by the calendar. Each run is a new thread, in lists and in the inbox as all others.
type ScheduleRequest struct {
	// ID names the schedule, as ids of threads are. There is none of that id yet.
	ID string
	// Run is what each run is asked for with: Graph, Input ({} without any), and the settings of a run. Its Thread begins the ids of the
	// threads, which have the time behind them; "" is the schedule's ID. It may have 170 bytes.
	Run StartRequest
	// Cron has five fields: minute, hour, day of the month, month and day of the week. Every is a time between runs, of a second or more.
	// One of them is given, or both.
	Cron  string
	Every time.Duration
	// TimeZone is the IANA name of the zone in which Cron is read, "" for UTC.
	TimeZone string
	// Until is when it ends, zero for never.
	Until time.Time
	// Overlap says what becomes of a run that comes due while the one before is open, waiting for people included; "" is OverlapSkip.
	Overlap Overlap
	// CatchUp is how late a run is still begun after the server was away; 0 is ten minutes. At least ten seconds.
	CatchUp time.Duration
	// Paused makes a schedule that waits to be unpaused.
	Paused bool
	// By names who asks, at most 200 bytes.
	By string
}

// Overlap says what becomes of a run that comes due while the one before is open.
type Overlap string

// What becomes of such a run.
const (
	// OverlapSkip leaves it out.
	OverlapSkip Overlap = "skip"
	// OverlapWait begins it when the one before has ended; at most one waits.
	OverlapWait Overlap = "wait"
	// OverlapAllow begins it beside the one before.
	OverlapAllow Overlap = "allow"
)

// Overlaps are all of them.
var Overlaps = []Overlap{OverlapSkip, OverlapWait, OverlapAllow}

// ScheduleView is a schedule as it is now.
type ScheduleView struct {
	ID       string    `json:"schedule"`
	Graph    string    `json:"graph"`
	Thread   string    `json:"thread"`
	Cron     string    `json:"cron,omitempty"`
	Every    string    `json:"every,omitempty"`
	TimeZone string    `json:"time_zone,omitempty"`
	Until    time.Time `json:"until,omitzero"`
	Overlap  Overlap   `json:"overlap"`
	By       string    `json:"by,omitempty"`
	// Paused says that nothing comes due, and Note who said so, and why.
	Paused bool   `json:"paused,omitempty"`
	Note   string `json:"note,omitempty"`
	// Next are the times that come, at most three of them.
	Next []time.Time `json:"next"`
	// Last is the newest run, nil before the first.
	Last *ScheduledRun `json:"last,omitempty"`
}

// ScheduledRun is a run that a schedule has begun.
type ScheduledRun struct {
	Thread string    `json:"thread"`
	At     time.Time `json:"at"`
}

// SchedulePause pauses a schedule, or lets it go on. By is who says so, at most 200 bytes, and Reason why, at most 1,000.
type SchedulePause struct {
	ID         string
	Unpause    bool
	By, Reason string
}
