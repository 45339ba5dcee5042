package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/figures"
)

// The lost worker and the one that goes on.
const lostPID, nextPID = 1, 2

// told are books of one task whose workers wrote these notices, one each 10 ms. Its first worker was killed.
func told(notices ...notice) *books {
	b := newBooks()
	b.killed[lostPID] = true
	for i, n := range notices {
		n.At = (time.Second + time.Duration(i)*10*time.Millisecond).Nanoseconds()
		if n.What != noticeFigure {
			n.Activity = "run 1-node"
		}
		b.hear(n)
	}
	return b
}

// What a kill leaves open is told as a range, what it cannot change for certain.
func TestRecoveriesAreToldFromTheCalls(t *testing.T) {
	lost := func(what string, n notice) notice { n.What, n.PID, n.Attempt = what, lostPID, 1; return n }
	next := func(what string, n notice) notice { n.What, n.PID, n.Attempt = what, nextPID, 2; return n }
	began := lost(noticeBegin, notice{})
	goesOn := []notice{next(noticeBegin, notice{}), next(noticeSigns, notice{}), next(noticeEnding, notice{WentOn: true}), next(noticeEnd, notice{})}
	dead := func(b *books) *books { b.killed[nextPID] = true; return b }
	for _, tc := range []struct {
		name          string
		books         *books
		begun, wentOn between
	}{
		{"lost without a word", told(append([]notice{began}, goesOn...)...), between{1, 1}, between{1, 1}},
		{"lost behind a heartbeat of its work", told(append([]notice{began, lost(noticeSigns, notice{}), lost(noticeSign, notice{})}, goesOn...)...),
			between{1, 1}, between{1, 1}},
		// It hung behind the record of its failed attempt: the server has that, and for the next worker nothing was lost.
		{"lost behind the record of its end", told(append([]notice{began, lost(noticeSigns, notice{Closes: true})}, goesOn...)...),
			between{0, 1}, between{0, 1}},
		{"given back", told(append([]notice{began, lost(noticeSigns, notice{Closes: true}), lost(noticeSign, notice{}), lost(noticeEnding, notice{}),
			lost(noticeEnd, notice{})}, goesOn...)...), between{0, 1}, between{0, 1}},
		{"ended, but the reply did not come", told(append([]notice{began, lost(noticeEnding, notice{WentOn: true})}, goesOn...)...), between{1, 1}, between{1, 1}},
		{"never heard of", told(goesOn...), between{0, 1}, between{0, 1}},
		{"the next one too was killed before it said anything", dead(told(began, next(noticeBegin, notice{}))), between{0, 1}, between{}},
		{"and before it began to run", told(began, next(noticeBegin, notice{}), next(noticeSigns, notice{Closes: true}), next(noticeEnding, notice{})),
			between{0, 1}, between{}},
		{"and when it had counted its end", dead(told(began, next(noticeBegin, notice{}), next(noticeSigns, notice{}),
			notice{What: noticeFigure, PID: nextPID, Figure: figures.Recoveries.Name + " went_on", N: 1})), between{1, 1}, between{0, 1}},
		{"and in the report of its end", dead(told(began, next(noticeBegin, notice{}), next(noticeEnding, notice{WentOn: true}))), between{1, 1}, between{0, 1}},
		{"lost by nobody", told(began, lost(noticeEnding, notice{WentOn: true}), lost(noticeEnd, notice{})), between{}, between{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			begun, wentOn, silences := tc.books.recoveries()
			require.Equal(t, tc.begun, begun, "begun")
			require.Equal(t, tc.wentOn, wentOn, "went on")
			require.Len(t, silences, int(begun.most), "each may have been timed")
		})
	}
}

// A heartbeat without a reply may be stored: the silence is from one or the other on.
func TestSilenceIsFromWhatTheServerMayHave(t *testing.T) {
	_, _, silences := told(notice{What: noticeBegin, PID: lostPID, Attempt: 1}, notice{What: noticeSigns, PID: lostPID, Attempt: 1},
		notice{What: noticeSign, PID: lostPID, Attempt: 1}, notice{What: noticeSigns, PID: lostPID, Attempt: 1},
		notice{What: noticeBegin, PID: nextPID, Attempt: 2}).recoveries()
	require.Equal(t, []silence{{10 * time.Millisecond, 20 * time.Millisecond}}, silences)
}

// A percentile of counted times lies within what it can be, whichever of the silences were counted.
func TestBoundsOfAPercentile(t *testing.T) {
	s := func(least, most int) silence { return silence{time.Duration(least), time.Duration(most)} }
	all := []silence{s(3, 4), s(1, 2), s(9, 9)}
	for _, tc := range []struct {
		counted, p int
		want       silence
	}{
		{3, 50, s(3, 4)}, {3, 95, s(9, 9)}, {1, 50, s(1, 9)}, {2, 50, s(1, 4)}, {2, 95, s(3, 9)},
	} {
		require.Equal(t, tc.want, bounds(all, tc.counted, tc.p), fmt.Sprint(tc))
	}
	require.Zero(t, bounds(all, 0, 50).least, "nobody counted anything")
}
