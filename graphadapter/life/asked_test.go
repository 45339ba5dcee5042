package life

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
)

// asking is a thread that asks for these, and that waits for those.
type asking struct{ open []pregel.OpenQuestion }

func (a *asking) Asks() []pregel.OpenQuestion { return a.open }
func (a *asking) Stand() Stand                { return Stand{} }

func openOnes(ids ...string) (open []pregel.OpenQuestion) {
	for _, id := range ids {
		open = append(open, pregel.OpenQuestion{Question: pregel.Question{ID: id}, Node: "ask"})
	}
	return open
}

// TestSinceWhenQuestionsAreOpen: the time of a question stays, also for whoever goes on with the state, until it is not open any more.
// What waits for an event asks nobody.
func TestSinceWhenQuestionsAreOpen(t *testing.T) {
	first := time.Date(2026, 5, 9, 10, 0, 0, 400, time.UTC)
	of := &asking{open: openOnes("q-1", "q-2")}
	of.open = append(of.open, pregel.OpenQuestion{Question: pregel.Question{ID: "e-1", Event: "paid"}})
	r := New("r-7", "refund", of, State{})
	require.Zero(t, r.AskedAt("q-1"))
	r.SeeAsked(first)
	require.Equal(t, first.Truncate(time.Second), r.AskedAt("q-1"))
	require.Zero(t, r.AskedAt("e-1"))

	of.open = openOnes("q-2", "q-3")
	later := first.Add(time.Hour)
	r.SeeAsked(later)
	require.Zero(t, r.AskedAt("q-1"))
	require.Equal(t, first.Truncate(time.Second), r.AskedAt("q-2"))
	require.Equal(t, later.Truncate(time.Second), r.AskedAt("q-3"))

	stored, err := json.Marshal(r.State)
	require.NoError(t, err)
	var known State
	require.NoError(t, json.Unmarshal(stored, &known))
	next := New("r-7", "refund", of, known)
	next.SeeAsked(later.Add(time.Hour))
	require.Equal(t, r.State.Open, next.State.Open)
	require.Equal(t, r.State.Open, next.Left().Open)
	of.open = nil
	next.SeeAsked(later.Add(time.Hour))
	require.Empty(t, next.State.Open)
}
