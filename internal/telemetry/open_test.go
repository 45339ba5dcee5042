package telemetry

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// openLooks is a watch over looks that a test ends one by one, on a clock of the test's own.
type openLooks struct {
	*openWatch
	t     *testing.T
	clock atomic.Int64 // how much later it is
	begun chan struct{}
	found chan []Open // nil for an error
}

func newOpenLooks(t *testing.T) *openLooks {
	l := &openLooks{t: t, begun: make(chan struct{}, 100), found: make(chan []Open)}
	start := time.Now()
	l.openWatch = &openWatch{was: map[openLabels]bool{}, now: func() time.Time { return start.Add(time.Duration(l.clock.Load())) }, look: func(context.Context) ([]Open, error) {
		l.begun <- struct{}{}
		open := <-l.found
		if open == nil {
			return nil, errors.New("the server is away")
		}
		return open, nil
	}}
	return l
}

// ends ends the look that is under way, and waits until that counts.
func (l *openLooks) ends(open []Open) {
	l.t.Helper()
	l.mu.Lock()
	looking := l.looking
	l.mu.Unlock()
	require.NotNil(l.t, looking)
	l.found <- open
	<-looking
}

// TestALookCostsLittle: however often somebody measures there is one look at a time, after which the index rests; a look that takes long
// keeps nobody.
func TestALookCostsLittle(t *testing.T) {
	l := newOpenLooks(t)
	for range 5 {
		open, _ := l.seen(t.Context())
		require.Empty(t, open)
	}
	require.Len(t, l.begun, 1)
	l.clock.Add(int64(2 * time.Second)) // so long it took
	l.ends([]Open{{Graph: "refund", About: "doubt", Count: 2}})
	open, _ := l.seen(t.Context())
	require.Equal(t, []Open{{Graph: "refund", About: "doubt", Count: 2}}, open)
	l.clock.Add(int64(restAfter*2*time.Second - 1))
	l.seen(t.Context())
	require.Len(t, l.begun, 1)
	l.clock.Add(1)
	l.seen(t.Context())
	require.Len(t, l.begun, 2)
	l.ends([]Open{})
	open, _ = l.seen(t.Context())
	require.Equal(t, []Open{{Graph: "refund", About: "doubt"}}, open, "what was open once is none now, and told so")
}

// TestWhatNobodyKnowsIsNotTold: the last numbers count for a while when the index does not answer, and then none.
func TestWhatNobodyKnowsIsNotTold(t *testing.T) {
	l := newOpenLooks(t)
	l.seen(t.Context())
	l.ends([]Open{{Graph: "refund", About: "question", Count: 1}})
	l.clock.Add(int64(freshFor))
	open, _ := l.seen(t.Context())
	require.Len(t, open, 1)
	l.ends(nil)
	l.clock.Add(1)
	open, _ = l.seen(t.Context())
	require.Empty(t, open)
}
