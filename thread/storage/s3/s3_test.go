package s3_test

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread/storage"
	"superstep.dev/thread/storage/s3"
)

// TestWhatIsStoredIsRead: of any size, by another process, and by one that was given the objects as files.
func TestWhatIsStoredIsRead(t *testing.T) {
	t.Parallel()
	server, cfg := bucketOf(t)
	s := opened(t, cfg)
	assert.Equal(t, "s3://values/of/a-test at "+strings.TrimPrefix(server.Endpoint, "http://"), s.Where())
	for _, size := range []int{2, 16 << 10, 64<<10 + 1, 5 << 20} {
		p := words(size, uint64(size))
		claims, err := store(t.Context(), s, p)
		require.NoError(t, err)
		files, err := storage.Files(filepath.Join(server.Dir, "values", "of", "a-test"), storage.Options{})
		require.NoError(t, err)
		for _, reader := range []*storage.Storage{s, opened(t, cfg), files} {
			got, err := retrieve(t.Context(), reader, claims...)
			require.NoError(t, err)
			assert.True(t, proto.Equal(p, got[0]), "%d bytes", size)
		}
	}
}

// TestWhatIsThereIsNotSentAgain: what another process has stored is asked for, and what this one has seen is not.
func TestWhatIsThereIsNotSentAgain(t *testing.T) {
	t.Parallel()
	_, b := disturbed(t)
	p := words(2<<20, 1)
	_, err := store(t.Context(), opened(t, b.cfg), p)
	require.NoError(t, err)
	sent := b.puts.Load()
	s := opened(t, b.cfg)
	_, err = store(t.Context(), s, p)
	require.NoError(t, err)
	assert.Equal(t, sent, b.puts.Load())
	asked := b.calls.Load()
	_, err = store(t.Context(), s, p)
	require.NoError(t, err)
	assert.Equal(t, asked, b.calls.Load())
}

// TestWhatIsUsedStaysNew: an old object that is used again is written anew, so that a bucket's rule by age takes nothing that is needed.
func TestWhatIsUsedStaysNew(t *testing.T) {
	t.Parallel()
	server, cfg := bucketOf(t)
	p := words(300<<10, 1)
	_, err := store(t.Context(), opened(t, cfg), p)
	require.NoError(t, err)
	long := time.Now().Add(-48 * time.Hour)
	for _, path := range lying(t, server) {
		require.NoError(t, os.Chtimes(path, long, long))
	}
	_, err = store(t.Context(), opened(t, cfg), p)
	require.NoError(t, err)
	for _, path := range lying(t, server) {
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.Less(t, time.Since(info.ModTime()), time.Hour)
	}
}

// TestDamagedObjects: whatever becomes of an object, nobody reads anything else than what was stored, and the error names it.
func TestDamagedObjects(t *testing.T) {
	t.Parallel()
	server, cfg := bucketOf(t)
	p := words(200<<10, 1)
	claims, err := store(t.Context(), opened(t, cfg), p)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		harm func(path string, was []byte) error
		kind error
	}{
		"erased":  {func(path string, _ []byte) error { return os.Remove(path) }, storage.ErrMissing},
		"emptied": {func(path string, _ []byte) error { return os.Truncate(path, 0) }, storage.ErrDamaged},
		"cut off": {func(path string, was []byte) error { return os.WriteFile(path, was[:len(was)/2], 0o600) }, storage.ErrDamaged},
		"one bit": {func(path string, was []byte) error {
			changed := append([]byte(nil), was...)
			changed[len(was)-9] ^= 1
			return os.WriteFile(path, changed, 0o600)
		}, storage.ErrDamaged},
		"huge": {func(path string, _ []byte) error { return os.Truncate(path, 1<<30) }, storage.ErrDamaged},
	} {
		for object, path := range lying(t, server) {
			was, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, c.harm(path, was))
			_, err = retrieve(t.Context(), opened(t, cfg), claims...)
			require.ErrorIs(t, err, c.kind, name)
			var told *storage.Error
			require.ErrorAs(t, err, &told)
			assert.Equal(t, object, filepath.Base(told.Object))
			require.NoError(t, os.WriteFile(path, was, 0o600)) // from the backup
		}
	}
	got, err := retrieve(t.Context(), opened(t, cfg), claims...)
	require.NoError(t, err)
	assert.True(t, proto.Equal(p, got[0]))
}

// answers are what a bucket may give instead of what it should.
var answers = map[string]http.HandlerFunc{
	"garbage": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>It works!</html>")) },
	"no page": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<html>Not found</html>"))
	},
	"an echo": func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_ = r.Header.Write(w)
	},
	"full": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInsufficientStorage)
		_, _ = w.Write([]byte("<Error><Code>XMinioStorageFull</Code><Message>full of secret-of-a-test</Message></Error>"))
	},
	"cut off": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100000")
		w.Header().Set("ETag", `"0123"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		_, _ = w.Write([]byte("the beginning"))
		panic(http.ErrAbortHandler)
	},
	"silence": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
}

// TestAServerInTrouble: whatever it answers, the error says that the storage cannot be used, soon enough for a workflow task, and names no
// secret; and nothing counts as stored that is not.
func TestAServerInTrouble(t *testing.T) {
	t.Parallel()
	_, b := disturbed(t)
	writer := opened(t, b.cfg)
	claims, err := store(t.Context(), writer, words(100<<10, 1))
	require.NoError(t, err)
	fails := func(t *testing.T, do func() error) {
		t.Helper()
		began := time.Now()
		err := do()
		require.ErrorIs(t, err, storage.ErrUnavailable)
		assert.NotErrorIs(t, err, storage.ErrMissing)
		assert.Less(t, time.Since(began), time.Minute) // silence would last; how long it tries is the storage's own test
		for _, secret := range []string{testserver.S3AccessKey, testserver.S3SecretKey} {
			assert.NotContains(t, err.Error(), secret)
		}
		t.Log(err)
	}
	seed := uint64(10)
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			seed++
			p := words(30<<10, seed)
			reader := opened(t, b.cfg)
			b.instead(answer)
			if name != "cut off" { // of a write's answer and of an object's description nobody reads a body
				fails(t, func() error { _, err := store(t.Context(), writer, p); return err })
			}
			if name != "garbage" { // it has another digest
				fails(t, func() error { _, err := retrieve(t.Context(), reader, claims...); return err })
			}
			b.instead(nil)
			again, err := store(t.Context(), opened(t, b.cfg), p)
			require.NoError(t, err)
			_, err = retrieve(t.Context(), opened(t, b.cfg), again...)
			require.NoError(t, err, "what failed is not taken for stored")
			_, err = retrieve(t.Context(), reader, claims...)
			require.NoError(t, err)
		})
	}
}

// TestAServerThatRefuses: wrong credentials, and a bucket that is not there, are said before anything runs.
func TestAServerThatRefuses(t *testing.T) {
	t.Parallel()
	_, cfg := bucketOf(t)
	for name, change := range map[string]func(*s3.Config){
		"403 Forbidden": func(c *s3.Config) {
			c.Credentials = credentials.NewStaticV4(testserver.S3AccessKey, "wrong-"+testserver.S3SecretKey, "")
		},
		"no such bucket":     func(c *s3.Config) { c.Bucket = "another" },
		"connection refused": func(c *s3.Config) { c.Endpoint = "http://127.0.0.1:1" },
	} {
		wrong := cfg
		change(&wrong)
		_, err := s3.Open(t.Context(), wrong, storage.Options{})
		require.ErrorIs(t, err, storage.ErrUnavailable)
		assert.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), testserver.S3SecretKey)
	}
}

// TestAServerThatIsKilled: calls wait for it for five seconds, and go on when it is back; what it acknowledged is there.
func TestAServerThatIsKilled(t *testing.T) {
	t.Parallel()
	server, b := disturbed(t)
	cfg := b.cfg
	cfg.Endpoint = server.Endpoint
	s, waits := opened(t, cfg), opened(t, b.cfg)
	before, err := store(t.Context(), s, words(2<<20, 1))
	require.NoError(t, err)
	require.NoError(t, server.Kill())
	_, err = store(t.Context(), s, words(20<<10, 2))
	require.ErrorIs(t, err, storage.ErrUnavailable)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	// The server may take longer to start than a call waits: what stands before it goes on being away until a call waits for it.
	b.instead(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	require.NoError(t, server.Restart())
	stored, calls := make(chan error, 1), b.calls.Load()
	go func() {
		_, err := store(context.WithoutCancel(t.Context()), waits, words(20<<10, 2))
		stored <- err
	}()
	require.Eventually(t, func() bool { return b.calls.Load() > calls }, time.Minute, time.Millisecond)
	b.instead(nil)
	require.NoError(t, <-stored)
	_, err = store(t.Context(), s, words(20<<10, 3))
	require.NoError(t, err)
	got, err := retrieve(t.Context(), opened(t, cfg), before...)
	require.NoError(t, err)
	assert.True(t, proto.Equal(words(2<<20, 1), got[0]))
}

// TestAFullServer: what does not fit is an error that says so, and what was stored before stays.
func TestAFullServer(t *testing.T) {
	t.Parallel()
	server, cfg := bucketOf(t)
	dir := filepath.Join(server.Dir, "values")
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no file system of this test's own (another test has a server that says it is full): %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	s := opened(t, cfg)
	small, err := store(t.Context(), s, words(40<<10, 1))
	require.NoError(t, err)
	_, err = store(t.Context(), s, words(2<<20, 2))
	require.ErrorIs(t, err, storage.ErrUnavailable)
	t.Log(err)
	_, err = retrieve(t.Context(), opened(t, cfg), small...)
	require.NoError(t, err)
}

// TestNobodyWaitsForAServerWithoutEnd: who gives up is not kept.
func TestNobodyWaitsForAServerWithoutEnd(t *testing.T) {
	t.Parallel()
	_, b := disturbed(t)
	s := opened(t, b.cfg)
	b.instead(answers["silence"])
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := store(ctx, s, words(20<<10, 1))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.False(t, errors.Is(err, fs.ErrNotExist))
}
