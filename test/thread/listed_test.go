package thread_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread"
)

// TestWhatAClientHasJustDoneIsListed: lists and the inbox show it at once, although the server's index is up to half a second behind.
func TestWhatAClientHasJustDoneIsListed(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	gate := make(chan struct{})
	b := superstep.NewStateGraph[rig.Counter]("listed")
	b.AddNode("wait", func(ctx context.Context, c rig.Counter) (rig.Counter, error) {
		select {
		case <-gate:
			return c, nil
		case <-ctx.Done():
			return c, ctx.Err()
		}
	})
	b.AddEdge(superstep.Start, "wait")
	waits := b.MustCompile()
	asks := superstep.NewStateGraph[rig.Counter]("listed_asks")
	asks.AddNode("ask", rig.Asking("name"))
	asks.AddEdge(superstep.Start, "ask")
	asking := asks.MustCompile()
	s.Work(waits, asking)

	status := func(id string) (is thread.Status) {
		views, err := s.List(t.Context(), thread.ListQuery{Limit: 1000})
		require.NoError(t, err)
		for _, v := range views {
			if v.Thread == id {
				require.Empty(t, is, "%s is listed twice", id)
				is = v.Status
			}
		}
		return is
	}
	inbox := func(q thread.InboxQuery) (ids []string) {
		q.Limit = 1000
		page, err := s.Inbox(t.Context(), q)
		require.NoError(t, err)
		for _, item := range page.Questions {
			ids = append(ids, item.Thread)
		}
		return ids
	}
	for n := range 5 {
		t.Run(fmt.Sprint("time ", n+1), func(t *testing.T) {
			runs := waits.Thread(s, uuid.NewString())
			require.NoError(t, runs.Start(t.Context(), rig.Counter{}))
			require.Equal(t, thread.StatusRunning, status(runs.ID()))
			newest, err := s.List(t.Context(), thread.ListQuery{Graph: "listed", Limit: 1})
			require.NoError(t, err)
			require.Equal(t, runs.ID(), newest[0].Thread, "the open one that started last is the first")
			_, err = s.Cancel(t.Context(), thread.CancelRequest{Thread: runs.ID()})
			require.NoError(t, err)
			_, err = s.Wait(t.Context(), runs.ID())
			require.NoError(t, err)
			require.Equal(t, thread.StatusCancelled, status(runs.ID()))

			th := asking.Thread(s, uuid.NewString())
			asked, err := th.Invoke(t.Context(), rig.Counter{})
			require.NoError(t, err)
			require.Equal(t, thread.StatusWaiting, asked.Status)
			require.Equal(t, thread.StatusWaiting, status(th.ID()))
			require.Contains(t, inbox(thread.InboxQuery{}), th.ID())
			require.Contains(t, inbox(thread.InboxQuery{Graph: "listed_asks"}), th.ID())
			require.NotContains(t, inbox(thread.InboxQuery{Graph: "listed"}), th.ID())
			require.NotContains(t, inbox(thread.InboxQuery{Overdue: true}), th.ID())
			_, err = th.Resume(t.Context(), true)
			require.NoError(t, err)
			require.Equal(t, thread.StatusFinished, status(th.ID()))
			require.NotContains(t, inbox(thread.InboxQuery{}), th.ID())
		})
	}
}

// TestAPageOfTheInboxShowsNothingTwice: of questions that this client has just caused, and of which the index shows some while pages are
// read, each is on one page, and no page is longer than asked for.
func TestAPageOfTheInboxShowsNothingTwice(t *testing.T) {
	t.Parallel()
	s := rig.NewServer(t)
	asks := superstep.NewStateGraph[rig.Counter]("listed_pages_" + uuid.NewString())
	asks.AddNode("ask", rig.Asking("name"))
	asks.AddEdge(superstep.Start, "ask")
	asking := asks.MustCompile()
	s.Work(asking)
	var all []string
	for range 7 {
		th := asking.Thread(s, uuid.NewString())
		asked, err := th.Invoke(t.Context(), rig.Counter{})
		require.NoError(t, err)
		require.Equal(t, thread.StatusWaiting, asked.Status)
		all = append(all, th.ID())
		var shown []string
		for q := (thread.InboxQuery{Graph: asking.Name(), Limit: 2}); ; {
			page, err := s.Inbox(t.Context(), q)
			require.NoError(t, err)
			require.LessOrEqual(t, len(page.Questions), 2)
			for _, item := range page.Questions {
				shown = append(shown, item.Thread)
			}
			if q.Page = page.Next; q.Page == "" {
				break
			}
		}
		slices.Sort(shown)
		require.Equal(t, slices.Sorted(slices.Values(all)), shown)
	}
	for _, page := range []string{"!", "bm8", base64.RawURLEncoding.EncodeToString([]byte(`{"shown":[` + strings.Repeat("1,", 100) + `1]}`))} {
		_, err := s.Inbox(t.Context(), thread.InboxQuery{Page: page})
		require.ErrorIs(t, err, thread.ErrBadInput)
	}
}
