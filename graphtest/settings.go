package graphtest

import (
	"encoding/json"
	"errors"

	"testing"

	"superstep.dev"
	"superstep.dev/graphadapter"
)

// settings are what the options say.
type settings struct {
	info    superstep.TaskInfo
	context json.RawMessage
	answers []json.RawMessage
	effects map[string]graphadapter.Effect
	// stubbed and crashes are names of effects: those with a stand-in, and those after whose first call the attempt is
	// cut off.
	stubbed, crashes map[string]bool
	matrixSettings
}

func settingsOf(opts []Option) (settings, error) {
	s := settings{effects: map[string]graphadapter.Effect{}, stubbed: map[string]bool{}, crashes: map[string]bool{}}
	for _, o := range opts {
		if err := o.apply(&s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// matrixSettings are what the options for a [Matrix] and for [Interrupts] say.
type matrixSettings struct {
	modes    []Mode
	each     func(testing.TB) (superstep.Runnable, func() error)
	ignored  map[string]bool
	pairs    bool
	parallel bool
	// options are the names of those given.
	options []string
}

func (s *settings) modesOr(otherwise ...Mode) []Mode {
	if len(s.modes) > 0 {
		return s.modes
	}
	return otherwise
}

// forContext refuses what is for whole graphs.
func (s *settings) forContext() error {
	if len(s.options) > 0 {
		return errors.New(s.options[0] + " is for graphtest.Matrix")
	}
	return nil
}

// forMatrix refuses what is for a [Context].
func (s *settings) forMatrix() error {
	switch {
	case len(s.crashes) > 0:
		return errors.New("CrashAfterSend is for graphtest.Context: a Matrix crashes everywhere")
	case s.info != superstep.TaskInfo{}:
		return errors.New("Info is for graphtest.Context: a Matrix runs the whole graph")
	}
	return nil
}

// forInterrupts refuses what is for a [Context], and what needs crashes.
func (s *settings) forInterrupts() error {
	for _, name := range s.options {
		if name == "Pairs" || name == "EachRun" {
			return errors.New(name + " is for graphtest.Matrix")
		}
	}
	return s.forMatrix()
}

// Mode is how a run of a [Matrix] is executed, and so what a crash can lose.
type Mode string

// The modes of a run.
const (
	// Sync: each task is an activity of its own; what a Task or Effect records is stored before the node goes on.
	Sync Mode = "sync"
	// Fused: consecutive supersteps are one activity; each superstep, Task and Effect is stored before the run goes on.
	Fused Mode = "fused"
	// Async: the same, but stored in the background: a crash loses the newest records, or none.
	Async Mode = "async"
	// Exit: nothing is stored before the run ends or asks; a crash loses all that it did since.
	Exit Mode = "exit"
)

func (m Mode) durability() graphadapter.Durability {
	switch m {
	case Async:
		return graphadapter.DurabilityAsync
	case Exit:
		return graphadapter.DurabilityExit
	}
	return graphadapter.DurabilitySync
}
