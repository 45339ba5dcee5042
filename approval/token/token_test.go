package token_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// issuer owns the keys of tests: they sign for everybody.
var issuer = approval.Owner{Issuer: "sso"}

var claims = approval.Claims{
	ID: "id-1", Thread: "t", Question: "q", Approver: "ana", Digest: "sha256:00", ParamsHash: "sha256:01",
	IssuedAt: now, ExpiresAt: now.Add(time.Minute),
}

func signer(t testing.TB, id string) *token.Signer {
	private, _, err := token.Generate(issuer, id)
	require.NoError(t, err)
	s, err := token.ParseSigner(private)
	require.NoError(t, err)
	s.Now = func() time.Time { return now }
	return s
}

func ring(t testing.TB, keys ...token.Key) *token.Keyring {
	k, err := token.New(keys...)
	require.NoError(t, err)
	k.Now = func() time.Time { return now }
	return k
}

func sign(t testing.TB, s *token.Signer, c approval.Claims) string {
	text, err := s.Sign(c)
	require.NoError(t, err)
	return text
}

func refusedAs(t *testing.T, k *token.Keyring, text string, code approval.Code, note ...any) {
	t.Helper()
	_, err := k.Verify(text)
	var bad *approval.TokenError
	require.ErrorAs(t, err, &bad, note...)
	require.Equal(t, code, bad.Code, bad.Reason)
	require.NotEmpty(t, bad.Reason)
	for part := range strings.SplitSeq(text, ".") {
		require.False(t, len(part) > 20 && strings.Contains(err.Error(), part), "the error holds a part of the token")
	}
}

func TestSignedIsVerified(t *testing.T) {
	s := signer(t, "")
	got, err := ring(t, s.Key()).Verify(sign(t, s, claims))
	require.NoError(t, err)
	want := claims
	want.KeyID, want.Owner = s.Key().ID, issuer
	require.Equal(t, want, got)
}

func TestSignFillsIn(t *testing.T) {
	s := signer(t, "k")
	k := ring(t, s.Key())
	c := claims
	c.ID, c.IssuedAt, c.ExpiresAt = "", time.Time{}, time.Time{}
	first, err := k.Verify(sign(t, s, c))
	require.NoError(t, err)
	second, err := k.Verify(sign(t, s, c))
	require.NoError(t, err)
	require.NotEqual(t, first.ID, second.ID)
	require.Equal(t, now, first.IssuedAt)
	require.Equal(t, now.Add(token.DefaultLife), first.ExpiresAt)
}

func TestSignRefuses(t *testing.T) {
	for name, change := range map[string]func(*approval.Claims){
		"no thread":        func(c *approval.Claims) { c.Thread = "" },
		"no approver":      func(c *approval.Claims) { c.Approver = "" },
		"no digest":        func(c *approval.Claims) { c.Digest = "" },
		"a long question":  func(c *approval.Claims) { c.Question = strings.Repeat("q", 301) },
		"over an hour":     func(c *approval.Claims) { c.ExpiresAt = now.Add(approval.MaxTokenLife + time.Second) },
		"over beforehand":  func(c *approval.Claims) { c.ExpiresAt = now },
		"less than second": func(c *approval.Claims) { c.ExpiresAt = now.Add(time.Second - 1) },
	} {
		c := claims
		change(&c)
		_, err := signer(t, "").Sign(c)
		var invalid *approval.InvalidError
		require.ErrorAs(t, err, &invalid, name)
	}
}

// TestForged has tokens that no signer makes.
func TestForged(t *testing.T) {
	private, public, err := ed25519Pair()
	require.NoError(t, err)
	k := ring(t, token.Key{ID: "k", Public: public, Owner: issuer})
	header := func() map[string]any {
		return map[string]any{"alg": "EdDSA", "kid": "k", "typ": "superstep-approval+jwt"}
	}
	body := func() map[string]any {
		return map[string]any{"jti": "i", "aud": "superstep", "sub": "ana", "thread": "t", "question": "q", "digest": "d",
			"params_hash": "p", "iat": now.Unix(), "exp": now.Unix() + 60}
	}
	good := forge(private, header(), body())
	_, err = k.Verify(good)
	require.NoError(t, err, "the forge itself works")

	for name, value := range map[string]any{"crit": []string{"b64"}, "jwk": map[string]any{}, "x5u": "https://x", "zip": "DEF", "typ": "JWT", "kid": nil} {
		h := header()
		h[name] = value
		refusedAs(t, k, forge(private, h, body()), approval.CodeMalformed, name)
	}
	for name, value := range map[string]any{
		"nbf": now.Unix() + 3600, "aud": "other", "sub": "", "iat": -1, "exp": now.Unix() + 3601, "jti": strings.Repeat("j", 301),
		"thread": 1, "question": nil, "digest": []string{}, "admin": true,
	} {
		b := body()
		b[name] = value
		refusedAs(t, k, forge(private, header(), b), approval.CodeMalformed, name)
	}
	h := header()
	h["kid"] = "other"
	refusedAs(t, k, forge(private, h, body()), approval.CodeSignature)

	other, _, err := ed25519Pair()
	require.NoError(t, err)
	refusedAs(t, k, forge(other, header(), body()), approval.CodeSignature)

	// The public key as the secret of an HMAC, and no algorithm at all.
	for _, alg := range []struct {
		method jwt.SigningMethod
		key    any
	}{{jwt.SigningMethodHS256, []byte(public)}, {jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType}} {
		forged := jwt.NewWithClaims(alg.method, jwt.MapClaims(body()))
		forged.Header["kid"], forged.Header["typ"] = "k", "superstep-approval+jwt"
		text, err := forged.SignedString(alg.key)
		require.NoError(t, err)
		refusedAs(t, k, text, approval.CodeSignature, alg.method.Alg())
	}
	parts := strings.Split(good, ".")
	for _, text := range []string{
		"", "x", "..", parts[0] + "." + parts[1], good + ".x", " " + good, good + "=", strings.Repeat("x", token.MaxToken+1),
	} {
		refusedAs(t, k, text, approval.CodeMalformed, text)
	}
	refusedAs(t, k, parts[0]+"."+parts[1]+".", approval.CodeSignature)
}

func ed25519Pair() (ed25519.PrivateKey, ed25519.PublicKey, error) {
	public, private, err := ed25519.GenerateKey(nil)
	return private, public, err
}

func forge(key ed25519.PrivateKey, header, body map[string]any) string {
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	text := part(header) + "." + part(body)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(key, []byte(text)))
}

// TestEveryBitCounts: a token of which one bit was changed is not the token that was signed.
func TestEveryBitCounts(t *testing.T) {
	s := signer(t, "k")
	k, text := ring(t, s.Key()), sign(t, s, claims)
	for i := range len(text) * 8 {
		changed := []byte(text)
		changed[i/8] ^= 1 << (i % 8)
		_, err := k.Verify(string(changed))
		require.Error(t, err, "bit %d", i)
	}
}

func TestRotation(t *testing.T) {
	old, fresh := signer(t, "2026-10"), signer(t, "2026-11")
	retired := old.Key()
	retired.RetiredAt = now.Add(time.Hour)
	coming := fresh.Key()
	coming.NotBefore = now
	k := ring(t, retired, coming)
	for _, step := range []struct {
		at         time.Time
		old, fresh approval.Code
	}{
		{now.Add(-1), "", approval.CodeSignature},
		{now, "", ""},
		{now.Add(time.Hour - 1), "", ""},
		{now.Add(time.Hour), approval.CodeRetiredKey, ""},
	} {
		k.Now = func() time.Time { return step.at }
		for s, code := range map[*token.Signer]approval.Code{old: step.old, fresh: step.fresh} {
			if code != "" {
				refusedAs(t, k, sign(t, s, claims), code)
				continue
			}
			_, err := k.Verify(sign(t, s, claims))
			require.NoError(t, err)
		}
	}
}

func TestSignerDoesNotShowItsKey(t *testing.T) {
	private, _, err := token.Generate(issuer, "k")
	require.NoError(t, err)
	s, err := token.ParseSigner(private)
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		require.Equal(t, "signer with key k", fmt.Sprintf(verb, s))
	}
}

func FuzzVerify(f *testing.F) {
	s := signer(f, "k")
	k := ring(f, s.Key())
	text := sign(f, s, claims)
	f.Add(text)
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	f.Add(strings.Replace(text, ".", "..", 1))
	f.Fuzz(func(t *testing.T, tried string) {
		got, err := k.Verify(tried)
		if err == nil {
			require.Equal(t, text, tried, "only what was signed is believed")
			want := claims
			want.KeyID, want.Owner = "k", issuer
			require.Equal(t, want, got)
			return
		}
		var bad *approval.TokenError
		require.ErrorAs(t, err, &bad)
		require.Contains(t, []approval.Code{approval.CodeMalformed, approval.CodeSignature, approval.CodeRetiredKey}, bad.Code)
	})
}
