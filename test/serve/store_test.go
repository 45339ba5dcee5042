package main

import (
	"database/sql"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // another program that has the store's file open
)

// newStoreWorld is a world whose programs have that store.
func newStoreWorld(t *testing.T, place string) *world {
	t.Setenv("SUPERSTEP_STORE", place)
	return newWorld(t)
}

// items is what a search answers.
type items struct {
	Items []struct {
		Namespace []string `json:"namespace"`
		Key       string   `json:"key"`
		Value     object   `json:"value"`
		Created   string   `json:"created_at"`
		Score     *float64 `json:"score"`
	} `json:"items"`
}

func (w *world) put(key string, value object) {
	w.Helper()
	require.Equal(w, http.StatusNoContent, w.ask("PUT", "/store/items", object{"namespace": []string{"a", "b"}, "key": key, "value": value}, nil))
}

// keys are those that a search finds.
func (w *world) keys(body object) []string {
	w.Helper()
	var found items
	require.Equal(w, http.StatusOK, w.ask("POST", "/store/items/search", body, &found))
	keys := []string{}
	for _, i := range found.Items {
		keys = append(keys, i.Key)
		require.Regexp(w, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$`, i.Created)
		require.Nil(w, i.Score)
	}
	return keys
}

// TestStoreItems: items are the same at every server, whichever was killed.
func TestStoreItems(t *testing.T) {
	w := newStoreWorld(t, filepath.Join(t.TempDir(), "store.db"))
	for _, key := range []string{"x", "y", "z"} {
		w.put(key, object{"is": key, "n": len(key)})
	}
	require.NoError(t, w.serve.Kill())
	w.startServe()
	require.Equal(t, []string{"z", "y", "x"}, w.keys(object{"namespace_prefix": []string{"a"}}))
	require.Equal(t, []string{"y"}, w.keys(object{"namespace_prefix": []string{"a"}, "filter": object{"is": "y", "n": object{"$gte": 1}}}))
	require.Equal(t, []string{"y", "x"}, w.keys(object{"namespace_prefix": []string{"a"}, "limit": 5, "offset": 1, "query": "ranks nothing"}))
	require.Empty(t, w.keys(object{"limit": 0}))
	var item *struct{ Value object }
	require.Equal(t, http.StatusOK, w.ask("GET", "/store/items?namespace=a.b&key=x&refresh_ttl=false", nil, &item))
	require.Equal(t, object{"is": "x", "n": 1.0}, item.Value)
	require.Equal(t, http.StatusNoContent, w.ask("DELETE", "/store/items", object{"namespace": []string{"a", "b"}, "key": "x"}, nil))
	require.Equal(t, http.StatusOK, w.ask("GET", "/store/items?namespace=a.b&key=x", nil, &item))
	require.Nil(t, item)
	require.Equal(t, http.StatusNoContent, w.ask("PUT", "/store/items", object{"namespace": []string{"a"}, "key": "soon", "value": object{}, "ttl": 0.005, "index": false}, nil))
	var listed struct{ Namespaces [][]string }
	require.Equal(t, http.StatusOK, w.ask("POST", "/store/namespaces", object{"suffix": []string{"b"}}, &listed))
	require.Equal(t, [][]string{{"a", "b"}}, listed.Namespaces)
	require.Eventually(t, func() bool {
		return w.ask("GET", "/store/items?namespace=a&key=soon&refresh_ttl=false", nil, &item) == http.StatusOK && item == nil
	}, 2*time.Minute, 20*time.Millisecond)
}

func TestStoreRefuses(t *testing.T) {
	w := newStoreWorld(t, filepath.Join(t.TempDir(), "store.db"))
	for _, c := range []struct {
		status       int
		method, path string
		body         any
	}{
		{400, "PUT", "/store/items", object{"namespace": []string{}, "key": "k", "value": object{}}},
		{400, "PUT", "/store/items", object{"namespace": []string{"langgraph", "x"}, "key": "k", "value": object{}}},
		{422, "DELETE", "/store/items", object{"namespace": []string{"a.b"}, "key": "k"}},
		{422, "GET", "/store/items?key=k", nil},
		{422, "GET", "/store/items?namespace=a..b&key=k", nil},
		{400, "GET", "/store/items?namespace=a", nil},
		{422, "GET", "/store/items?namespace=a&key=k&refresh_ttl=perhaps", nil},
		{422, "PUT", "/store/items", object{"namespace": []string{"a.b"}, "key": "k", "value": object{}}},
		{422, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": []int{1}}},
		{422, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k"}},
		{422, "PUT", "/store/items", object{"namespace": "a", "key": "k", "value": object{}}},
		{422, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": object{}, "ttl": -1}},
		{422, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": object{}, "ttl": 1e300}},
		{422, "PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": object{}, "index": true}},
		{422, "POST", "/store/items/search", object{"limit": -1}},
		{422, "POST", "/store/items/search", object{"limit": 1001}},
		{422, "POST", "/store/items/search", object{"filter": object{"a": object{"$in": 1}}}},
		{422, "POST", "/store/items/search", object{"filter": []int{1}}},
		{422, "POST", "/store/namespaces", object{"max_depth": -1}},
		{422, "POST", "/store/namespaces", object{"offset": -1}},
	} {
		var said struct{ Detail string }
		require.Equal(t, c.status, w.ask(c.method, c.path, c.body, &said), "%s %s %v", c.method, c.path, c.body)
		require.NotEmpty(t, said.Detail)
	}
	// Nothing is there, and nothing to refuse.
	for _, body := range []object{{"key": "k"}, {"namespace": []string{}, "key": "k"}, {"namespace": []string{"langgraph"}, "key": "k"}} {
		require.Equal(t, 204, w.ask("DELETE", "/store/items", body, nil), "%v", body)
	}
	require.Empty(t, w.keys(object{}))
}

// TestStoreInTrouble: while the store's database is locked or gone, what needs it is refused, in words without its place, and all else goes on.
func TestStoreInTrouble(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "store.db")
	w := newStoreWorld(t, path)
	w.put("k", object{})
	other, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	other.SetMaxOpenConns(1)
	for _, statement := range []string{"BEGIN IMMEDIATE", "ROLLBACK"} {
		_, err = other.ExecContext(t.Context(), statement)
		require.NoError(t, err)
		status := http.StatusNoContent
		if statement == "BEGIN IMMEDIATE" {
			status = http.StatusServiceUnavailable
			require.Equal(t, []string{"k"}, w.keys(object{}), "readers go on")
		}
		require.Equal(t, status, w.ask("PUT", "/store/items", object{"namespace": []string{"a"}, "key": "locked", "value": object{}}, nil))
	}
	require.NoError(t, os.Rename(path, path+".away"))
	var said struct{ Detail string }
	require.Equal(t, http.StatusServiceUnavailable, w.ask("GET", "/store/items?namespace=a&key=locked", nil, &said))
	require.NotContains(t, said.Detail, dir)
	require.NoFileExists(t, path)
	w.thread()
	require.NoError(t, os.Rename(path+".away", path))
	require.Equal(t, http.StatusOK, w.ask("GET", "/store/items?namespace=a&key=locked", nil, nil))
}

func TestServeWithoutAStore(t *testing.T) {
	w := newStoreWorld(t, "none")
	for _, path := range []string{"/store/items/search", "/store/namespaces"} {
		var said struct{ Detail string }
		require.Equal(t, http.StatusNotImplemented, w.ask("POST", path, object{}, &said))
		require.Contains(t, said.Detail, "--store")
	}
	require.Equal(t, http.StatusNotImplemented, w.ask("PUT", "/store/items", object{"namespace": []string{"a"}, "key": "k", "value": object{}}, nil))
	require.Equal(t, http.StatusNotImplemented, w.ask("GET", "/store/items?namespace=a&key=k", nil, nil))
	w.thread()
}
