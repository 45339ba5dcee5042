package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
)

func putGetDelete(t *testing.T, open Opener) {
	c := newClock()
	s := open(t, store.Options{Now: c.Now})
	gone(t, s, "users.1", "prefs")
	put(t, s, "users.1", "prefs", object{"food": "pizza"})
	first := get(t, s, "users.1", "prefs")
	require.Equal(t, store.Item{Namespace: []string{"users", "1"}, Key: "prefs", Value: json.RawMessage(`{"food":"pizza"}`), Version: 1,
		Created: c.Now().Truncate(time.Microsecond), Updated: c.Now().Truncate(time.Microsecond)}, first)

	c.goOn(time.Second)
	other := open(t, store.Options{Now: c.Now}) // as another process sees it
	put(t, other, "users.1", "prefs", struct {
		Food string `json:"food"`
	}{"soup"})
	second := get(t, s, "users.1", "prefs")
	require.EqualValues(t, 2, second.Version)
	require.Equal(t, first.Created, second.Created)
	require.Equal(t, first.Updated.Add(time.Second), second.Updated)
	var prefs struct{ Food string }
	require.NoError(t, second.Decode(&prefs))
	require.Equal(t, "soup", prefs.Food)
	require.ErrorIs(t, second.Decode(new([]int)), store.ErrBadInput)

	require.NoError(t, s.Delete(t.Context(), []string{"users", "1"}, "prefs"))
	gone(t, other, "users.1", "prefs")
	require.NoError(t, s.Delete(t.Context(), []string{"users", "1"}, "prefs"), "what is not there is deleted")
	put(t, s, "users.1", "prefs", object{"food": "rice"})
	require.EqualValues(t, 1, get(t, s, "users.1", "prefs").Version, "a new item")
	put(t, s, "users.1", "prefs", nil)
	gone(t, s, "users.1", "prefs")
	put(t, s, "users.1", "prefs", object{})
	put(t, s, "users.1", "prefs", json.RawMessage("null"))
	gone(t, s, "users.1", "prefs")
}

func values(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	for i, text := range []string{
		`{}`, `{"b":1,"a":[1,2.50,1e3,12345678901234567890],"a2":null}`, `{"nul":"a\u0000b","pair":"\ud83d\ude00","é":"ß"}`,
		`{"same":1,"same":2}`, `{"long":"` + strings.Repeat("x", store.MaxValueBytes-11) + `"}`,
	} {
		put(t, s, "v", fmt.Sprint(i), json.RawMessage(text))
		require.Equal(t, text, string(get(t, s, "v", fmt.Sprint(i)).Value))
	}
	require.Equal(t, []string{"4", "3", "2", "1", "0"}, found(t, s, "v", store.Query{}))
}

func names(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	deep := strings.Split(strings.Repeat("d,", store.MaxDepth-1)+"d", ",")
	long := []string{strings.Repeat("n", store.MaxNamespaceBytes)}
	for _, namespace := range [][]string{{"a b"}, {"ü", "日本"}, {"'; DROP TABLE x; --"}, {"%", "_"}, {"*"}, {"a/b", "c\\d"}, {"x", "langgraph"}, deep, long} {
		for _, key := range []string{"k", "a.b", "k y", "%", "é", strings.Repeat("k", store.MaxKeyBytes)} {
			require.NoError(t, s.Put(t.Context(), namespace, key, object{"is": key}))
			item, err := s.Get(t.Context(), namespace, key)
			require.NoError(t, err)
			require.Equal(t, namespace, item.Namespace)
			require.Equal(t, key, item.Key)
		}
		hits, err := s.Search(t.Context(), namespace, store.Query{})
		require.NoError(t, err)
		require.Len(t, hits, 6)
	}
	put(t, s, "E", "k", object{})
	put(t, s, "e", "K", object{})
	gone(t, s, "e", "k")
}

func refused(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	ctx := t.Context()
	for name, err := range map[string]error{
		"no namespace":     s.Put(ctx, nil, "k", object{}),
		"an empty label":   s.Put(ctx, []string{"a", ""}, "k", object{}),
		"a period":         s.Put(ctx, []string{"a.b"}, "k", object{}),
		"a control":        s.Put(ctx, []string{"a\x1fb"}, "k", object{}),
		"no UTF-8":         s.Put(ctx, []string{"a\xff"}, "k", object{}),
		"LangGraph's":      s.Put(ctx, []string{"langgraph", "x"}, "k", object{}),
		"too deep":         s.Put(ctx, strings.Split(strings.Repeat("d,", store.MaxDepth)+"d", ","), "k", object{}),
		"a long namespace": s.Put(ctx, []string{strings.Repeat("n", store.MaxNamespaceBytes), "n"}, "k", object{}),
		"no key":           s.Put(ctx, []string{"a"}, "", object{}),
		"a long key":       s.Put(ctx, []string{"a"}, strings.Repeat("k", store.MaxKeyBytes+1), object{}),
		"a key with NUL":   s.Put(ctx, []string{"a"}, "k\x00", object{}),
		"a list":           s.Put(ctx, []string{"a"}, "k", []int{1}),
		"a text":           s.Put(ctx, []string{"a"}, "k", "text"),
		"a large value":    s.Put(ctx, []string{"a"}, "k", object{"v": strings.Repeat("x", store.MaxValueBytes)}),
		"no JSON":          s.Put(ctx, []string{"a"}, "k", object{"f": func() {}}),
		"broken JSON":      s.Put(ctx, []string{"a"}, "k", json.RawMessage(`{"a":`)),
		"a negative TTL":   s.Put(ctx, []string{"a"}, "k", object{}, store.WithTTL(-1)),
		"a long id":        s.Put(ctx, []string{"a"}, "k", object{}, store.WithID(strings.Repeat("i", 300))),
		"no path":          s.Put(ctx, []string{"a"}, "k", object{}, store.WithIndex("a[x]")),
		"an empty path":    s.Put(ctx, []string{"a"}, "k", object{}, store.WithIndex("a..b")),
	} {
		require.ErrorIs(t, err, store.ErrBadInput, name)
		var refused *store.Error
		require.ErrorAs(t, err, &refused)
		require.True(t, refused.Permanent(), name)
	}
	for name, q := range map[string]store.Query{
		"a negative limit": {Limit: -1}, "a large limit": {Limit: store.MaxLimit + 1}, "a negative offset": {Offset: -1},
		"a large offset": {Offset: store.MaxOffset + 1}, "a text without an index": {Text: "cats"}, "a list": {Filter: []int{1}},
		"an unknown operator": {Filter: object{"a": object{"$in": 1}}}, "an operator at the top": {Filter: object{"$gt": 1}},
		"operators and members": {Filter: object{"a": object{"$gt": 1, "b": 2}}}, "a large filter": {Filter: object{"a": strings.Repeat("x", store.MaxFilterBytes)}},
		"no JSON": {Filter: json.RawMessage("{")}, "a deep filter": {Filter: json.RawMessage(strings.Repeat(`{"a":`, 50) + `1` + strings.Repeat(`}`, 50))},
	} {
		_, err := s.Search(ctx, []string{"a"}, q)
		require.ErrorIs(t, err, store.ErrBadInput, name)
	}
	for name, q := range map[string]store.NamespaceQuery{"a depth": {MaxDepth: -1}, "a limit": {Limit: -1}, "an empty label": {Prefix: []string{""}}, "a period": {Suffix: []string{"a.b"}}} {
		_, err := s.Namespaces(ctx, q)
		require.ErrorIs(t, err, store.ErrBadInput, name)
	}
	all, err := s.Search(ctx, nil, store.Query{})
	require.NoError(t, err)
	require.Empty(t, all)
}

func cancelled(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	put(t, s, "a", "k", object{"n": 1})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(ctx, []string{"a"}, "k", object{"n": 2}); err != nil {
		require.ErrorIs(t, err, context.Canceled)
		require.JSONEq(t, `{"n":1}`, string(get(t, s, "a", "k").Value))
	}
	_, err := s.Search(ctx, nil, store.Query{})
	require.ErrorIs(t, err, context.Canceled)
}
