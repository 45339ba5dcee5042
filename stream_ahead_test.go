package superstep

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/segment"
)

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
			yield := func(p StreamPart, _ error) bool {
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
	assert.False(t, a.read(detailsOf(t, segment.Delivery{Key: "1/other"}), converter.GetDefaultDataConverter()))
	assert.False(t, a.read(detailsOf(t, segment.Delivery{Key: "1/other"}, segment.Delivery{Key: "2/other"}), converter.GetDefaultDataConverter()))
	assert.Empty(t, a.tape)
	assert.Nil(t, (&handed{"segment 2", program, suspended}).ahead(scheduled("segment 1")))
}

func scheduled(activityID string) []*historypb.HistoryEvent {
	return []*historypb.HistoryEvent{{EventId: 5, Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
		ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{ActivityId: activityID}}}}
}

// detailsOf are the details of a heartbeat.
func detailsOf(t *testing.T, all ...segment.Delivery) *commonpb.Payloads {
	var record bytes.Buffer
	w, err := flate.NewWriter(&record, flate.BestSpeed)
	require.NoError(t, err)
	for _, d := range all {
		require.NoError(t, json.NewEncoder(w).Encode(d))
	}
	require.NoError(t, w.Flush())
	details, err := converter.GetDefaultDataConverter().ToPayloads(segment.Progress{}, record.Bytes())
	require.NoError(t, err)
	return details
}

func onlyNode(t *testing.T) *pregel.Program {
	g := NewStateGraph[struct{}]("g")
	g.AddNode("n", func(_ context.Context, s struct{}) (struct{}, error) { return s, nil })
	g.AddEdge(Start, "n")
	program, err := g.MustCompile().Adapter().Program()
	require.NoError(t, err)
	return program
}

// newPlaying is a reader of what nodes emit, in a run that has begun.
func newPlaying(t *testing.T, yield func(StreamPart, error) bool) *playing {
	request := StreamRequest{Thread: "t", Modes: []StreamMode{StreamCustom}}
	reader := newStreamReader(request, "run", nil)
	_, err := reader.read(taped{began: onlyNode(t)})
	require.NoError(t, err)
	return &playing{clientStream: &clientStream{request: request, yield: yield, reader: reader, live: newLiveParts("run")}}
}

func tapeOf(at int64, text string) (tape []taped) {
	told, stored, _ := strings.Cut(text, "|")
	for i, letter := range told + stored {
		e := taped{at: at, ahead: i >= len(told)}
		e.event = pregel.Event{Kind: pregel.EventTaskStart, Task: &pregel.Task{Node: "n", Path: string(letter), Step: i}}
		if strings.ToLower(string(letter)) == string(letter) {
			e.event.Kind, e.event.Value = pregel.EventCustom, pregel.Value(`"`+string(letter)+`"`)
		}
		if e.ahead {
			e.at = 0
		}
		tape = append(tape, e)
	}
	return tape
}

// TestOffsetsOfWhatWasReadAhead: what comes early has the place of what the history told before it, and what follows has
// the place that it has for every reader.
func TestOffsetsOfWhatWasReadAhead(t *testing.T) {
	places := func(tapes ...[]taped) (out []string) {
		yield := func(p StreamPart, _ error) bool {
			out = append(out, string(p.Data)+strings.TrimPrefix(p.Offset[:strings.LastIndex(p.Offset, "/")], "1/run"))
			return true
		}
		p := newPlaying(t, yield)
		for _, tape := range tapes {
			assert.NoError(t, p.hear(tape))
		}
		return out
	}
	told, early, later := tapeOf(4, "ab"), tapeOf(4, "ab|cD"), append(tapeOf(4, "ab"), tapeOf(9, "abcDe")[2:]...)
	assert.Equal(t, []string{`"a"/4/0.0`, `"b"/4/1.0`, fmt.Sprintf(`"c"/4/1.%d`, behindAll), `"e"/9/2.0`}, places(told, early, later))
	assert.Equal(t, []string{`"a"/4/0.0`, `"b"/4/1.0`, `"c"/9/0.0`, `"e"/9/2.0`}, places(later))
}
