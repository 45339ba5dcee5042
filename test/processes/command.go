package processes

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"time"
)

// Command is a process to start.
type Command struct {
	// Name is what people call the process; its log is the file of that name, and ".log", in the set's directory.
	// Processes of the same name share a log.
	Name string
	// Path is the program, Args what follows its name.
	Path string
	Args []string
	// Env is the whole environment; nil means this process's own.
	Env []string
	// Dir is the working directory; "" means this process's own.
	Dir string
	// Output gets what the process writes as it comes, besides the log; nil is nobody. An Output with a method Flush
	// is flushed when the process has ended.
	Output io.Writer

	// ReadyFile names a file that the process makes once it is ready. It is removed before the start, as one that was
	// killed leaves its own behind. ReadyLine is a line that the process writes then. With neither a process is ready
	// as soon as it is started.
	ReadyFile string
	ReadyLine *regexp.Regexp
	// ReadyWithin bounds the wait; 0 means three minutes.
	ReadyWithin time.Duration
	// StopWithin is how long the process may take to end by itself once it was asked to; 0 means a minute.
	StopWithin time.Duration
}

const (
	defaultReadyWithin = 3 * time.Minute // both are that long for busy machines
	defaultStopWithin  = time.Minute
)

func (c *Command) readyWithin() time.Duration {
	if c.ReadyWithin > 0 {
		return c.ReadyWithin
	}
	return defaultReadyWithin
}

func (c *Command) stopWithin() time.Duration {
	if c.StopWithin > 0 {
		return c.StopWithin
	}
	return defaultStopWithin
}

// forgetReady removes what an earlier process left, which would be taken for this one's word.
func (c *Command) forgetReady() error {
	if c.ReadyFile == "" {
		return nil
	}
	if err := os.RemoveAll(c.ReadyFile); err != nil {
		return fmt.Errorf("start %s: %w", c.Name, err)
	}
	return nil
}
