package superstep_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev"
)

// TestCheckpointsAreDated: every checkpoint of a thread's runs, and its state, say when they were made, in every mode, while
// the run is open, behind its end and behind the next run's begin.
func TestCheckpointsAreDated(t *testing.T) {
	for name, opts := range modes {
		t.Run(name, func(t *testing.T) {
			b := superstep.NewStateGraph[counter]("dated")
			b.AddNode("a", appending("a"))
			b.AddNode("b", appending("b"))
			b.AddEdge(superstep.Start, "a")
			b.AddEdge("a", "b")
			onRuntimes(t, b.MustCompile(append(slices.Clip(opts), superstep.WithInterruptBefore("b"))...),
				func(t *testing.T, rt superstep.Runtime, th *superstep.Thread[counter]) {
					began := time.Now().Add(-time.Minute) // the server's clock is another one
					dated := func() {
						t.Helper()
						history, err := th.History(t.Context())
						require.NoError(t, err)
						require.NotEmpty(t, history)
						for i, c := range history {
							assert.WithinRange(t, c.CreatedAt, began, time.Now().Add(time.Minute))
							if i > 0 {
								assert.False(t, c.CreatedAt.After(history[i-1].CreatedAt), "the newest comes first")
							}
						}
						now, err := th.State(t.Context())
						require.NoError(t, err)
						assert.WithinDuration(t, history[0].CreatedAt, now.CreatedAt, time.Millisecond)
						oldest := history[len(history)-1]
						then, err := th.StateAt(t.Context(), oldest.Checkpoint)
						require.NoError(t, err)
						assert.WithinDuration(t, oldest.CreatedAt, then.CreatedAt, time.Millisecond)
					}
					invoke(t, th, counter{})
					dated()
					invoke(t, th, nil)
					dated()
					invoke(t, th, counter{})
					dated()
				})
		})
	}
}

// TestThreadStateAsJSON has the values once, as the state's fields.
func TestThreadStateAsJSON(t *testing.T) {
	b := superstep.NewStateGraph[counter]("as_json")
	b.AddNode("a", appending("a"))
	b.AddEdge(superstep.Start, "a")
	th := b.MustCompile().Thread(superstep.NewMemory(), "t")
	invoke(t, th, counter{})
	state, err := th.State(t.Context())
	require.NoError(t, err)
	text, err := json.Marshal(state)
	require.NoError(t, err)
	var fields map[string]json.RawMessage
	require.NoError(t, json.Unmarshal(text, &fields))
	assert.NotContains(t, fields, "State")
	assert.JSONEq(t, `{"log":["a"]}`, string(fields["values"]))
	var again superstep.ThreadState[counter]
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, state.Checkpoint, again.Checkpoint)
	assert.Equal(t, []string{"a"}, again.State.Log.Get())
	require.ErrorAs(t, json.Unmarshal([]byte(`{"graph":"as_json","values":{"log":7}}`), &again), new(*superstep.StateError))
	assert.Equal(t, []string{"a"}, again.State.Log.Get(), "what cannot be read changes nothing")
}
