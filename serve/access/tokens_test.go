package access

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"
)

// issuer is one whose keys are asked for over HTTP.
type issuer struct {
	*httptest.Server
	keys  atomic.Pointer[[]map[string]string]
	asked atomic.Int64
	away  atomic.Bool
}

func newIssuer(t *testing.T) *issuer {
	i := &issuer{}
	i.keys.Store(&[]map[string]string{})
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]string{"issuer": i.URL, "jwks_uri": i.URL + "/jwks"})
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		i.asked.Add(1)
		reply(w, map[string]any{"keys": *i.keys.Load()})
	})
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.away.Load() {
			http.Error(w, "away", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func reply(w http.ResponseWriter, v any) {
	text, _ := json.Marshal(v)
	_, _ = w.Write(text)
}

// key makes a key that the issuer publishes.
func (i *issuer) key(id string) ed25519.PrivateKey {
	public, private, _ := ed25519.GenerateKey(rand.Reader)
	all := append([]map[string]string{{"kty": "OKP", "crv": "Ed25519", "kid": id, "x": base64.RawURLEncoding.EncodeToString(public)}}, *i.keys.Load()...)
	i.keys.Store(&all)
	return private
}

func signed(t *testing.T, method jwt.SigningMethod, key crypto.PrivateKey, kid string, claims jwt.MapClaims) *http.Request {
	token := jwt.NewWithClaims(method, claims)
	token.Header["kid"] = kid
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return with("Authorization", "Bearer "+text)
}

// signedAs is a token whose header says that it is of that type.
func signedAs(t *testing.T, typ string, key crypto.PrivateKey, claims jwt.MapClaims) *http.Request {
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, claims)
	token.Header["kid"], token.Header["typ"] = "one", typ
	text, err := token.SignedString(key)
	require.NoError(t, err)
	return with("Authorization", "Bearer "+text)
}

func (i *issuer) claims(change ...func(jwt.MapClaims)) jwt.MapClaims {
	c := jwt.MapClaims{"iss": i.URL, "aud": "superstep", "sub": "ann", "exp": time.Now().Add(time.Minute).Unix(), "scope": "a superstep:admin", "org": "acme"}
	for _, f := range change {
		f(c)
	}
	return c
}

func newTokens(t *testing.T, cfg TokensConfig) *Tokens {
	tokens, err := NewTokens(cfg)
	require.NoError(t, err)
	t.Cleanup(tokens.Close)
	return tokens
}

// Tokens of the issuer count, and no others. A new key of the issuer counts with the first token that names it.
func TestTokens(t *testing.T) {
	i := newIssuer(t)
	key := i.key("one")
	tokens := newTokens(t, TokensConfig{Issuer: i.URL, Audience: []string{"superstep"}, Reserved: func(name string) bool { return name == "operator" }})
	who, err := tokens.Authenticate(signed(t, jwt.SigningMethodEdDSA, key, "one", i.claims()))
	require.NoError(t, err)
	require.Equal(t, "ann", who.Name)
	require.True(t, who.Can(Admin))
	require.Equal(t, "acme", who.Claims["org"])
	require.WithinDuration(t, time.Now().Add(time.Minute), who.Expires, 15*time.Second)

	_, stranger, _ := ed25519.GenerateKey(rand.Reader)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	set := func(name string, v any) jwt.MapClaims { return i.claims(func(c jwt.MapClaims) { c[name] = v }) }
	without := func(name string) jwt.MapClaims { return i.claims(func(c jwt.MapClaims) { delete(c, name) }) }
	public, _ := key.Public().(ed25519.PublicKey)
	for name, r := range map[string]*http.Request{
		"another key":       signed(t, jwt.SigningMethodEdDSA, stranger, "one", i.claims()),
		"another algorithm": signed(t, jwt.SigningMethodES256, ec, "one", i.claims()),
		"the public key":    signed(t, jwt.SigningMethodHS256, []byte(public), "one", i.claims()),
		"no signature":      signed(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, "one", i.claims()),
		"expired":           signed(t, jwt.SigningMethodEdDSA, key, "one", set("exp", time.Now().Add(-time.Minute).Unix())),
		"just expired":      signed(t, jwt.SigningMethodEdDSA, key, "one", set("exp", time.Now().Add(-8*time.Second).Unix())),
		"from the future":   signed(t, jwt.SigningMethodEdDSA, key, "one", set("iat", time.Now().Add(time.Minute).Unix())),
		"blank":             signed(t, jwt.SigningMethodEdDSA, key, "one", set("sub", "  ")),
		"who has a key":     signed(t, jwt.SigningMethodEdDSA, key, "one", set("sub", "operator")),
		"an approval":       signedAs(t, "superstep-approval+jwt", key, i.claims()),
		"for ever":          signed(t, jwt.SigningMethodEdDSA, key, "one", without("exp")),
		"not yet":           signed(t, jwt.SigningMethodEdDSA, key, "one", set("nbf", time.Now().Add(time.Minute).Unix())),
		"another audience":  signed(t, jwt.SigningMethodEdDSA, key, "one", set("aud", []string{"other"})),
		"no audience":       signed(t, jwt.SigningMethodEdDSA, key, "one", without("aud")),
		"another issuer":    signed(t, jwt.SigningMethodEdDSA, key, "one", set("iss", "https://elsewhere.example")),
		"nobody":            signed(t, jwt.SigningMethodEdDSA, key, "one", without("sub")),
		"a number":          signed(t, jwt.SigningMethodEdDSA, key, "one", set("sub", 7)),
		"control":           signed(t, jwt.SigningMethodEdDSA, key, "one", set("sub", "a\nb")),
		"an unknown key":    signed(t, jwt.SigningMethodEdDSA, stranger, "two", i.claims()),
		"long":              with("Authorization", "Bearer "+strings.Repeat("x", 20<<10)),
		"garbage":           with("Authorization", "Bearer a.b.c"),
	} {
		_, err := tokens.Authenticate(r)
		require.ErrorIs(t, err, ErrUnauthenticated, name)
		require.NotContains(t, err.Error(), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), name)
	}
	_, err = tokens.Authenticate(with("X-Api-Key", "x"))
	require.ErrorIs(t, err, ErrNoCredential)

	asked, began := i.asked.Load(), time.Now()
	for range 50 {
		_, _ = tokens.Authenticate(signed(t, jwt.SigningMethodEdDSA, stranger, "three", i.claims()))
	}
	require.LessOrEqual(t, i.asked.Load(), asked+1+int64(time.Since(began)/unknownKeys), "unknown keys do not make the issuer be asked without bound")
	next := i.key("four")
	require.Eventually(t, func() bool {
		_, err := tokens.Authenticate(signed(t, jwt.SigningMethodEdDSA, next, "four", i.claims()))
		return err == nil
	}, 2*time.Minute, 200*time.Millisecond)
}

// While the issuer is away nobody is let in, and nobody is told that their token is bad. It is asked again when it is back.
func TestTokensWhileTheIssuerIsAway(t *testing.T) {
	i := newIssuer(t)
	key := i.key("one")
	i.away.Store(true)
	var failed atomic.Int64
	began := time.Now()
	tokens := newTokens(t, TokensConfig{Issuer: i.URL, Audience: []string{"superstep"}, Failed: func(error) { failed.Add(1) }})
	for range 20 {
		_, err := tokens.Authenticate(signed(t, jwt.SigningMethodEdDSA, key, "one", i.claims()))
		require.ErrorIs(t, err, errIssuer)
	}
	require.Positive(t, failed.Load())
	require.LessOrEqual(t, failed.Load(), 1+int64(time.Since(began)/retryAfter))
	i.away.Store(false)
	require.Eventually(t, func() bool {
		_, err := tokens.Authenticate(signed(t, jwt.SigningMethodEdDSA, key, "one", i.claims()))
		return err == nil
	}, 2*time.Minute, 100*time.Millisecond)
}

func TestBadTokensConfig(t *testing.T) {
	for _, bad := range []TokensConfig{
		{}, {Issuer: "https://i.example"}, {Audience: []string{"a"}}, {Issuer: "https://i.example", Audience: []string{""}},
		{Issuer: "http://i.example", Audience: []string{"a"}}, {Issuer: "https://u:p@i.example", Audience: []string{"a"}},
		{Issuer: "i.example", Audience: []string{"a"}}, {Issuer: "x", JWKS: "http://i.example/keys", Audience: []string{"a"}},
	} {
		_, err := NewTokens(bad)
		require.Error(t, err, "%v", bad)
	}
	_, err := NewTokens(TokensConfig{Issuer: "anything", JWKS: "https://i.example/keys", Audience: []string{"a"}})
	require.NoError(t, err)
}
