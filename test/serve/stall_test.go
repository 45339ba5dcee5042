package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/internal/testserver"
)

// stalling is a crowd that reads runs whose worker stands still, and is taken for lost.
type stalling struct {
	speaker
	temporal client.Client
	// threads and runs are what is read.
	threads, runs []string
	readers       []*listening
}

func newStalling(t *testing.T, threads int) *stalling {
	if testing.Short() {
		t.Skip("starts and stops processes")
	}
	w := newWorldAt(t, testserver.Start(t, testserver.Options{Live: true}).Address())
	c, err := client.DialContext(t.Context(), client.Options{HostPort: w.address})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	s := &stalling{speaker: newSpeaker(w), temporal: c}
	for range threads {
		thread, run := versions["first"].begin(s.speaker, 8)
		s.threads, s.runs = append(s.threads, thread), append(s.runs, run)
	}
	return s
}

// join opens streams of each run.
func (s *stalling) join(each int) {
	s.Helper()
	for n, thread := range s.threads {
		for range each {
			req := s.request(http.MethodGet, "/threads/"+thread+"/runs/"+s.runs[n]+"/stream", nil)
			req.Header.Set("Last-Event-ID", "-1")
			s.readers = append(s.readers, s.listen(req))
		}
	}
}

// stall has the worker stand still until the server has taken it for lost, in each of the runs.
func (s *stalling) stall(meanwhile func()) {
	s.Helper()
	attempt := func(thread string) int32 {
		d, err := s.temporal.DescribeWorkflowExecution(context.Background(), thread, "")
		if err != nil || len(d.GetPendingActivities()) != 1 {
			return 0
		}
		return d.GetPendingActivities()[0].GetAttempt()
	}
	require.NoError(s, syscall.Kill(s.worker.PID(), syscall.SIGSTOP))
	before := map[string]int32{} // a slow machine may have lost some already
	for _, thread := range s.threads {
		s.eventually("the node is under way", func() bool { before[thread] = attempt(thread); return before[thread] > 0 })
	}
	meanwhile()
	for _, thread := range s.threads {
		s.eventually("the worker is taken for lost", func() bool { return attempt(thread) > before[thread] })
	}
	require.NoError(s, syscall.Kill(s.worker.PID(), syscall.SIGCONT))
}

// each waits until every reader has so many words, and no event twice.
func (s *stalling) each(words int) {
	s.Helper()
	for n, l := range s.readers {
		l.until("words", func(all []sent) bool { return len(versions["first"].words(all)) >= words })
		seen := map[string]bool{}
		for _, e := range l.all {
			require.False(s, seen[e.ID], "reader %d: event %s came twice: %v", n, e.ID, l.all)
			seen[e.ID] = true
		}
	}
}

// A worker stands still for so long that its node runs again, as one does on a machine that has too much to do, while readers have words
// already, join meanwhile, and join when it has said more. What the node says again comes once, live, whoever reads.
func TestACrowdWhoseWorkerStalls(t *testing.T) {
	s := newStalling(t, 5)
	s.upto(2)
	s.join(20)
	s.each(2)
	s.put("lingers", "")
	s.stall(func() { s.join(20) })
	s.upto(4)
	s.each(4)
	require.NoError(t, os.Remove(filepath.Join(s.dir, "lingers"))) // the first execution ends behind the second one's words
	s.eventually("it has ended", func() bool { _, err := os.Stat(filepath.Join(s.dir, "left")); return err == nil })
	for words := 5; words <= 7; words++ {
		s.join(10)
		s.upto(words)
		s.each(words)
	}
	s.upto(9)
	for _, l := range s.readers {
		l.until("the end of the run", func(all []sent) bool { return len(all) > 0 && versions["first"].over(all[len(all)-1]) })
		require.Equal(t, wordsOf("word ", 1, 8), versions["first"].words(l.all))
		require.Equal(t, ids(s.readers[0].all), ids(l.all))
	}
}

// The same with a node that says something else when it runs again: whoever had its words gets those that count behind them, under numbers
// of their own, and nobody gets one event twice.
func TestACrowdWhoseWorkerStallsAndSaysSomethingElse(t *testing.T) {
	s := newStalling(t, 5)
	s.upto(2)
	s.join(20)
	s.each(2)
	early := len(s.readers)
	s.stall(func() { s.says("other ") })
	s.each(4)
	s.upto(9)
	atEnd := func(l *listening) []string {
		l.until("the end of the run", func(all []sent) bool { return len(all) > 0 && versions["first"].over(all[len(all)-1]) })
		return versions["first"].words(l.all)
	}
	for _, l := range s.readers {
		require.Equal(t, append(wordsOf("word ", 1, 2), wordsOf("other ", 1, 8)...), atEnd(l))
	}
	s.join(20) // from here on the record tells it, which has only what counts
	for _, l := range s.readers[early:] {
		require.Equal(t, wordsOf("other ", 1, 8), atEnd(l))
	}
	s.each(8)
}
