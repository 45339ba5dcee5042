package graphtest

import (
	"testing"

	"superstep.dev"
)

// Failures runs a matrix and returns what it would report, by mode and point.
func Failures(t testing.TB, g superstep.Runnable, input any, opts ...Option) map[string]string {
	t.Helper()
	m, err := newMatrix(g, input, opts)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, mode := range m.settings.modesOr(Sync, Fused, Async, Exit) {
		points, err := m.points(t, mode)
		if err != nil {
			out[string(mode)] = err.Error()
			continue
		}
		for _, p := range points {
			if err := m.try(t, mode, []string{p}, variant{}); err != nil {
				out[string(mode)+"/"+p] = err.Error()
			}
		}
	}
	return out
}

// Refusal returns why a matrix cannot be made.
func Refusal(g superstep.Runnable, input any, opts ...Option) (any, error) {
	return newMatrix(g, input, opts)
}

// InterruptFailures interrupts a graph in memory and returns what would be reported, by mode and interruption.
func InterruptFailures(t testing.TB, g superstep.Runnable, input any, opts ...Option) (map[string]string, error) {
	t.Helper()
	in, err := newInterrupts(t, g, input, opts)
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, mode := range in.settings.modesOr(Sync) {
		for _, s := range in.stops {
			if err := in.try(t, superstep.NewMemory(), in.watch(s), mode); err != nil {
				out[string(mode)+"/"+s.String()] = err.Error()
			}
		}
	}
	return out, nil
}
