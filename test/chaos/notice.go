package main

import (
	"bytes"
	"encoding/json"
	"os"
	"sync"
	"time"
)

// What a notice tells.
const (
	noticeReady   = "ready"   // the worker takes tasks
	noticeBegin   = "begin"   // it was given an activity of Thread, scheduled (its first attempt) Took before
	noticeEnd     = "end"     // the server took the end of an activity of Thread
	noticeReached = "reached" // it stands still at the moment at which it shall die
	noticeHeld    = "held"    // a call for Thread's order waits for the thaw
	noticeSends   = "sends"   // a late call for Thread's order has prepared and goes on to send
	noticeBack    = "back"    // a late call for Thread's order is over
	noticeRefused = "refused" // the server refused a record of an activity of Thread
	noticeSigns   = "signs"   // a heartbeat of Activity is about to be sent
	noticeSign    = "sign"    // the server took a heartbeat of Activity, which took Took
	noticeEnding  = "ending"  // the end of Activity is about to be reported
	noticeFigure  = "figure"  // the worker counted N of Figure
	noticeTaken   = "taken"   // the server took a record of an activity of Thread, after the thaw
)

// notice is a line that a worker writes.
type notice struct {
	What    string `json:"what"`
	PID     int    `json:"pid"`
	Thread  string `json:"thread,omitempty"`
	Attempt int32  `json:"attempt,omitempty"`
	// Activity is the run and the id of an activity of tasks, and WentOn says that it ends with their outcome.
	Activity string `json:"activity,omitempty"`
	WentOn   bool   `json:"went_on,omitempty"`
	// Closes says of a heartbeat that it tells that the end of its execution is known.
	Closes bool          `json:"closes,omitempty"`
	Figure string        `json:"figure,omitempty"`
	N      int64         `json:"n,omitempty"`
	Took   time.Duration `json:"took,omitempty"`
	// At is the machine's clock in nanoseconds: all processes share it.
	At int64 `json:"at"`
}

func (n notice) at() time.Time { return time.Unix(0, n.At) }

var telling sync.Mutex

// tell writes one line in one piece, which a kill cannot cut.
func tell(n notice) {
	n.PID, n.At = os.Getpid(), time.Now().UnixNano()
	line, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	telling.Lock()
	defer telling.Unlock()
	_, _ = os.Stdout.Write(append(line, '\n')) // without a reader there is nothing to test
}

// listener passes on the notices among the lines of one worker.
type listener struct {
	on   func(notice)
	rest []byte // of a line that has not ended
}

// Write implements io.Writer.
func (l *listener) Write(text []byte) (int, error) {
	l.rest = append(l.rest, text...)
	for {
		line, rest, whole := bytes.Cut(l.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		l.rest = rest
		var n notice
		if json.Unmarshal(line, &n) == nil {
			l.on(n)
		}
	}
}
