package record

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/thread"
)

// Many who read a record at once share two reads: the one that is under way, and one that begins when all have asked.
func TestReadsAreShared(t *testing.T) {
	var rs readings
	var queries atomic.Int64
	first := make(chan struct{})
	query := func(context.Context) (Thread, error) {
		n := queries.Add(1)
		if n == 1 {
			<-first
		}
		return Thread{Version: n}, nil
	}
	under := rs.join("t", query)
	var joined []*read
	for range 500 {
		joined = append(joined, rs.join("t", query))
	}
	close(first)
	<-under.done
	require.Equal(t, int64(1), under.thread.Version)
	for _, one := range joined {
		<-one.done
		require.Equal(t, int64(2), one.thread.Version) // not older than the question
	}
	require.Eventually(t, func() bool { rs.mu.Lock(); defer rs.mu.Unlock(); return len(rs.byThread) == 0 }, time.Minute, time.Millisecond)
}

// No more changes than agreed are under way at a record at once, all get their turn, and nothing is left.
func TestChangesTakeTurns(t *testing.T) {
	var all turns
	var under, most atomic.Int64
	var done sync.WaitGroup
	for range 100 {
		done.Go(func() {
			leave, err := all.take(t.Context(), "t")
			if err != nil {
				t.Error(err)
				return
			}
			now := under.Add(1)
			for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
			}
			under.Add(-1)
			leave()
		})
	}
	done.Wait()
	require.LessOrEqual(t, most.Load(), int64(atOnce))
	require.Empty(t, all.byThread)
}

// What a record tells of itself since a version completes what somebody knows of that version, whatever was added, changed and removed.
func TestWhatChangedCompletesWhatIsKnown(t *testing.T) {
	run := func(id string, version int64) Run {
		return Run{ID: id, Version: version, Status: Pending, Kwargs: []byte(`{"long": true}`), Start: thread.StartRequest{Graph: "g"}}
	}
	known := Thread{ID: "t", Version: 3, Runs: []Run{run("removed", 1), run("same", 2), run("changed", 3)}}
	now := Thread{ID: "t", Version: 6, Runs: []Run{run("same", 2), run("changed", 5), run("added", 6)}}
	now.Runs[1].Status = Running
	told := now.since(known.Version)
	require.Empty(t, told.Runs[0].Kwargs)
	require.Equal(t, now, told.upon(known))
}
