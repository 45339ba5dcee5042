package s3_test

import (
	"context"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/internal/testserver"
	"superstep.dev/thread/storage"
	"superstep.dev/thread/storage/s3"
)

// bucketOf starts a server with an empty bucket.
func bucketOf(t *testing.T) (*testserver.S3, s3.Config) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts an S3 server, which takes two minutes to compile the first time")
	}
	server := testserver.StartS3(t, t.TempDir(), "values")
	return server, s3.Config{Bucket: "values", Prefix: "of/a-test", Endpoint: server.Endpoint,
		Credentials: credentials.NewStaticV4(testserver.S3AccessKey, testserver.S3SecretKey, "")}
}

// opened is another process's storage in a bucket: with nothing in memory.
func opened(t *testing.T, cfg s3.Config) *storage.Storage {
	t.Helper()
	s, err := s3.Open(t.Context(), cfg, storage.Options{CacheBytes: 1})
	require.NoError(t, err)
	return s
}

// lying are the files of the server's bucket, by the names of the objects.
func lying(t *testing.T, server *testserver.S3) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(filepath.Join(server.Dir, "values", "of", "a-test"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.Trim(e.Name(), "0") != "" && e.Name() != "superstep-trial" { // but for the epoch of a space
			files[e.Name()] = path
		}
		return err
	}))
	return files
}

// words are n bytes that do not compress to nothing, as a payload.
func words(n int, seed uint64) *commonpb.Payload {
	from := rand.New(rand.NewPCG(seed, 1))
	out := make([]byte, 0, n+64)
	for len(out) < n {
		out = fmt.Appendf(out, "%x ", from.Uint64())
	}
	return &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("binary/plain")}, Data: out[:n]}
}

func store(ctx context.Context, s *storage.Storage, payloads ...*commonpb.Payload) ([]converter.StorageDriverClaim, error) {
	return s.External().Drivers[0].Store(converter.StorageDriverStoreContext{Context: ctx}, payloads)
}

func retrieve(ctx context.Context, s *storage.Storage, claims ...converter.StorageDriverClaim) ([]*commonpb.Payload, error) {
	return s.External().Drivers[0].Retrieve(converter.StorageDriverRetrieveContext{Context: ctx}, claims)
}

// between stands between a program and the server, and answers in its stead while it is told to.
type between struct {
	cfg    s3.Config
	answer atomic.Pointer[http.HandlerFunc]
	calls  atomic.Int64
	puts   atomic.Int64
}

// instead answers all calls from now on by h; nil lets them pass.
func (b *between) instead(h http.HandlerFunc) {
	if h == nil {
		b.answer.Store(nil)
		return
	}
	b.answer.Store(&h)
}

// disturbed is a bucket whose server is reached through a between.
func disturbed(t *testing.T) (*testserver.S3, *between) {
	t.Helper()
	server, cfg := bucketOf(t)
	target, err := url.Parse(server.Endpoint)
	require.NoError(t, err)
	pass := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	b := &between{cfg: cfg}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.calls.Add(1)
		if r.Method == http.MethodPut {
			b.puts.Add(1)
		}
		if answer := b.answer.Load(); answer != nil {
			(*answer)(w, r)
			return
		}
		pass.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	b.cfg.Endpoint = front.URL
	return server, b
}
