package s3_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"

	"superstep.dev/thread/storage"
	"superstep.dev/thread/storage/s3"
)

// plain is a bucket that keeps bodies as they come, and knows callers by their key alone.
type plain struct {
	mu      sync.Mutex
	key     string
	chunked bool // it keeps the marks of signed chunks too
	objects map[string][]byte
}

func (p *plain) set(key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.key = key
}

func (p *plain) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !strings.Contains(r.Header.Get("Authorization"), "Credential="+p.key+"/") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	w.Header().Set("Last-Modified", "Mon, 02 Nov 2026 00:00:00 GMT")
	w.Header().Set("ETag", `"1"`)
	switch object, there := p.objects[r.URL.Path]; {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		if marked := strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING"); marked && !p.chunked {
			_, body, _ = bytes.Cut(body, []byte("\r\n"))
			body, _, _ = bytes.Cut(body, []byte("\r\n"))
		}
		p.objects[r.URL.Path] = body
	case strings.Trim(r.URL.Path, "/") == "values": // the bucket
	case !there:
		w.Header().Del("ETag")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `<Error><Code>NoSuchKey</Code></Error>`)
	default:
		w.Write(object)
	}
}

func startPlain(t *testing.T, key string) (*plain, s3.Config) {
	p := &plain{key: key, objects: map[string][]byte{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return p, s3.Config{Bucket: "values", Prefix: "p", Endpoint: server.URL}
}

func writeKey(t *testing.T, path, key string) {
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, "[default]\naws_access_key_id = %s\naws_secret_access_key = secret\n", key), 0o600))
}

// TestAKeyIsRenewed: the file of AWS's credentials is read again when it has changed.
func TestAKeyIsRenewed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "credentials")
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", path)
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	writeKey(t, path, "ONE")
	p, cfg := startPlain(t, "ONE")
	s := opened(t, cfg)
	keep := func(seed uint64) error {
		_, err := s.External().Drivers[0].Store(converter.StorageDriverStoreContext{Context: t.Context()},
			[]*commonpb.Payload{words(300_000, seed)})
		return err
	}
	require.NoError(t, keep(1))
	writeKey(t, path, "RENEWED")
	p.set("RENEWED")
	require.NoError(t, keep(2))
	require.NoError(t, os.Remove(path))
	require.NoError(t, keep(3), "while the file is replaced")
}

// TestAServerThatChangesObjects: a server that keeps the marks of signed chunks as part of an object is no place for values.
func TestAServerThatChangesObjects(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "ONE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	p, cfg := startPlain(t, "ONE")
	p.chunked = true
	_, err := s3.Open(t.Context(), cfg, storage.Options{})
	require.ErrorIs(t, err, storage.ErrUnavailable)
	require.ErrorContains(t, err, "signed chunks")
}
