package site_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/examples/publish/site"
)

func TestSite(t *testing.T) {
	web := httptest.NewServer(site.NewServer())
	t.Cleanup(web.Close)
	c, err := site.NewClient(web.URL)
	require.NoError(t, err)
	ctx := t.Context()

	_, found, err := c.FindPage(ctx, "k")
	require.NoError(t, err)
	require.False(t, found)

	page, err := c.Publish(ctx, "k", site.Article{Title: "Tea", Body: "hot"})
	require.NoError(t, err)
	again, err := c.Publish(ctx, "k", site.Article{Title: "Tea", Body: "hot"})
	require.NoError(t, err)
	require.Equal(t, page, again)
	other, err := c.Publish(ctx, "a/b ?", site.Article{Title: "Tea", Body: "hot"})
	require.NoError(t, err)
	require.Equal(t, "a/b ?", other.Key)
	kept, found, err := c.FindPage(ctx, "k")
	require.NoError(t, err)
	require.True(t, found)
	require.Equal(t, page, kept)

	var refused *site.RefusedError
	_, err = c.Publish(ctx, "k", site.Article{Title: "Tea", Body: "cold"})
	require.ErrorAs(t, err, &refused)
	require.Equal(t, http.StatusConflict, refused.Status)
	require.True(t, refused.Permanent())
	_, err = c.Publish(ctx, "untitled", site.Article{})
	require.ErrorContains(t, err, "no title")

	require.NoError(t, c.Withdraw(ctx, page))
	require.NoError(t, c.Withdraw(ctx, page))
	_, found, err = c.FindPage(ctx, "k")
	require.NoError(t, err)
	require.False(t, found)
	_, err = c.Publish(ctx, "k", site.Article{Title: "Tea", Body: "hot"})
	require.ErrorContains(t, err, "withdrawn")
	pages, err := c.Pages(ctx)
	require.NoError(t, err)
	require.Equal(t, []site.Page{other}, pages)
}

// TestAnotherService: what is not the site's own word is never taken for "there is none".
func TestAnotherService(t *testing.T) {
	status := http.StatusNotFound
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	t.Cleanup(web.Close)
	c, err := site.NewClient(web.URL)
	require.NoError(t, err)
	_, _, err = c.FindPage(t.Context(), "k")
	var refused *site.RefusedError
	require.ErrorAs(t, err, &refused)

	status = http.StatusServiceUnavailable
	_, err = c.Publish(t.Context(), "k", site.Article{Title: "Tea"})
	require.Error(t, err)
	require.NotErrorAs(t, err, &refused, "it passes")

	_, err = site.NewClient("no url")
	require.Error(t, err)
}
