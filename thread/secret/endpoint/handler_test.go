package endpoint_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"

	"superstep.dev/thread/secret"
	"superstep.dev/thread/secret/endpoint"
)

const (
	marker = "a marker that nobody may read"
	token  = "a-token-of-24-characters"
	page   = "https://temporal.example.com"
)

func newKeys(t *testing.T) *secret.Keys {
	t.Helper()
	now := time.Now()
	ring, _, err := secret.Ring{}.Rotate("k-1", now, now)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(path, ring.Text(), 0o600))
	keys, err := secret.File(path, secret.Options{})
	require.NoError(t, err)
	return keys
}

func serve(t *testing.T, keys *secret.Keys, c endpoint.Config) *httptest.Server {
	t.Helper()
	h, err := endpoint.Handler(keys.Codec(), c)
	require.NoError(t, err)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// TestWhoHasTheTokenReads what was encrypted with the keys, and encrypts as they do, with the SDK's own codec too.
func TestWhoHasTheTokenReads(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	s := serve(t, keys, endpoint.Config{Token: token})
	local := keys.Converter(nil)
	remote, err := endpoint.Dial(s.URL, "Bearer "+token, "default")
	require.NoError(t, err)
	theirs := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewRemotePayloadCodec(converter.RemotePayloadCodecOptions{
		Endpoint: s.URL, ModifyRequest: func(r *http.Request) error { r.Header.Set("Authorization", "Bearer "+token); return nil }}))
	for _, asks := range []converter.DataConverter{remote.Converter(nil), theirs} {
		for _, text := range []string{marker, strings.Repeat(marker+" ", 10_000)} {
			sealed, err := local.ToPayload(text)
			require.NoError(t, err)
			var got string
			require.NoError(t, asks.FromPayload(sealed, &got))
			require.Equal(t, text, got)
			sealed, err = asks.ToPayload(text)
			require.NoError(t, err)
			require.NotContains(t, sealed.String(), marker)
			require.NoError(t, local.FromPayload(sealed, &got))
			require.Equal(t, text, got)
		}
	}
	s.Close()
	var got string
	plain, err := converter.GetDefaultDataConverter().ToPayload("plain")
	require.NoError(t, err)
	require.NoError(t, remote.Converter(nil).FromPayload(plain, &got), "nobody is asked about what is not encrypted")
}

// TestNobodyElseReads: each request is refused before its body is read, and the refusal shows nothing.
func TestNobodyElseReads(t *testing.T) {
	t.Parallel()
	keys := newKeys(t)
	s := serve(t, keys, endpoint.Config{Token: token, Origins: []string{page}, Hosts: []string{"codec.example.com"}})
	sealed, err := keys.Converter(nil).ToPayload(marker)
	require.NoError(t, err)
	body, err := protojson.Marshal(&commonpb.Payloads{Payloads: []*commonpb.Payload{sealed}})
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"right":        {func(*http.Request) {}, 200},
		"right page":   {func(r *http.Request) { r.Header.Set("Origin", page) }, 200},
		"right host":   {func(r *http.Request) { r.Host = "CODEC.example.com:8234" }, 200},
		"lower scheme": {func(r *http.Request) { r.Header.Set("Authorization", "bearer "+token) }, 200},
		"no token":     {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"other token":  {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token+"x") }, 401},
		"part of it":   {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token[:20]) }, 401},
		"no scheme":    {func(r *http.Request) { r.Header.Set("Authorization", token) }, 401},
		"empty token":  {func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"other page":   {func(r *http.Request) { r.Header.Set("Origin", page+".evil.example") }, 403},
		"null page":    {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"other host":   {func(r *http.Request) { r.Host = "evil.example" }, 421},
		"no host":      {func(r *http.Request) { r.Host = "evil.example:8234" }, 421},
		"other path":   {func(r *http.Request) { r.URL.Path = "/x/decode" }, 404},
		"GET":          {func(r *http.Request) { r.Method = http.MethodGet }, 405},
		"too large": {func(r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), endpoint.MaxBody+1
		}, 413},
		"no JSON": {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("{")), 1 }, 400},
		"damaged": {func(r *http.Request) { change(r, body, func(p *commonpb.Payload) { p.Data[40] ^= 1 }) }, 400},
		"an unknown key": {func(r *http.Request) {
			change(r, body, func(p *commonpb.Payload) { p.Metadata[secret.MetadataKey] = []byte("k-9") })
		}, 400},
	} {
		r := httptest.NewRequest(http.MethodPost, "/decode", bytes.NewReader(body))
		r.Host = "127.0.0.1:8234"
		r.Header.Set("Authorization", "Bearer "+token)
		c.change(r)
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, r)
		require.Equal(t, c.status, w.Code, "%s: %s", name, w.Body)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		if c.status == 200 {
			require.Equal(t, r.Header.Get("Origin"), w.Header().Get("Access-Control-Allow-Origin"))
			continue
		}
		require.NotContains(t, w.Body.String(), marker)
		require.NotContains(t, w.Body.String(), token)
	}
}

// change sends another payload.
func change(r *http.Request, body []byte, do func(*commonpb.Payload)) {
	var all commonpb.Payloads
	if err := protojson.Unmarshal(body, &all); err != nil {
		panic(err)
	}
	do(all.Payloads[0])
	body, _ = protojson.Marshal(&all)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// TestAPageAsksFirst: a browser's question before the request is answered without a token, for the pages that may ask.
func TestAPageAsksFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, newKeys(t), endpoint.Config{Token: token, Origins: []string{page}})
	for origin, status := range map[string]int{page: 204, "https://evil.example": 403} {
		r := httptest.NewRequest(http.MethodOptions, "/decode", nil)
		r.Host = "localhost"
		r.Header.Set("Origin", origin)
		w := httptest.NewRecorder()
		s.Config.Handler.ServeHTTP(w, r)
		require.Equal(t, status, w.Code)
		if status == 204 {
			require.Contains(t, w.Header().Get("Access-Control-Allow-Headers"), "Authorization")
		} else {
			require.Empty(t, w.Header().Get("Access-Control-Allow-Origin"))
		}
	}
}

func TestAConfigThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]endpoint.Config{"short token": {Token: "short"}, "token with spaces": {Token: token + " " + token},
		"any origin": {Origins: []string{"*"}}, "a path": {Origins: []string{page + "/"}}, "no scheme": {Origins: []string{"temporal.example.com"}}} {
		_, err := endpoint.Handler(newKeys(t).Codec(), c)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), token)
	}
	for _, url := range []string{"http://codec.example.com", "ftp://localhost", "localhost:8234", "https://user:secret@codec.example.com", "https://codec.example.com?x=secret"} {
		_, err := endpoint.Dial(url, "", "")
		require.Error(t, err, url)
		require.NotContains(t, err.Error(), "secret")
	}
}

// TestAnEndpointThatIsGoneOrSlow is one clear error, within its time.
func TestAnEndpointThatIsGoneOrSlow(t *testing.T) {
	t.Parallel()
	sealed, err := newKeys(t).Converter(nil).ToPayload(marker)
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // takes requests, and says nothing
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	gone := httptest.NewServer(nil)
	gone.Close()
	odd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	t.Cleanup(odd.Close)
	for where, says := range map[string]string{gone.URL: "refused", "http://" + listener.Addr().String(): "no answer within 10s", odd.URL: "not that of a codec endpoint",
		serve(t, newKeys(t), endpoint.Config{Token: token}).URL: "401 Unauthorized"} {
		remote, err := endpoint.Dial(where, "Bearer another", "default")
		require.NoError(t, err)
		var text string
		began := time.Now()
		err = remote.Converter(nil).FromPayload(sealed, &text)
		require.ErrorIs(t, err, endpoint.ErrEndpoint)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, where)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, time.Since(began), 2*time.Minute)
		var told *endpoint.Error
		require.True(t, errors.As(err, &told))
	}
}
