package storetest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
)

// filters are LangGraph's, but that no text is taken for a number, nor true for 1.
func filters(t *testing.T, open Opener) {
	c := newClock()
	s := open(t, store.Options{Now: c.Now})
	for _, item := range []struct{ key, value string }{
		{"a", `{"n":1,"s":"x","t":true,"o":{"p":1,"q":2},"l":[1,2],"z":null,"big":9007199254740993}`},
		{"b", `{"n":2.5,"s":"y","l":[1,2,3],"o":{"p":{"deep":5}}}`},
		{"c", `{"n":"10","s":"z","big":9007199254740992}`},
		{"d", `{"n":10,"$s":1,"a.b":2}`},
	} {
		put(t, s, "u", item.key, json.RawMessage(item.value))
		c.goOn(-time.Second) // so that they are found in this order
	}
	for filter, want := range map[string]string{
		`null`: "abcd", `{}`: "abcd",
		`{"n":1}`: "a", `{"n":1.0}`: "a", `{"n":1e0}`: "a", `{"n":"1"}`: "", `{"n":"10"}`: "c", `{"t":true}`: "a", `{"t":1}`: "", `{"n":true}`: "",
		`{"z":null}`: "abcd", `{"missing":null}`: "abcd", `{"n":null}`: "", `{"missing":1}`: "",
		`{"o":{"p":1}}`: "a", `{"o":{"p":1,"q":2}}`: "a", `{"o":{"p":1,"r":2}}`: "", `{"o":{"p":{"deep":{"$gt":4}}}}`: "b", `{"o":{"p":{"$gt":0}}}`: "a", `{"o":{}}`: "ab",
		`{"l":[1,2]}`: "a", `{"l":[2,1]}`: "", `{"l":[1]}`: "", `{"l":[]}`: "", `{"l":[1,{"$gt":1}]}`: "a",
		`{"n":{"$eq":1}}`: "a", `{"n":{"$ne":1}}`: "bcd", `{"missing":{"$ne":1}}`: "abcd", `{"n":{"$ne":null}}`: "abcd", `{"z":{"$eq":null}}`: "abcd",
		`{"n":{"$gt":1}}`: "bd", `{"n":{"$gte":2.5}}`: "bd", `{"n":{"$lt":10}}`: "ab", `{"n":{"$lte":10}}`: "abd", `{"n":{"$gt":0,"$lt":3}}`: "ab", `{"n":{"$gt":"1"}}`: "c",
		`{"s":{"$gt":"x"}}`: "bc", `{"s":{"$lte":"y"}}`: "ab", `{"s":{"$gt":1}}`: "", `{"missing":{"$lt":1}}`: "", `{"z":{"$lt":5}}`: "", `{"t":{"$gt":false}}`: "",
		`{"big":9007199254740993}`: "a", `{"big":{"$lt":9007199254740993}}`: "c", `{"n":{"$lt":1e400}}`: "abd", `{"n":{"$gt":-1e999}}`: "abd",
		`{"n":1,"s":"x"}`: "a", `{"n":1,"s":"y"}`: "", `{"a.b":2}`: "d", `{"o.p":1}`: "", `{"n":{}}`: "",
	} {
		require.Equal(t, want, strings.Join(found(t, s, "u", store.Query{Filter: json.RawMessage(filter)}), ""), filter)
	}
	require.Equal(t, []string{"b"}, found(t, s, "u", store.Query{Filter: object{"s": "y"}}))
	require.Equal(t, []string{"b"}, found(t, s, "u", store.Query{Filter: object{"n": object{"$gt": 1}}, Limit: 1}))
	require.Equal(t, []string{"d"}, found(t, s, "u", store.Query{Filter: object{"n": object{"$gt": 1}}, Limit: 1, Offset: 1}))
}

func pages(t *testing.T, open Opener) {
	c := newClock()
	s := open(t, store.Options{Now: c.Now})
	for _, at := range []string{"u.1 a", "u.1 b", "u.2 c", "u.12 d", "u.1.x e", "u f", "u! g", "v.1 h"} {
		namespace, key, _ := strings.Cut(at, " ")
		put(t, s, namespace, key, object{})
		c.goOn(time.Second)
	}
	for prefix, want := range map[string]string{"": "hgfedcba", "u": "fedcba", "u.1": "eba", "u.1.x": "e", "u.1.x.y": "", "w": "", "v": "h", "u!": "g"} {
		require.Equal(t, want, strings.Join(found(t, s, prefix, store.Query{}), ""), prefix)
	}
	require.Equal(t, []string{"f", "e"}, found(t, s, "u", store.Query{Limit: 2}))
	require.Equal(t, []string{"e", "d"}, found(t, s, "u", store.Query{Limit: 2, Offset: 1}))
	require.Empty(t, found(t, s, "u", store.Query{Offset: 6}))
	put(t, s, "u.1", "a", object{"again": true})
	require.Equal(t, []string{"a", "f"}, found(t, s, "u", store.Query{Limit: 2}), "what was put last comes first")

	// Of one moment they go by their names, and more than are read at once have no gap.
	for i := range 1200 {
		put(t, s, "many", fmt.Sprintf("k%04d", i), object{"n": i})
	}
	var all []string
	for offset := 0; offset < 1200; offset += 500 {
		all = append(all, found(t, s, "many", store.Query{Limit: 500, Offset: offset})...)
	}
	require.Len(t, all, 1200)
	require.True(t, slices.IsSorted(all))
	require.Equal(t, []string{"k1198", "k1199"}, found(t, s, "many", store.Query{Filter: object{"n": object{"$gte": 700}}, Offset: 498}))
	require.Len(t, found(t, s, "many", store.Query{}), store.DefaultLimit)
}

func largePages(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	text := strings.Repeat("x", store.MaxValueBytes-100)
	n := store.MaxPageBytes/store.MaxValueBytes + 1
	for i := range n {
		put(t, s, "large", fmt.Sprint(i), object{"text": text})
	}
	require.Len(t, found(t, s, "large", store.Query{Limit: n - 1}), n-1)
	_, err := s.Search(t.Context(), []string{"large"}, store.Query{Limit: n})
	require.ErrorIs(t, err, store.ErrBadInput)
	require.ErrorContains(t, err, "ask for fewer")
}

func namespaces(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	all := []string{"u.1", "u.2", "u.12", "u.1.x", "v.1", "v.2.deep.er", "u", "u!.1", "*"}
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, namespace := range all {
		put(t, s, namespace, "a", object{})
		put(t, s, namespace, "b", object{})
	}
	put(t, s, "gone", "a", object{})
	require.NoError(t, s.Delete(t.Context(), []string{"gone"}, "a"))
	for _, c := range []struct {
		q    store.NamespaceQuery
		want string
	}{
		{store.NamespaceQuery{}, "* u u.1 u.1.x u.12 u.2 u!.1 v.1 v.2.deep.er"},
		{store.NamespaceQuery{Prefix: []string{"u"}}, "u u.1 u.1.x u.12 u.2"},
		{store.NamespaceQuery{Prefix: []string{"*", "1"}}, "u.1 u.1.x u!.1 v.1"},
		{store.NamespaceQuery{Suffix: []string{"1"}}, "u.1 u!.1 v.1"},
		{store.NamespaceQuery{Suffix: []string{"*", "x"}}, "u.1.x"},
		{store.NamespaceQuery{Prefix: []string{"u"}, Suffix: []string{"1"}}, "u.1"},
		{store.NamespaceQuery{Prefix: []string{"u", "1"}, Suffix: []string{"1", "x"}}, "u.1.x"},
		{store.NamespaceQuery{MaxDepth: 1}, "* u u! v"},
		{store.NamespaceQuery{MaxDepth: 2}, "* u u.1 u.12 u.2 u!.1 v.1 v.2"},
		{store.NamespaceQuery{Prefix: []string{"v"}, MaxDepth: 2}, "v.1 v.2"},
		{store.NamespaceQuery{Limit: 2}, "* u"},
		{store.NamespaceQuery{Limit: 2, Offset: 1}, "u u.1"},
		{store.NamespaceQuery{MaxDepth: 1, Limit: 2, Offset: 1}, "u u!"},
		{store.NamespaceQuery{Prefix: []string{"u", "1", "x", "y"}}, ""},
		{store.NamespaceQuery{Offset: 9}, ""},
	} {
		got, err := s.Namespaces(t.Context(), c.q)
		require.NoError(t, err)
		var texts []string
		for _, namespace := range got {
			texts = append(texts, strings.Join(namespace, "."))
		}
		require.Equal(t, c.want, strings.Join(texts, " "), "%+v", c.q)
	}
}

func meaning(t *testing.T, open Opener) {
	c := newClock()
	animals := &words{of: []string{"cat", "dog", "fish"}}
	s := open(t, store.Options{Now: c.Now, Index: &store.Index{Embedder: animals, Dims: 3}})
	for _, text := range []string{"cat", "dog dog cat", "fish", "dog", "nothing at all"} {
		put(t, s, "texts.a", text, object{"text": text, "length": len(text)})
		c.goOn(time.Second)
	}
	put(t, s, "texts.b", "not embedded", object{"text": "cat"}, store.WithoutIndex())
	put(t, s, "other", "cat", object{"text": "cat"})
	hits, err := s.Search(t.Context(), []string{"texts"}, store.Query{Text: "a cat"})
	require.NoError(t, err)
	want := []struct {
		key   string
		score float64
	}{{"cat", 1}, {"dog dog cat", 0.4472136}, {"nothing at all", 0}, {"dog", 0}, {"fish", 0}}
	require.Len(t, hits, 6)
	for i, w := range want {
		require.Equal(t, w.key, hits[i].Key)
		require.InDelta(t, w.score, *hits[i].Score, 1e-6)
	}
	require.Equal(t, "not embedded", hits[5].Key)
	require.Nil(t, hits[5].Score)
	require.Equal(t, []string{"dog dog cat", "nothing at all"}, found(t, s, "texts", store.Query{Text: "cat", Limit: 2, Offset: 1}))
	require.Equal(t, []string{"dog"}, found(t, s, "texts.a", store.Query{Text: "dog", Filter: object{"length": 3}, Limit: 1}))
	require.Equal(t, []string{"not embedded", "nothing at all"}, found(t, s, "texts", store.Query{Limit: 2}))

	put(t, s, "texts.a", "cat", object{"text": "fish now"})
	require.Equal(t, []string{"cat", "fish"}, found(t, s, "texts", store.Query{Text: "fish", Limit: 2}), "its old vector is gone, and of equal ones the newer comes first")
	require.NoError(t, s.Delete(t.Context(), []string{"texts", "a"}, "cat"))
	require.Equal(t, []string{"fish"}, found(t, s, "texts", store.Query{Text: "fish", Limit: 1}))
	require.NoError(t, s.Put(t.Context(), []string{"texts", "a"}, "fish", object{"text": "fish"}, store.WithoutIndex()))
	hits, err = s.Search(t.Context(), []string{"texts"}, store.Query{Text: "fish"})
	require.NoError(t, err)
	require.Len(t, hits, 5)
	require.Zero(t, *hits[0].Score)
	for i := range 1500 { // more than are kept while they are read
		put(t, s, "many", fmt.Sprintf("k%04d", i), object{"text": strings.Repeat("dog", i) + "cat"})
	}
	require.Equal(t, []string{"k1499", "k1498", "k1497"}, found(t, s, "many", store.Query{Text: "dog", Limit: 3}))
	require.Equal(t, []string{"k0002", "k0003"}, found(t, s, "many", store.Query{Text: "cat", Limit: 2, Offset: 2}))
}

func paths(t *testing.T, open Opener) {
	animals := &words{of: []string{"cat", "dog"}}
	s := open(t, store.Options{Index: &store.Index{Embedder: animals, Dims: 2, Fields: []string{"text", "tags[*]", "deep.list[-1].name", "missing", "o.*"}}})
	put(t, s, "d", "1", json.RawMessage(`{"text":"cat","tags":["dog",null,3],"deep":{"list":[{"name":"first"},{"name":"last"}]},"o":{"b":true,"a":{"x":1.50}}}`))
	put(t, s, "d", "2", json.RawMessage(`{"title":"dog","text":"unread"}`), store.WithIndex("title"))
	put(t, s, "d", "3", json.RawMessage(`{"b":1,"a":"cat"}`), store.WithIndex("$"))
	put(t, s, "d", "4", json.RawMessage(`{"other":"cat"}`))
	require.Equal(t, [][]string{{"cat", "dog", "3", "last", `{"x":1.50}`, "true"}, {"dog"}, {`{"b":1,"a":"cat"}`}}, animals.calls)
	hits, err := s.Search(t.Context(), []string{"d"}, store.Query{Text: "dog"})
	require.NoError(t, err)
	require.Len(t, hits, 4)
	require.Equal(t, "2", hits[0].Key, "of equal ones the newer comes first")
	require.Equal(t, "1", hits[1].Key, "its nearest text counts")
	require.InDelta(t, 1, *hits[1].Score, 1e-6)
	require.Equal(t, "4", hits[3].Key)
	require.Nil(t, hits[3].Score)
	many := object{"tags": slices.Repeat([]string{"cat"}, store.MaxVectors+1)}
	require.ErrorIs(t, s.Put(t.Context(), []string{"d"}, "5", many), store.ErrBadInput)
	gone(t, s, "d", "5")
}

func otherLengths(t *testing.T, open Opener) {
	short := open(t, store.Options{Index: &store.Index{Embedder: &words{of: []string{"cat", "dog"}}, Dims: 2}})
	put(t, short, "d", "old", object{"text": "cat"})
	long := open(t, store.Options{Index: &store.Index{Embedder: &words{of: []string{"cat", "dog", "fish"}}, Dims: 3}})
	put(t, long, "d", "new", object{"text": "dog"})
	for _, c := range []struct {
		s    *store.Store
		want []string
	}{{short, []string{"old", "new"}}, {long, []string{"new", "old"}}} {
		hits, err := c.s.Search(t.Context(), []string{"d"}, store.Query{Text: "cat"})
		require.NoError(t, err)
		require.Equal(t, c.want, []string{hits[0].Key, hits[1].Key})
		require.NotNil(t, hits[0].Score)
		require.Nil(t, hits[1].Score)
	}
}

func embedderFails(t *testing.T, open Opener) {
	broken := &words{of: []string{"cat"}, fail: fmt.Errorf("the model is away")}
	s := open(t, store.Options{Index: &store.Index{Embedder: broken, Dims: 1}})
	require.ErrorIs(t, s.Put(t.Context(), []string{"d"}, "k", object{"text": "cat"}), broken.fail)
	gone(t, s, "d", "k")
	_, err := s.Search(t.Context(), []string{"d"}, store.Query{Text: "cat"})
	require.ErrorIs(t, err, broken.fail)
	wrong := open(t, store.Options{Index: &store.Index{Embedder: &words{of: []string{"cat", "dog"}}, Dims: 3}})
	require.ErrorContains(t, wrong.Put(t.Context(), []string{"d"}, "k", object{"text": "cat"}), "Dims 3")
	gone(t, s, "d", "k")
}
