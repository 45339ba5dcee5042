package graphtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"superstep.dev"
)

// Matrix runs the graph on the input, and then again and again with a worker that crashes: once at each point before and
// after a node runs, a Task or an Effect is recorded, an Effect calls or looks up, and a heartbeat is stored. The crashed
// worker does nothing more, what it had stored is there, and another worker goes on. Matrix does this in every [Mode], and
// wants each run to end as the one without a crash: in the same state, with the same writes to the outside, none of them
// twice, and with no Task repeated whose result was stored.
//
// Effects write to a target that Matrix keeps for each run anew. It guarantees what the effect declares as its Target and
// no more, it loses replies, and it lets calls of crashed workers arrive late; it gives the receipt of the effect's Do, so
// stand in for a Do that moves money with [Stub]. When an effect asks a person, one answers who looks at the target's
// books. [Answer] answers the graph's own questions, and [EachRun] replaces the target by an outside of the test's own.
//
// What nodes do without Task and Effect happens again whenever they run again, and is not looked at. Everything else is
// what workers run; no server is needed, and nothing waits: the time that an effect gives an earlier call passes at once.
//
// Beside the points, "restored" continues the run as a new one wherever that can be, and "yielded" gives tasks back whose
// record is full.
//
// Each point is a subtest, so -run runs one alone:
//
//	func TestRefundSurvivesEveryCrash(t *testing.T) {
//		graphtest.Matrix(t, refund.Graph(pay, 100_00), map[string]any{"order_id": "o-7"}, graphtest.Answer(true))
//	}
//
// A run of the graph must depend on its input and answers alone: a clock, a random number or another service belongs in a
// Task also because a run that takes another way each time cannot be compared.
func Matrix(t *testing.T, g superstep.Runnable, input any, opts ...Option) {
	t.Helper()
	m, err := newMatrix(g, input, opts)
	if err != nil {
		t.Fatalf("graphtest: %v", err)
	}
	for _, mode := range m.settings.modesOr(Sync, Fused, Async, Exit) {
		t.Run(string(mode), func(t *testing.T) { m.in(t, mode) })
	}
}

func newMatrix(g superstep.Runnable, input any, opts []Option) (*matrix, error) {
	s, err := settingsOf(opts)
	if err == nil {
		err = s.forMatrix()
	}
	if err != nil {
		return nil, err
	}
	raw, err := superstep.InputOf(g, input)
	return &matrix{graph: g.Adapter(), input: raw, settings: s}, err
}

// in runs one mode.
func (m *matrix) in(t *testing.T, mode Mode) {
	points, err := m.points(t, mode)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		t.Run(p, func(t *testing.T) {
			if m.settings.parallel {
				t.Parallel()
			}
			m.check(t, mode, p)
		})
	}
	if mode != Sync {
		return
	}
	t.Run("restored", func(t *testing.T) { m.report(t, m.try(t, mode, nil, variant{restore: true})) })
	t.Run("yielded", func(t *testing.T) { m.report(t, m.try(t, mode, nil, variant{yield: true})) })
}

// points runs without a crash and returns the points that the run came to.
func (m *matrix) points(t testing.TB, mode Mode) ([]string, error) {
	end, err := m.run(t, mode, nil, variant{})
	if err != nil {
		return nil, fmt.Errorf("the run without a crash: %w", err)
	}
	if m.want == nil {
		m.want = &end
	} else if d := m.same(end); d != "" {
		return nil, fmt.Errorf("without a crash the run ends otherwise than in mode %s:\n%s", m.settings.modesOr(Sync, Fused, Async, Exit)[0], d)
	}
	return end.points, nil
}

// check runs with a crash at a point, and with pairs also with a second one at each point that comes then.
func (m *matrix) check(t *testing.T, mode Mode, point string) {
	after, err := m.tried(t, mode, []string{point}, variant{})
	m.report(t, err)
	if mode == Async && err == nil {
		m.report(t, m.try(t, mode, []string{point}, variant{behind: true}))
	}
	if !m.settings.pairs || err != nil {
		return
	}
	for _, second := range after {
		t.Run(second, func(t *testing.T) { m.report(t, m.try(t, mode, []string{point, second}, variant{})) })
	}
}

func (m *matrix) report(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	t.Errorf("%v\n%s", err, alone(t))
}

// alone says how to run a subtest alone.
func alone(t testing.TB) string {
	var names []string
	for name := range strings.SplitSeq(t.Name(), "/") {
		names = append(names, "^"+regexp.QuoteMeta(name)+"$")
	}
	return fmt.Sprintf("run it alone: go test -run '%s'", strings.Join(names, "/"))
}

// try runs with these crashes and says what is not as it should be.
func (m *matrix) try(t testing.TB, mode Mode, crashAt []string, v variant) error {
	_, err := m.tried(t, mode, crashAt, v)
	return err
}

func (m *matrix) tried(t testing.TB, mode Mode, crashAt []string, v variant) (after []string, err error) {
	end, err := m.run(t, mode, crashAt, v)
	if err != nil {
		return nil, err
	}
	if d := m.same(end); d != "" {
		return nil, fmt.Errorf("%s", d)
	}
	return end.points, nil
}
