package publish_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/examples/publish"
	"superstep.dev/examples/publish/site"
	"superstep.dev/graphtest"
	"superstep.dev/thread"
)

// chatty is a writer that writes too much until it is told so.
type chatty struct{}

func (chatty) Write(_ context.Context, b publish.Brief) (string, error) {
	text := fmt.Sprintf("%s, in an article about %s.", b.Heading, b.Title)
	switch {
	case strings.Contains(b.Note, "too many"), b.Heading == "Leaves":
		return text, nil
	case b.Note != "":
		return text + " " + b.Note, nil
	}
	return text + strings.Repeat(" More.", 50), nil
}

func tea() map[string]any {
	return map[string]any{"title": "Tea", "headings": []string{"Leaves", "Water"}}
}

// newSite is the site on a real socket. What broken says true of is written, and its reply is lost.
func newSite(t *testing.T, broken func(*http.Request) bool) *site.Client {
	t.Helper()
	server := site.NewServer()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken == nil || !broken(r) {
			server.ServeHTTP(w, r)
			return
		}
		server.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}))
	t.Cleanup(web.Close)
	client, err := site.NewClient(web.URL)
	require.NoError(t, err)
	return client
}

// TestPublish runs the graph's paths in memory and on Temporal.
func TestPublish(t *testing.T) {
	pages := newSite(t, nil)
	g := publish.Graph(chatty{}, pages)
	shown := func() int {
		list, err := pages.Pages(t.Context())
		require.NoError(t, err)
		return len(list)
	}
	graphtest.Runtimes(t, func(t *testing.T, rt superstep.Runtime) {
		before := shown()
		th := g.Thread(rt, graphtest.ThreadID(t))
		result, err := th.Invoke(t.Context(), tea())
		require.NoError(t, err)
		require.JSONEq(t, `{"question": "Publish this article, revise sections of it, or drop it?", "article": {"title": "Tea",
			"body": "## Leaves\n\nLeaves, in an article about Tea.\n\n## Water\n\nWater, in an article about Tea."}}`,
			string(result.Questions[0].Value), "the section that was too long was written again")

		for _, wrong := range []publish.Review{{Verdict: "maybe"}, {Verdict: "revise", Headings: []string{"Milk"}}} {
			_, err = th.Resume(t.Context(), wrong)
			require.ErrorIs(t, err, thread.ErrBadInput)
		}
		result, err = th.Resume(t.Context(),
			publish.Review{Verdict: publish.VerdictRevise, Headings: []string{"Water"}, Note: "Not hot."})
		require.NoError(t, err)
		require.Equal(t, map[string]string{"Leaves": "Leaves, in an article about Tea.",
			"Water": "Water, in an article about Tea. Not hot."}, result.Output.Texts.Get())
		require.Equal(t, before, shown())

		result, err = th.Resume(t.Context(), publish.Review{Verdict: publish.VerdictPublish})
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, result.Status)
		require.Equal(t, "Tea", result.Output.Page.Get().Title)
		require.Equal(t, before+1, shown())

		dropped := g.Thread(rt, graphtest.ThreadID(t))
		_, err = dropped.Invoke(t.Context(), tea())
		require.NoError(t, err)
		result, err = dropped.Resume(t.Context(), publish.Review{Verdict: publish.VerdictDrop})
		require.NoError(t, err)
		require.Equal(t, thread.StatusFinished, result.Status)
		require.Equal(t, before+1, shown())

		_, err = g.Thread(rt, graphtest.ThreadID(t)).Invoke(t.Context(), map[string]any{"title": "Tea", "headings": []string{"A", "A"}})
		require.ErrorContains(t, err, "each another one")
	}, g)
}

// TestALostReplyIsLookedUp loses the reply to a page that was written.
func TestALostReplyIsLookedUp(t *testing.T) {
	var writes, lost atomic.Int32
	pages := newSite(t, func(r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		writes.Add(1)
		return lost.CompareAndSwap(0, 1)
	})
	g := publish.Graph(chatty{}, pages)
	th := g.Thread(superstep.NewMemory(), "t")
	_, err := th.Invoke(t.Context(), tea())
	require.NoError(t, err)
	result, err := th.Resume(t.Context(), publish.Review{Verdict: publish.VerdictPublish})
	require.NoError(t, err)
	require.Equal(t, thread.StatusFinished, result.Status)
	require.EqualValues(t, 1, writes.Load(), "it was looked up, not written again")
	list, err := pages.Pages(t.Context())
	require.NoError(t, err)
	require.Equal(t, []site.Page{result.Output.Page.Get()}, list)
}

// TestNoCrashPublishesTwice crashes the worker everywhere.
func TestNoCrashPublishesTwice(t *testing.T) {
	if testing.Short() {
		t.Skip("a run for each point where one can be stopped")
	}
	graphtest.Matrix(t, publish.Graph(chatty{}, newSite(t, nil)), tea(),
		graphtest.Answer(publish.Review{Verdict: publish.VerdictPublish}))
}

// TestPublishGoesOnFromEverywhere interrupts a run that revises a section before it publishes, at every node, those of
// the sections' graph included.
func TestPublishGoesOnFromEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("a run for each node, in every mode")
	}
	graphtest.Interrupts(t, publish.Graph(chatty{}, newSite(t, nil)), tea(),
		graphtest.Answer(publish.Review{Verdict: publish.VerdictRevise, Headings: []string{"Water"}, Note: "Not hot."}),
		graphtest.Answer(publish.Review{Verdict: publish.VerdictPublish}), graphtest.Parallel())
}
