package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/store"
)

func timeToLive(t *testing.T, open Opener) {
	c := newClock()
	s := open(t, store.Options{Now: c.Now, TTL: time.Hour})
	put(t, s, "a", "hour", object{})
	put(t, s, "a", "minute", object{}, store.WithTTL(time.Minute))
	put(t, s, "a", "ever", object{}, store.WithTTL(0))
	require.Equal(t, c.Now().Truncate(time.Microsecond).Add(time.Hour), get(t, s, "a", "hour").Expires)
	require.Zero(t, get(t, s, "a", "ever").Expires)
	c.goOn(50 * time.Second)
	require.Equal(t, c.Now().Truncate(time.Microsecond).Add(time.Minute), get(t, s, "a", "minute").Expires, "reading it begins its time anew")
	c.goOn(50 * time.Second)
	before, err := s.Get(t.Context(), []string{"a"}, "minute", store.KeepTTL())
	require.NoError(t, err)
	require.Equal(t, c.Now().Truncate(time.Microsecond).Add(10*time.Second), before.Expires, "unless it is asked not to")
	c.goOn(10 * time.Second)
	gone(t, s, "a", "minute")
	require.ElementsMatch(t, []string{"hour", "ever"}, found(t, s, "a", store.Query{KeepTTL: true}))

	put(t, s, "a", "minute", object{"again": true}, store.WithTTL(time.Minute))
	again := get(t, s, "a", "minute")
	require.EqualValues(t, 1, again.Version, "what has expired is not there")
	require.Equal(t, again.Created, again.Updated)
	put(t, s, "a", "minute", object{"for": "ever"}, store.WithTTL(0))
	c.goOn(2 * time.Hour)
	require.EqualValues(t, 2, get(t, s, "a", "minute").Version, "a write says anew how long")
	gone(t, s, "a", "hour")

	keeps := open(t, store.Options{Now: c.Now, TTL: time.Minute, KeepTTL: true})
	put(t, keeps, "b", "k", object{})
	c.goOn(59 * time.Second)
	get(t, keeps, "b", "k")
	require.Len(t, found(t, keeps, "b", store.Query{}), 1)
	c.goOn(time.Second)
	gone(t, keeps, "b", "k")
	all, err := keeps.Namespaces(t.Context(), store.NamespaceQuery{})
	require.NoError(t, err)
	require.Equal(t, [][]string{{"a"}}, all)
}

func timeToLiveOnSearch(t *testing.T, open Opener) {
	c := newClock()
	animals := &words{of: []string{"cat"}}
	s := open(t, store.Options{Now: c.Now, TTL: time.Minute, Index: &store.Index{Embedder: animals, Dims: 1}})
	for _, key := range []string{"1", "2", "3"} {
		put(t, s, "a", key, object{"text": "cat", "key": key})
	}
	c.goOn(40 * time.Second)
	hits, err := s.Search(t.Context(), []string{"a"}, store.Query{Filter: object{"key": "1"}})
	require.NoError(t, err)
	require.Equal(t, c.Now().Truncate(time.Microsecond).Add(time.Minute), hits[0].Expires)
	require.Equal(t, []string{"2"}, found(t, s, "a", store.Query{Filter: object{"key": "2"}, Text: "cat"}))
	require.Equal(t, []string{"3"}, found(t, s, "a", store.Query{Filter: object{"key": "3"}, KeepTTL: true}))
	c.goOn(40 * time.Second)
	require.Equal(t, []string{"1", "2"}, found(t, s, "a", store.Query{}))
	require.Equal(t, []string{"1", "2"}, found(t, s, "a", store.Query{Text: "cat"}))
	gone(t, s, "a", "3")
}

func sweep(t *testing.T, open Opener) {
	c := newClock()
	s := open(t, store.Options{Now: c.Now})
	for i := range 1100 {
		put(t, s, "a", fmt.Sprint(i), object{}, store.WithTTL(time.Second), store.WithID(fmt.Sprint("id-", i)))
	}
	put(t, s, "a", "stays", object{}, store.WithTTL(time.Hour))
	c.goOn(2 * time.Second)
	require.NoError(t, s.Sweep(t.Context()))
	c.goOn(-2 * time.Second) // what was removed is not there at any time
	require.Equal(t, []string{"stays"}, found(t, s, "a", store.Query{KeepTTL: true}))
	_, known, err := s.Written(t.Context(), "id-7")
	require.NoError(t, err)
	require.True(t, known, "that it was written stays known")
}

func writeOnce(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	put(t, s, "a", "k", object{"n": 1}, store.WithID("w-1"))
	put(t, s, "a", "k", object{"n": 2}, store.WithID("w-1"))
	item := get(t, s, "a", "k")
	require.JSONEq(t, `{"n":1}`, string(item.Value), "what is written first under an id stands")
	require.EqualValues(t, 1, item.Version)
	put(t, s, "a", "k", object{"n": 3})
	put(t, s, "a", "k", object{"n": 1}, store.WithID("w-1"))
	require.JSONEq(t, `{"n":3}`, string(get(t, s, "a", "k").Value), "a late repetition does not put it back")
	receipt, ok, err := s.Written(t.Context(), "w-1")
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, store.Receipt{Version: 1}, receipt)
	_, ok, err = s.Written(t.Context(), "w-2")
	require.NoError(t, err)
	require.False(t, ok)

	require.ErrorIs(t, s.Put(t.Context(), []string{"a"}, "other", object{}, store.WithID("w-1")), store.ErrBadInput)
	require.ErrorIs(t, s.Delete(t.Context(), []string{"a"}, "k", store.WithID("w-1")), store.ErrBadInput)
	gone(t, s, "a", "other")
	require.NoError(t, s.Delete(t.Context(), []string{"a"}, "k", store.WithID("w-3")))
	put(t, s, "a", "k", object{"n": 4})
	require.NoError(t, s.Delete(t.Context(), []string{"a"}, "k", store.WithID("w-3")))
	require.JSONEq(t, `{"n":4}`, string(get(t, s, "a", "k").Value), "what was deleted before is not deleted again")
	receipt, _, err = s.Written(t.Context(), "w-3")
	require.NoError(t, err)
	require.Equal(t, store.Receipt{Version: 2}, receipt)
}

func forgotten(t *testing.T, open Opener) {
	c := newClock()
	s := open(t, store.Options{Now: c.Now, Remember: time.Hour})
	put(t, s, "a", "k", object{"n": 1}, store.WithID("w-1"))
	c.goOn(59 * time.Minute)
	require.NoError(t, s.Sweep(t.Context()))
	put(t, s, "a", "k", object{"n": 2}, store.WithID("w-1"))
	require.JSONEq(t, `{"n":1}`, string(get(t, s, "a", "k").Value))
	c.goOn(2 * time.Minute)
	require.NoError(t, s.Sweep(t.Context()))
	put(t, s, "a", "k", object{"n": 3}, store.WithID("w-1"))
	require.JSONEq(t, `{"n":3}`, string(get(t, s, "a", "k").Value))
}

func undo(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	put(t, s, "a", "k", object{"n": 1}, store.WithID("w-1"))
	require.NoError(t, s.Undo(t.Context(), "w-1"))
	gone(t, s, "a", "k")
	_, ok, err := s.Written(t.Context(), "w-1")
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.Undo(t.Context(), "w-1"), "twice is as once")
	require.NoError(t, s.Undo(t.Context(), "never"))
	require.ErrorIs(t, s.Put(t.Context(), []string{"a"}, "k", object{"n": 1}, store.WithID("w-1")), store.ErrBadInput, "what comes late is not written")
	gone(t, s, "a", "k")

	put(t, s, "a", "k", object{"n": 2}, store.WithID("w-2"))
	put(t, s, "a", "k", object{"n": 3})
	require.NoError(t, s.Undo(t.Context(), "w-2"), "somebody has written since")
	require.JSONEq(t, `{"n":3}`, string(get(t, s, "a", "k").Value))
	require.NoError(t, s.Delete(t.Context(), []string{"a"}, "nothing", store.WithID("w-4")))
	require.NoError(t, s.Undo(t.Context(), "w-4"), "there was nothing to delete")
}

func undoReplaced(t *testing.T, open Opener) {
	s := open(t, store.Options{})
	put(t, s, "a", "k", object{"n": 1})
	put(t, s, "a", "k", object{"n": 2}, store.WithID("w-1"))
	require.ErrorIs(t, s.Undo(t.Context(), "w-1"), store.ErrKept)
	require.JSONEq(t, `{"n":2}`, string(get(t, s, "a", "k").Value))
	_, ok, err := s.Written(t.Context(), "w-1")
	require.NoError(t, err)
	require.True(t, ok, "nothing was undone")
	require.NoError(t, s.Delete(t.Context(), []string{"a"}, "k", store.WithID("w-2")))
	require.ErrorIs(t, s.Undo(t.Context(), "w-2"), store.ErrKept)
	put(t, s, "a", "k", object{"n": 3})
	require.NoError(t, s.Undo(t.Context(), "w-2"))
	require.JSONEq(t, `{"n":3}`, string(get(t, s, "a", "k").Value))
}

// atOnce calls do from several goroutines on several openings of the database.
func atOnce(t *testing.T, open Opener, goroutines int, do func(s *store.Store, n int) error) {
	t.Helper()
	var openings []*store.Store
	for range 3 {
		openings = append(openings, open(t, store.Options{Timeout: time.Minute}))
	}
	var wg sync.WaitGroup
	errs := make([]error, goroutines)
	for n := range goroutines {
		wg.Go(func() { errs[n] = do(openings[n%len(openings)], n) })
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func writersAtOnce(t *testing.T, open Opener) {
	const goroutines, each = 9, 20
	atOnce(t, open, goroutines, func(s *store.Store, n int) error {
		for i := range each {
			if err := s.Put(t.Context(), []string{"a"}, "shared", object{"n": n, "i": i}, store.WithID(fmt.Sprint(n, "/", i))); err != nil {
				return err
			}
			if err := s.Put(t.Context(), []string{"a", fmt.Sprint(n)}, fmt.Sprint(i), object{}); err != nil {
				return err
			}
		}
		return nil
	})
	s := open(t, store.Options{})
	require.EqualValues(t, goroutines*each, get(t, s, "a", "shared").Version, "no write is lost")
	require.Len(t, found(t, s, "a", store.Query{Limit: store.MaxLimit}), goroutines*each+1)
}

func oneIDAtOnce(t *testing.T, open Opener) {
	for i := range 20 {
		atOnce(t, open, 3, func(s *store.Store, n int) error {
			return s.Put(t.Context(), []string{"a"}, fmt.Sprint(i), object{"n": n}, store.WithID(fmt.Sprint("w-", i)))
		})
		require.EqualValues(t, 1, get(t, open(t, store.Options{}), "a", fmt.Sprint(i)).Version)
	}
}

func wholeItems(t *testing.T, open Opener) {
	animals := &words{of: []string{"cat", "dog"}}
	s := open(t, store.Options{Index: &store.Index{Embedder: animals, Dims: 2, Fields: []string{"text"}}})
	put(t, s, "a", "k", object{"n": 0, "again": 0})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := range 100 {
			if s.Put(t.Context(), []string{"a"}, "k", object{"n": n, "again": n, "text": "cat"}) != nil {
				return
			}
		}
	}()
	reader := open(t, store.Options{})
	for last := int64(0); ; {
		item := get(t, reader, "a", "k")
		var v struct{ N, Again int }
		require.NoError(t, json.Unmarshal(item.Value, &v))
		require.Equal(t, v.N, v.Again)
		require.GreaterOrEqual(t, item.Version, last)
		last = item.Version
		select {
		case <-done:
			require.EqualValues(t, 101, get(t, reader, "a", "k").Version)
			return
		default:
		}
	}
}
