package graphtest

import (
	"errors"
	"testing"

	"superstep.dev"
)

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

func matrixOption(name string, set func(*matrixSettings)) Option {
	return option(func(s *settings) error {
		s.options = append(s.options, name)
		set(&s.matrixSettings)
		return nil
	})
}

// Modes runs a [Matrix], or [Interrupts], in these modes only.
func Modes(modes ...Mode) Option {
	return matrixOption("Modes", func(s *matrixSettings) { s.modes = modes })
}

// Pairs lets a [Matrix] crash a second time as well: for each point, at every point that comes after the first crash. That
// is about the square of the number of points.
func Pairs() Option { return matrixOption("Pairs", func(s *matrixSettings) { s.pairs = true }) }

// Parallel runs the points of a [Matrix], or the places of [Interrupts], in parallel. The graph's nodes must be safe for
// that.
func Parallel() Option {
	return matrixOption("Parallel", func(s *matrixSettings) { s.parallel = true })
}

// Except leaves fields of the state out of what a [Matrix] and [Interrupts] compare: those that have another value each
// time.
func Except(fields ...string) Option {
	return matrixOption("Except", func(s *matrixSettings) {
		if s.ignored == nil {
			s.ignored = map[string]bool{}
		}
		for _, f := range fields {
			s.ignored[f] = true
		}
	})
}

// EachRun makes the graph anew for each run of a [Matrix], with an outside of the test's own: the effects' own functions
// are called. check, unless it is nil, says after a run what is wrong with the outside: a write that is there twice.
func EachRun(setup func(t testing.TB) (g superstep.Runnable, check func() error)) Option {
	return matrixOption("EachRun", func(s *matrixSettings) { s.each = setup })
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
