package postgres_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/internal/testserver"
	"superstep.dev/store"
	"superstep.dev/store/postgres"
)

var ns = []string{"a"}

type object = map[string]any

// TestAway: calls fail while the server is away, and go on by themselves when it is back, with all that was acknowledged.
func TestAway(t *testing.T) {
	server := testserver.StartPostgres(t)
	s := open(t, newDatabase(t, server, ""), store.Options{})
	require.NoError(t, s.Put(t.Context(), ns, "k", object{"n": 1}, store.WithID("w-1")))
	require.NoError(t, server.Kill())
	for name, err := range map[string]error{"put": s.Put(t.Context(), ns, "k", object{"n": 2}), "get": second(s.Get(t.Context(), ns, "k")),
		"search": second(s.Search(t.Context(), ns, store.Query{})), "namespaces": second(s.Namespaces(t.Context(), store.NamespaceQuery{}))} {
		require.ErrorIs(t, err, store.ErrUnavailable, name)
	}
	_, err := postgres.Open(t.Context(), server.DSN("postgres"), store.Options{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.NoError(t, server.Restart())
	require.Eventually(t, func() bool { return s.Put(t.Context(), ns, "k", object{"n": 2}, store.WithID("w-1")) == nil }, 2*time.Minute, 20*time.Millisecond)
	item, err := s.Get(t.Context(), ns, "k")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(item.Value), "the write of that id was made before")
}

// TestSilent: a server that does not answer is given up after the store's timeout.
func TestSilent(t *testing.T) {
	server := testserver.StartPostgres(t)
	dsn := newDatabase(t, server, "")
	patient := open(t, dsn, store.Options{Timeout: time.Minute})
	require.NoError(t, patient.Put(t.Context(), ns, "k", object{"n": 1}))
	s := open(t, dsn, store.Options{Timeout: 200 * time.Millisecond})
	held, let := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { holdLock(t, dsn, "LOCK TABLE superstep_store_items", held, let) })
	<-held
	began := time.Now()
	err := s.Put(t.Context(), ns, "k", object{"n": 2})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "within 200ms")
	require.Less(t, time.Since(began), time.Minute) // the lock stays
	close(let)
	wg.Wait()
	item, err := patient.Get(t.Context(), ns, "k")
	require.NoError(t, err)
	require.JSONEq(t, `{"n":1}`, string(item.Value))
}

func second[T any](_ T, err error) error { return err }

func TestOpenRefuses(t *testing.T) {
	server := testserver.StartPostgres(t)
	dsn := newDatabase(t, server, "")
	for name, bad := range map[string]struct {
		dsn  string
		kind error
	}{
		"no DSN":        {"postgres://u:s3cret@[::1", store.ErrBadInput},
		"no database":   {server.DSN("nothing"), store.ErrUnavailable},
		"no server":     {strings.Replace(strings.Replace(dsn, "me@", "me:s3cret@", 1), "127.0.0.1:", "127.0.0.1:1", 1), store.ErrBadInput},
		"no such role":  {strings.Replace(dsn, "me@", "nobody:s3cret@", 1), store.ErrUnavailable},
		"another port":  {"postgres://me:s3cret@127.0.0.1:1/x", store.ErrUnavailable},
		"another field": {"postgres://me:s3cret@127.0.0.1:1/x?sslmode=perhaps", store.ErrBadInput},
	} {
		_, err := postgres.Open(t.Context(), bad.dsn, store.Options{})
		require.ErrorIs(t, err, bad.kind, name)
		require.NotContains(t, err.Error(), "s3cret", name)
	}

	// A role that may not make tables uses those that are there, and is refused where there are none.
	run(t, dsn, "CREATE ROLE reader LOGIN")
	reader := strings.Replace(dsn, "me@", "reader@", 1)
	_, err := postgres.Open(t.Context(), reader, store.Options{})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "the role may not do that")
	s := open(t, dsn, store.Options{})
	require.NoError(t, s.Put(t.Context(), ns, "k", object{}))
	run(t, dsn, "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader")
	reads := open(t, reader, store.Options{})
	_, err = reads.Get(t.Context(), ns, "k")
	require.NoError(t, err)
	require.ErrorIs(t, reads.Put(t.Context(), ns, "k", object{}), store.ErrUnavailable)

	run(t, dsn, "INSERT INTO superstep_store_schema (version, migrated_at) VALUES (99, 0)")
	_, err = postgres.Open(t.Context(), dsn, store.Options{})
	require.ErrorIs(t, err, store.ErrBadInput)
	require.ErrorContains(t, err, "version 99")
}

// TestOpenAtOnce: of programs that open a new database together one makes the tables, and all use them.
func TestOpenAtOnce(t *testing.T) {
	dsn := newDatabase(t, testserver.StartPostgres(t), "")
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			s, err := postgres.Open(t.Context(), dsn, store.Options{Timeout: time.Minute})
			if err == nil {
				err = s.Put(t.Context(), ns, "k", object{"n": i})
			}
			if err == nil {
				err = s.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	item, err := open(t, dsn, store.Options{}).Get(t.Context(), ns, "k")
	require.NoError(t, err)
	require.EqualValues(t, len(errs), item.Version)
}
