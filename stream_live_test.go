package superstep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"superstep.dev/graphadapter/pregel"
)

// TestLiveParts: what a reader gets of one task, live (lines "execution.sequence value", "reset N" for a new attempt) and
// then from its result. Nothing of the last attempt is lost or twice, whatever came live.
func TestLiveParts(t *testing.T) {
	began := time.Unix(100, 0)
	start := taped{when: began, event: pregel.Event{Kind: pregel.EventTaskStart, Task: &pregel.Task{Node: "a", Path: "a", Step: 1}}}
	emit := func(text string) pregel.Emission {
		var n int
		if _, err := fmt.Sscanf(text, "reset %d", &n); err == nil {
			return pregel.Emission{Kind: pregel.EmissionReset, Attempt: n}
		}
		return pregel.Emission{Value: pregel.Value(text)}
	}
	show := func(e pregel.Event) string {
		if e.Kind == pregel.EventReset {
			return fmt.Sprintf("reset %d", e.Attempt)
		}
		return string(e.Value)
	}
	for _, c := range []struct{ name, early, live, result, want string }{
		{"all live", "", "1.0 1,1.1 2", "1,2", "1,2"},
		{"nothing live", "", "", "1,2", "1,2"},
		{"live before the start is told", "1.0 1", "1.1 2", "1,2", "1,2"},
		{"the end is missing", "", "1.0 1", "1,2,3", "1,2,3"},
		{"the beginning is missing", "", "1.1 2,1.2 3", "1,2,3", "1,2,3"},
		{"one is missing", "", "1.0 1,1.2 3", "1,2,3", "1,2,3"},
		{"repeated", "", "1.0 1,1.0 1,1.1 2,1.0 1", "1,2", "1,2"},
		{"a repeated attempt", "", "1.0 1,2.0 reset 2,2.1 5", "1,reset 2,5,6", "1,reset 2,5,6"},
		{"the second attempt came not", "", "1.0 1", "1,reset 2,5", "1,reset 2,5"},
		{"only the second attempt came", "", "2.0 reset 2,2.1 5", "1,reset 2,5,6", "reset 2,5,6"},
		{"a lost worker", "", "1.0 1,2.0 1,2.1 2", "1,2", "1,reset 1,1,2"},
		{"the lost worker's emissions differ", "", "1.0 1,1.1 9", "1,2", "1,9,reset 1,1,2"},
		{"the lost worker's alone came, and more than the last emits", "", "1.0 1,1.1 2", "1", "1,2,reset 1,1"},
		{"late ones of a lost worker", "", "2.0 1,1.0 7,2.1 2", "1,2", "1,2"},
		{"given back, and scheduled again", "", "1.0 1,1.0+ reset 1,1.1+ 1,1.2+ 2", "reset 1,1,2", "1,reset 1,1,2"},
		{"escaped in the result", "", `1.0 "<"`, `"\u003c"`, `"<"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLiveParts("run")
			l.release()
			var got []string
			hear := func(events []pregel.Event) {
				for _, e := range events {
					got = append(got, show(e))
				}
			}
			comes := func(list string) {
				for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
					at, text, _ := strings.Cut(item, " ")
					e := LiveEmission{Run: "run", Task: start.event.Task.Key(), Scheduled: began.Add(time.Millisecond), Emission: emit(text)}
					if strings.HasSuffix(at, "+") { // of a later activity
						e.Scheduled = e.Scheduled.Add(time.Second)
					}
					_, err := fmt.Sscanf(at, "%d.%d", &e.Execution, &e.Sequence)
					assert.NoError(t, err)
					hear(l.take(e))
				}
			}
			comes(c.early)
			assert.Empty(t, got)
			hear(l.tells(start))
			comes(c.live)
			var result []taped
			for _, text := range strings.Split(c.result, ",") {
				result = append(result, taped{event: emissionEvent(start.event.Task, emit(text))})
			}
			given, void := l.recorded(result)
			if void {
				got = append(got, fmt.Sprintf("reset %d", attemptIn(result)))
			}
			for _, r := range result[given:] {
				hear([]pregel.Event{r.event})
			}
			assert.Equal(t, c.want, strings.Join(got, ","))
		})
	}
}

// TestLivePartsOfOthers: emissions of another run, and of the same task when it was under way before, are nothing.
func TestLivePartsOfOthers(t *testing.T) {
	began := time.Unix(100, 0)
	task := &pregel.Task{Node: "a", Path: "a", Step: 1}
	l := newLiveParts("run")
	l.release()
	l.tells(taped{when: began, event: pregel.Event{Kind: pregel.EventTaskStart, Task: task}})
	e := LiveEmission{Run: "run", Task: task.Key(), Scheduled: began.Add(time.Second), Execution: 1, Emission: pregel.Emission{Value: pregel.Value("1")}}
	other, stale := e, e
	other.Run = "another"
	stale.Scheduled = began.Add(-time.Second)
	assert.Empty(t, l.take(other))
	assert.Empty(t, l.take(stale))
	assert.Len(t, l.take(e), 1)
	l.tells(taped{event: pregel.Event{Kind: pregel.EventTaskEnd, Task: task}})
	for range 2 * liveBacklog { // of a task that nobody starts
		assert.Empty(t, l.take(e))
	}
	assert.Equal(t, liveBacklog, l.early.queued)
}

// TestLivePartsOfOneWhoGoesOn: a reader that goes on from an offset gets what the tasks under way have emitted when it has
// got there, and nothing of tasks that had ended before.
func TestLivePartsOfOneWhoGoesOn(t *testing.T) {
	began := time.Unix(100, 0)
	first, second := &pregel.Task{Node: "a", Path: "a", Step: 1}, &pregel.Task{Node: "b", Path: "b", Step: 2}
	l := newLiveParts("run")
	came := func(run string, task *pregel.Task, n int) []pregel.Event {
		return l.take(LiveEmission{Run: run, Task: task.Key(), Scheduled: began.Add(time.Second), Execution: 1, Sequence: n,
			Emission: pregel.Emission{Value: pregel.Value(fmt.Sprint(n))}})
	}
	for n := range 3 {
		assert.Empty(t, came("run", first, n))
		assert.Empty(t, came("run", second, n))
	}
	assert.Empty(t, came("next", first, 0))
	for _, e := range []pregel.Event{{Kind: pregel.EventTaskStart, Task: first}, {Kind: pregel.EventTaskEnd, Task: first},
		{Kind: pregel.EventTaskStart, Task: second}} {
		assert.Empty(t, l.tells(taped{when: began, event: e}))
	}
	assert.Len(t, l.release(), 3)
	assert.Len(t, came("run", second, 3), 1)
	l.enter("next", true)
	l.tells(taped{when: began, event: pregel.Event{Kind: pregel.EventTaskStart, Task: first}})
	assert.Len(t, l.release(), 1, "what came of the next run before the reader was there")
	assert.Zero(t, l.early.queued)
	assert.Zero(t, l.early.bytes)
}
