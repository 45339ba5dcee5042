package remote

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"
	"superstep.dev/graphadapter"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
	"superstep.dev/internal/tape"
	"superstep.dev/thread"
	"superstep.dev/thread/live"
)

// nothingHad is a reader that begins to read.
func nothingHad(string) (tape.Emitted, bool) { return tape.Emitted{}, false }

// TestLiveParts: what a reader gets of one task, live (lines "execution.sequence value", "reset N" for a new attempt) and
// then from its result. Nothing of the last attempt is lost or twice, whatever came live.
func TestLiveParts(t *testing.T) {
	began := time.Unix(100, 0)
	start := tape.Entry{When: began, Event: pregel.Event{Kind: pregel.EventTaskStart, Task: &pregel.Task{Node: "a", Path: "a", Step: 1}}}
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
		{"a lost worker", "", "1.0 1,2.0 1,2.1 2", "1,2", "1,2"},
		{"a lost worker's second attempt", "", "1.0 1,2.0 reset 2,2.1 5,3.0 reset 2,3.1 5,3.2 6", "1,reset 2,5,6", "1,reset 2,5,6"},
		{"the one after a lost worker says less", "", "1.0 1,1.1 2,1.2 3,2.0 1,2.1 2", "1,2", "1,2,3,reset 1,1,2"},
		{"what comes after a lost worker is missed", "", "1.0 1,1.1 2,2.1 2,2.2 3", "1,2,3", "1,2,3"},
		{"the lost worker's emissions differ", "", "1.0 1,1.1 9", "1,2", "1,9,reset 1,1,2"},
		{"the lost worker's alone came, and more than the last emits", "", "1.0 1,1.1 2", "1", "1,2,reset 1,1"},
		{"late ones of a lost worker", "", "2.0 1,1.0 7,2.1 2", "1,2", "1,2"},
		{"given back, and scheduled again", "", "1.0 1,1.0+ reset 1,1.1+ 1,1.2+ 2", "reset 1,1,2", "1,2"},
		{"escaped in the result", "", `1.0 "<"`, `"\u003c"`, `"<"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLiveParts("run", false)
			l.release(nothingHad)
			var got []string
			hear := func(parts []livePart) {
				for _, p := range parts {
					got = append(got, show(p.Event))
				}
			}
			comes := func(list string) {
				for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
					at, text, _ := strings.Cut(item, " ")
					e := live.Emission{Run: "run", Task: start.Event.Task.Key(), Scheduled: began.Add(time.Millisecond), Emission: emit(text)}
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
			var result []tape.Entry
			for _, text := range strings.Split(c.result, ",") {
				result = append(result, tape.Entry{Event: tape.EmissionEvent(start.Event.Task, emit(text))})
			}
			given, void := l.recorded(result)
			if void {
				got = append(got, fmt.Sprintf("reset %d", attemptIn(result)))
			}
			for _, r := range result[given:] {
				hear([]livePart{{Event: r.Event}})
			}
			assert.Equal(t, c.want, strings.Join(got, ","))
		})
	}
}

// TestLivePartsInOrder: what tasks emit beside each other waits until one of them is left, and a subgraph's task is one with that around
// it. So the order is the one in which the history tells.
func TestLivePartsInOrder(t *testing.T) {
	began := time.Unix(100, 0)
	l := newLiveParts("run", true)
	assert.Empty(t, l.release(nothingHad))
	var got []string
	hear := func(events []livePart) {
		for _, e := range events {
			got = append(got, e.Task.Node+" "+string(e.Value))
		}
	}
	tells := func(kind pregel.EventKind, task *pregel.Task) {
		hear(l.tells(tape.Entry{When: began, Event: pregel.Event{Kind: kind, Task: task}}))
	}
	comes := func(task *pregel.Task, n int) {
		hear(l.take(live.Emission{Run: "run", Task: task.Key(), Scheduled: began.Add(time.Second), Execution: 1, Sequence: n,
			Emission: pregel.Emission{Value: pregel.Value(fmt.Sprint(n))}}))
	}
	a, b := &pregel.Task{Node: "a", Path: "a", Step: 1}, &pregel.Task{Node: "b", Path: "b", Step: 1}
	inner := &pregel.Task{Node: "inner", Path: "inner", Step: 1, Namespace: b.Space()}
	tells(pregel.EventTaskStart, a)
	comes(a, 0)
	tells(pregel.EventTaskStart, b)
	comes(inner, 0)
	tells(pregel.EventTaskStart, inner)
	comes(a, 1)
	comes(inner, 1)
	assert.Equal(t, []string{"a 0"}, got)
	tells(pregel.EventTaskEnd, a)
	comes(inner, 2)
	assert.Equal(t, []string{"a 0", "inner 0", "inner 1", "inner 2"}, got)
}

// TestLivePartsOfOthers: emissions of another run, and of the same task when it was under way before, are nothing.
func TestLivePartsOfOthers(t *testing.T) {
	began := time.Unix(100, 0)
	task := &pregel.Task{Node: "a", Path: "a", Step: 1}
	l := newLiveParts("run", false)
	l.release(nothingHad)
	l.tells(tape.Entry{When: began, Event: pregel.Event{Kind: pregel.EventTaskStart, Task: task}})
	e := live.Emission{Run: "run", Task: task.Key(), Scheduled: began.Add(time.Second), Execution: 1, Emission: pregel.Emission{Value: pregel.Value("1")}}
	other, stale := e, e
	other.Run = "another"
	stale.Scheduled = began.Add(-time.Second)
	assert.Empty(t, l.take(other))
	assert.Empty(t, l.take(stale))
	assert.Len(t, l.take(e), 1)
	l.tells(tape.Entry{Event: pregel.Event{Kind: pregel.EventTaskEnd, Task: task}})
	for range 2 * live.LiveBacklog { // of a task that nobody starts
		assert.Empty(t, l.take(e))
	}
	assert.Equal(t, live.LiveBacklog, l.early.queued)
}

// TestLivePartsOfOneWhoGoesOn: a reader that goes on from an offset gets what the tasks under way have emitted when it has
// got there, and nothing of tasks that had ended before.
func TestLivePartsOfOneWhoGoesOn(t *testing.T) {
	began := time.Unix(100, 0)
	first, second := &pregel.Task{Node: "a", Path: "a", Step: 1}, &pregel.Task{Node: "b", Path: "b", Step: 2}
	l := newLiveParts("run", false)
	came := func(run string, task *pregel.Task, n int) []livePart {
		return l.take(live.Emission{Run: run, Task: task.Key(), Scheduled: began.Add(time.Second), Execution: 1, Sequence: n,
			Emission: pregel.Emission{Value: pregel.Value(fmt.Sprint(n))}})
	}
	for n := range 3 {
		assert.Empty(t, came("run", first, n))
		assert.Empty(t, came("run", second, n))
	}
	assert.Empty(t, came("next", first, 0))
	for _, e := range []pregel.Event{{Kind: pregel.EventTaskStart, Task: first}, {Kind: pregel.EventTaskEnd, Task: first},
		{Kind: pregel.EventTaskStart, Task: second}} {
		assert.Empty(t, l.tells(tape.Entry{When: began, Event: e}))
	}
	assert.Len(t, l.release(nothingHad), 3)
	assert.Len(t, came("run", second, 3), 1)
	l.Enter("next", true)
	l.tells(tape.Entry{When: began, Event: pregel.Event{Kind: pregel.EventTaskStart, Task: first}})
	assert.Len(t, l.release(nothingHad), 1, "what came of the next run before the reader was there")
	assert.Zero(t, l.early.queued)
	assert.Zero(t, l.early.bytes)
}

// TestWhatIsReadAhead: a reader is given the tape as it grows: lower case gives a part, upper case does not; what is
// behind | is stored by a segment, and not told yet. It gets each part once.
func TestWhatIsReadAhead(t *testing.T) {
	for _, c := range []struct{ name, tapes, want string }{
		{"told as it was stored", "a| a|b a|bC a|bCd abCd abCde", "a b d e"},
		{"told at once", "a| a|b abc", "a b c"},
		{"more than was stored", "a|b abc|d abcd abcde", "a b c d e"},
		{"the segment is not known any more", "a|bc a a|b abcd", "a b c d"},
		{"it stopped where it would have gone on", "a|bC abd", "a b d"},
		{"it stopped before what was shown", "a|bcD aD", "a b c, an error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			yield := func(p thread.Part, _ error) bool {
				got = append(got, strings.Trim(string(p.Data), `"`))
				return true
			}
			p := newPlaying(t, yield)
			var err error
			for at, text := range strings.Fields(c.tapes) {
				if err == nil {
					err = p.hear(tapeOf(int64(at), text))
				}
			}
			if err != nil {
				got[len(got)-1] += ", an error"
			}
			assert.Equal(t, c.want, strings.Join(got, " "))
		})
	}
}

// TestARecordOfAnotherLoop: what this process's engine does not ask for tells nothing, nor does what is stored behind it.
func TestARecordOfAnotherLoop(t *testing.T) {
	program := onlyNode(t)
	loop, err := program.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
	require.NoError(t, err)
	suspended, err := loop.Suspend()
	require.NoError(t, err)
	a := (&handed{"segment 1", program, suspended}).ahead(scheduled("segment 1"))
	require.NotNil(t, a)
	assert.False(t, a.Read(detailsOf(t, "other", "another"), converter.GetDefaultDataConverter()))
	assert.False(t, a.Read(detailsOf(t, "other", "another", "third"), converter.GetDefaultDataConverter()))
	assert.Empty(t, a.tape)
	assert.Nil(t, (&handed{"segment 2", program, suspended}).ahead(scheduled("segment 1")))
}

func scheduled(activityID string) []*historypb.HistoryEvent {
	return []*historypb.HistoryEvent{{EventId: 5, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityId: activityID}}}}
}

// chainOf is a graph of nodes that do nothing, one behind the other.
func chainOf(nodes ...string) *graphadapter.Graph {
	g := &graphadapter.Graph{Spec: &pregel.Spec{Version: pregel.SpecVersion, Name: "g"}, Nodes: map[string]graphadapter.Node{}}
	last := pregel.Start
	for _, name := range nodes {
		g.Spec.Nodes, g.Spec.Edges = append(g.Spec.Nodes, pregel.NodeSpec{Name: name}), append(g.Spec.Edges, pregel.Edge{From: last, To: name})
		g.Nodes[name] = graphadapter.Node{Run: func(context.Context, graphadapter.Input) (pregel.Command, error) { return pregel.Command{}, nil }}
		last = name
	}
	return g
}

// detailsOf are the details of the last heartbeat of a segment that runs these nodes, one after the other.
func detailsOf(t *testing.T, nodes ...string) *commonpb.Payloads {
	adapter := chainOf(nodes...)
	program, err := adapter.Program()
	require.NoError(t, err)
	loop, err := program.Start(pregel.NewThread(), pregel.Input{Value: pregel.Value(`{}`)}, pregel.Options{RecursionLimit: 9}, false, nil)
	require.NoError(t, err)
	suspended, err := loop.Suspend()
	require.NoError(t, err)
	s, err := segment.OpenSegment(adapter, &segment.Request{Graph: "g", Thread: "t", Loop: suspended}, false, nil, nil)
	require.NoError(t, err)
	var record []byte
	_, err = s.Run(t.Context(), segment.Host{Keep: func(context.Context) error {
		record, _ = s.Record()
		return nil
	}})
	require.NoError(t, err)
	all, err := segment.DecodeRecord(record)
	require.NoError(t, err)
	require.Len(t, all, len(nodes)-1, "before the last one the heartbeat is sent")
	details, err := converter.GetDefaultDataConverter().ToPayloads(graphadapter.Progress{}, record)
	require.NoError(t, err)
	return details
}

func onlyNode(t *testing.T) *pregel.Program {
	program, err := chainOf("n").Program()
	require.NoError(t, err)
	return program
}

// newPlaying is a reader of what nodes emit, in a run that has begun.
func newPlaying(t *testing.T, yield func(thread.Part, error) bool) *playing {
	request := thread.StreamRequest{Thread: "t", Modes: []thread.StreamMode{thread.StreamCustom}}
	reader := tape.NewReader(request, "run", nil)
	_, err := reader.Read(tape.Entry{Began: onlyNode(t)})
	require.NoError(t, err)
	return &playing{clientStream: &clientStream{request: request, yield: yield, reader: reader, live: newLiveParts("run", false)}}
}

func tapeOf(at int64, text string) (taped []tape.Entry) {
	told, stored, _ := strings.Cut(text, "|")
	for i, letter := range told + stored {
		e := tape.Entry{At: at, Ahead: i >= len(told)}
		e.Event = pregel.Event{Kind: pregel.EventTaskStart, Task: &pregel.Task{Node: "n", Path: string(letter), Step: i}}
		if strings.ToLower(string(letter)) == string(letter) {
			e.Event.Kind, e.Event.Value = pregel.EventCustom, pregel.Value(`"`+string(letter)+`"`)
		}
		if e.Ahead {
			e.At = 0
		}
		taped = append(taped, e)
	}
	return taped
}

// TestOffsetsOfWhatWasReadAhead: what comes early has the place of what the history told before it, and what follows has
// the place that it has for every reader.
func TestOffsetsOfWhatWasReadAhead(t *testing.T) {
	places := func(tapes ...[]tape.Entry) (out []string) {
		yield := func(p thread.Part, _ error) bool {
			out = append(out, string(p.Data)+strings.TrimPrefix(p.Offset[:strings.LastIndex(p.Offset, "/")], "2/run"))
			return true
		}
		p := newPlaying(t, yield)
		for _, tape := range tapes {
			assert.NoError(t, p.hear(tape))
		}
		return out
	}
	told, early, later := tapeOf(4, "ab"), tapeOf(4, "ab|cD"), append(tapeOf(4, "ab"), tapeOf(9, "abcDe")[2:]...)
	assert.Equal(t, []string{`"a"/4/0.0`, `"b"/4/1.0`, `"c"/4/1.0/1.1784156316/`, `"e"/9/2.0`}, places(told, early, later))
	assert.Equal(t, []string{`"a"/4/0.0`, `"b"/4/1.0`, `"c"/9/0.0`, `"e"/9/2.0`}, places(later))
}
