package main

import (
	"bytes"
	"encoding/json"
	"os"
	"time"
)

// notice is a line that a worker process writes when a node starts.
type notice struct {
	PID    int    `json:"pid"`
	Thread string `json:"thread"`
	Node   string `json:"node"`
	// At is the machine's clock in nanoseconds: all processes share it.
	At int64 `json:"at"`
}

// tell writes one line in one piece, which a kill cannot cut.
func tell(n notice) {
	n.PID, n.At = os.Getpid(), time.Now().UnixNano()
	line, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	_, _ = os.Stdout.Write(append(line, '\n')) // without a reader there is nothing to measure
}

// notices passes on the lines of one worker.
type notices struct {
	to   chan<- notice
	rest []byte // of a line that has not ended
}

// Write implements io.Writer.
func (n *notices) Write(text []byte) (int, error) {
	n.rest = append(n.rest, text...)
	for {
		line, rest, whole := bytes.Cut(n.rest, []byte("\n"))
		if !whole {
			return len(text), nil
		}
		n.rest = rest
		var one notice
		if json.Unmarshal(line, &one) == nil && one.Node != "" {
			n.to <- one
		}
	}
}
