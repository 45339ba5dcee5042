package thread_test

import (
	"cmp"
	"context"
	"io/fs"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev"
	"superstep.dev/test/rig"
	"superstep.dev/thread/storage"
)

// troubled are objects in memory, which do what trouble says while there is any.
type troubled struct {
	trouble atomic.Pointer[trouble]

	mu   sync.Mutex
	kept map[string][]byte
	met  map[string]time.Time // when the trouble was met first, by space
}

// trouble is what becomes of the calls of a storage; nil is what becomes of them without it.
type trouble struct {
	any func(context.Context) error // before all calls
	put error
	get []byte
}

// call is what becomes of a call for a name, or a space, with what there is of the trouble that it may meet.
func (s *troubled) call(ctx context.Context, name string, meets func(*trouble) bool) (*trouble, error) {
	now := s.trouble.Load()
	if now == nil || now.any == nil && !meets(now) {
		return &trouble{}, nil
	}
	space, _, _ := strings.Cut(name, "/")
	s.mu.Lock()
	if s.met[space].IsZero() {
		s.met[space] = time.Now()
	}
	s.mu.Unlock()
	if now.any != nil {
		return now, now.any(ctx)
	}
	return now, nil
}

// metAt is when values of a thread have met the trouble first, zero when none have.
func (s *troubled) metAt(id string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.met[storage.SpaceOf("default", id)]
}

func (s *troubled) Where() string { return "a storage in memory" }

func (s *troubled) Has(ctx context.Context, name string) (bool, error) {
	_, err := s.call(ctx, name, func(*trouble) bool { return false })
	s.mu.Lock()
	defer s.mu.Unlock()
	_, there := s.kept[name]
	return there, err
}

func (s *troubled) Put(ctx context.Context, name string, object []byte) error {
	now, err := s.call(ctx, name, func(t *trouble) bool { return t.put != nil })
	if err != nil || now.put != nil {
		return cmp.Or(err, now.put)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[name] = object
	return nil
}

func (s *troubled) Get(ctx context.Context, name string) ([]byte, error) {
	now, err := s.call(ctx, name, func(t *trouble) bool { return t.get != nil })
	if err != nil || now.get != nil {
		return now.get, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if object, there := s.kept[name]; there {
		return object, nil
	}
	return nil, fs.ErrNotExist
}

func (s *troubled) List(ctx context.Context, space string) (all []storage.Object, err error) {
	if _, err = s.call(ctx, space, func(*trouble) bool { return false }); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, object := range s.kept {
		if strings.HasPrefix(name, space+"/") {
			all = append(all, storage.Object{Name: name, Bytes: int64(len(object))})
		}
	}
	return all, nil
}

func (s *troubled) Empty(ctx context.Context, space string, removed func(storage.Object)) error {
	all, err := s.List(ctx, space)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range all {
		delete(s.kept, o.Name)
		removed(o)
	}
	return err
}

// newTroubled is a server whose client and workers share a storage in memory, and have nothing of it in memory.
func newTroubled(t *testing.T) (*shared, *troubled) {
	t.Helper()
	s, at := rig.NewServer(t), &troubled{kept: map[string][]byte{}, met: map[string]time.Time{}}
	return fromTroubled(t, s, at), at
}

// fromTroubled is a server with what another process has of it.
func fromTroubled(t *testing.T, s *rig.Server, at *troubled) *shared {
	t.Helper()
	values := storage.New(at, storage.Options{CacheBytes: 1})
	c, err := superstep.NewClient(s.Temporal, superstep.ClientConfig{TaskQueue: s.Queue, Storage: values})
	require.NoError(t, err)
	return &shared{Server: &rig.Server{T: t, Client: c, Temporal: s.Temporal, Queue: s.Queue}, storage: values}
}
