package thread_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/internal/jsonfit"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// heard is an element of a conversation that counts how often one is decoded.
type heard struct{ Text string }

var decodings atomic.Int64

// UnmarshalJSON implements json.Unmarshaler.
func (h *heard) UnmarshalJSON(text []byte) error {
	decodings.Add(1)
	return json.Unmarshal(text, (*struct{ Text string })(h))
}

// One text makes one value, so what is decoded may be kept: as of a type without methods.
var _ = jsonfit.DecodesAlone[heard]()

type conversation struct {
	Said superstep.List[heard] `json:"said"`
	// Heard is how many the node has heard.
	Heard superstep.Value[int] `json:"heard"`
}

// hearing is a graph whose node reads all that was said.
func hearing(name string, opts ...superstep.CompileOption) *superstep.Graph[conversation] {
	b := superstep.NewStateGraph[conversation](name)
	b.AddNode("hear", func(_ context.Context, s conversation) (conversation, error) {
		s.Heard.Set(len(s.Said.Get()))
		return s, nil
	})
	b.AddEdge(superstep.Start, "hear")
	return b.MustCompile(opts...)
}

// oneSaid is an input of a kilobyte.
func oneSaid() (in conversation) {
	in.Said.Append(heard{said(1<<10, 1)})
	return in
}

// decodedOnce holds that of each turn no more was decoded than what it said, that many times. One turn may have found nothing decoded, as
// where it took so long that it went on in an activity.
func decodedOnce(t *testing.T, turns, each int64) {
	t.Helper()
	got := decodings.Load()
	t.Logf("%d turns, %d decodings", turns, got)
	assert.GreaterOrEqual(t, got, turns, "nobody has read them")
	assert.LessOrEqual(t, got, each*turns+turns)
}

// TestTurnsStayDecodedOnAWorker: of 50 turns each part is decoded three times on its way into the state, where a worker says whether it takes
// the input, where the run does, and by the node that reads all that was said until then. What was said before is not decoded again, in
// whatever mode, and whether all turns have one run or one each.
func TestTurnsStayDecodedOnAWorker(t *testing.T) {
	const turns = 50
	input, err := json.Marshal(map[string]any{"said": oneSaid().Said})
	require.NoError(t, err)
	for name, opts := range rig.Modes {
		g := hearing("heard-"+name, opts...)
		for kind, idle := range map[string]time.Duration{"one run": time.Hour, "a run each": -1} {
			t.Run(name+", "+kind, func(t *testing.T) {
				s := rig.NewServer(t)
				s.Work(g)
				decodings.Store(0)
				for turn := range turns {
					view, err := s.Invoke(t.Context(), thread.StartRequest{Graph: g.Name(), Thread: s.Queue, Input: input,
						KeepOpen: idle > 0, IdleTimeout: idle})
					require.NoError(t, err)
					require.Equal(t, fmt.Sprint(turn+1), string(view.Output["heard"]))
				}
				decodedOnce(t, turns, 3)
			})
		}
	}
}

// TestTurnsStayDecodedForACaller who reads all that was said after each turn: it is decoded once more, wherever the caller has it from. One
// who comes when the run is over has it from what that left.
func TestTurnsStayDecodedForACaller(t *testing.T) {
	const turns = 50
	g := hearing("read")
	s := rig.NewServer(t)
	s.Work(g)
	for kind, invoke := range map[string]func(t *testing.T, th *superstep.Thread[conversation]) (superstep.Result[conversation], error){
		"one run": func(t *testing.T, th *superstep.Thread[conversation]) (superstep.Result[conversation], error) {
			return th.Invoke(t.Context(), oneSaid())
		},
		"a run each": func(t *testing.T, th *superstep.Thread[conversation]) (superstep.Result[conversation], error) {
			return th.Invoke(t.Context(), oneSaid(), superstep.WithKeepOpen(-1))
		},
		"late": func(t *testing.T, th *superstep.Thread[conversation]) (superstep.Result[conversation], error) {
			require.NoError(t, th.Start(t.Context(), oneSaid(), superstep.WithKeepOpen(-1)))
			require.NoError(t, s.Temporal.GetWorkflow(t.Context(), th.ID(), "").Get(t.Context(), nil))
			return th.Wait(t.Context())
		},
	} {
		t.Run(kind, func(t *testing.T) {
			decodings.Store(0)
			th := g.Thread(s.Client, s.Queue+kind)
			for turn := range turns {
				got, err := invoke(t, th)
				require.NoError(t, err)
				require.Equal(t, thread.StatusFinished, got.Status)
				require.Len(t, got.Output.Said.Get(), turn+1)
			}
			decodedOnce(t, turns, 4)
		})
	}
}
