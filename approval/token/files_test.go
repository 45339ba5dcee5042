package token_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
)

// pair is a key pair in files below a directory.
type pair struct {
	*token.Signer
	private, public       []byte
	privateFile, publicAt string
}

func newPair(t *testing.T, dir, id string) pair {
	private, public, err := token.Generate(issuer, id)
	require.NoError(t, err)
	p := pair{private: private, public: public, privateFile: filepath.Join(t.TempDir(), id+".key"), publicAt: filepath.Join(dir, id+".pem")}
	write(t, p.privateFile, private, 0o600)
	write(t, p.publicAt, public, 0o644)
	p.Signer, err = token.LoadSigner(p.privateFile)
	require.NoError(t, err)
	return p
}

func write(t *testing.T, path string, text []byte, mode fs.FileMode) {
	require.NoError(t, os.WriteFile(path, text, mode))
	require.NoError(t, os.Chmod(path, mode))
}

// with returns a PEM text with one more header.
func with(text []byte, header, value string) []byte {
	block, _ := pem.Decode(text)
	block.Headers[header] = value
	return pem.EncodeToMemory(block)
}

// without returns a PEM text with a header less.
func without(text []byte, header string) []byte {
	block, _ := pem.Decode(text)
	delete(block.Headers, header)
	return pem.EncodeToMemory(block)
}

func TestDirectoryOfKeysIsRotated(t *testing.T) {
	dir := t.TempDir()
	old := newPair(t, dir, "old")
	k, err := token.Open(dir)
	require.NoError(t, err)
	k.Reread()
	verifies := func(p pair) { t.Helper(); _, err := k.Verify(sign(t, p.Signer, claims)); require.NoError(t, err) }
	verifies(old)

	before, err := k.Health()
	require.NoError(t, err)
	fresh := newPair(t, dir, "new")
	verifies(fresh)
	verifies(old)
	after, err := k.Health()
	require.NoError(t, err)
	require.NotEqual(t, before, after)

	write(t, old.publicAt, with(old.public, "Retired-At", time.Now().Add(-time.Minute).Format(time.RFC3339)), 0o644)
	refusedAs(t, k, sign(t, old.Signer, claims), approval.CodeRetiredKey)
	require.NoError(t, os.Remove(old.publicAt))
	refusedAs(t, k, sign(t, old.Signer, claims), approval.CodeSignature)
	verifies(fresh)
}

// TestBrokenFilesCloseTheKeyring: no key is in force until what is wrong is put right, and Health says what it is.
func TestBrokenFilesCloseTheKeyring(t *testing.T) {
	dir := t.TempDir()
	p := newPair(t, dir, "k")
	k, err := token.Open(dir)
	require.NoError(t, err)
	k.Reread()
	version, err := k.Health()
	require.NoError(t, err)
	closed := func(name string) (bad *token.KeyError) {
		t.Helper()
		_, err := k.Verify(sign(t, p.Signer, claims))
		require.ErrorAs(t, err, &bad, name)
		_, err = k.Owner("k", time.Now())
		require.ErrorAs(t, err, &bad, name)
		return bad
	}
	mended := func(name string) {
		t.Helper()
		_, err := k.Verify(sign(t, p.Signer, claims))
		require.NoError(t, err, name)
		_, err = k.Health()
		require.NoError(t, err, name)
	}
	broken := filepath.Join(dir, "z.pem")
	for name, text := range map[string][]byte{
		"half a block":   p.public[:len(p.public)/2],
		"one and a half": append(bytes.Clone(p.public), p.public[:len(p.public)/2]...),
		"nothing":        nil,
		"another of that id": func() []byte {
			_, public, err := token.Generate(issuer, "k")
			require.NoError(t, err)
			return public
		}(),
		"an unknown header":     with(p.public, "Valid-Until", "2030-01-01T00:00:00Z"),
		"no time":               with(p.public, "Retired-At", "tomorrow"),
		"a time without a zone": with(p.public, "Retired-At", "2026-01-02 15:04:05"),
		"another owner":         with(with(p.public, "Key-Id", "other"), "Person", "ann"),
	} {
		write(t, broken, text, 0o644)
		require.Equal(t, broken, closed(name).Source, name)
		used, err := k.Health()
		var bad *token.KeyError
		require.ErrorAs(t, err, &bad, name)
		require.Equal(t, version, used, name)
		_, err = token.Open(dir)
		require.ErrorAs(t, err, &bad, "a keyring never begins with broken files: "+name)
		require.NoError(t, os.Remove(broken))
		mended(name)
	}
	for name, wreck := range map[string]func() error{
		"the only file emptied":    func() error { return os.Truncate(p.publicAt, 0) },
		"anybody may write it":     func() error { return os.Chmod(p.publicAt, 0o666) },
		"retired in other words":   func() error { return os.WriteFile(p.publicAt, with(p.public, "Retired-At", "now"), 0o644) },
		"whose it is was left out": func() error { return os.WriteFile(p.publicAt, without(p.public, "Issuer"), 0o644) },
		"the directory emptied":    func() error { return os.Remove(p.publicAt) },
		"the directory removed":    func() error { return os.RemoveAll(dir) },
	} {
		require.NoError(t, wreck(), name)
		closed(name)
		require.NoError(t, os.MkdirAll(dir, 0o755))
		write(t, p.publicAt, p.public, 0o644)
		mended(name)
	}
	require.NoError(t, os.RemoveAll(dir))
	closed("no directory")
	_, err = k.Health()
	require.ErrorIs(t, err, fs.ErrNotExist)

	require.NoError(t, os.Mkdir(dir, 0o755))
	fresh := newPair(t, dir, "k2")
	_, err = k.Verify(sign(t, fresh.Signer, claims))
	require.NoError(t, err)
	_, err = k.Health()
	require.NoError(t, err)
}

func TestModesOfFiles(t *testing.T) {
	dir := t.TempDir()
	p := newPair(t, dir, "k")
	require.NoError(t, os.Chmod(p.privateFile, 0o640))
	_, err := token.LoadSigner(p.privateFile)
	require.ErrorContains(t, err, "chmod 600")
	require.ErrorContains(t, err, p.privateFile)

	require.NoError(t, os.Chmod(p.publicAt, 0o666))
	_, err = token.Open(dir)
	require.ErrorContains(t, err, "chmod o-w")

	// A private key verifies too, when nobody else can read it.
	write(t, p.publicAt, p.private, 0o600)
	k, err := token.Open(p.publicAt)
	require.NoError(t, err)
	_, err = k.Verify(sign(t, p.Signer, claims))
	require.NoError(t, err)
}

func TestFromEnvironment(t *testing.T) {
	t.Setenv(token.EnvKeys, "")
	t.Setenv(token.EnvSigningKey, "")
	_, err := token.FromEnv()
	require.ErrorIs(t, err, token.ErrUnset)
	_, err = token.SignerFromEnv()
	require.ErrorIs(t, err, token.ErrUnset)

	one, two := newPair(t, t.TempDir(), "one"), newPair(t, t.TempDir(), "two")
	for _, signing := range []string{string(two.private), two.privateFile} {
		for _, keys := range []string{
			string(one.public) + "\n" + string(two.public),
			one.publicAt + string(os.PathListSeparator) + filepath.Dir(two.publicAt),
		} {
			t.Setenv(token.EnvKeys, keys)
			t.Setenv(token.EnvSigningKey, signing)
			k, err := token.FromEnv()
			require.NoError(t, err)
			s, err := token.SignerFromEnv()
			require.NoError(t, err)
			_, err = k.Verify(sign(t, s, claims))
			require.NoError(t, err)
			_, err = k.Verify(sign(t, one.Signer, claims))
			require.NoError(t, err)
		}
	}
}

// TestErrorsHoldNoKey puts private keys where they cannot be used, in every form that somebody may try.
func TestErrorsHoldNoKey(t *testing.T) {
	p := newPair(t, t.TempDir(), "k")
	block, _ := pem.Decode(p.private)
	raw, _, _ := strings.Cut(strings.Split(string(p.private), "\n\n")[1], "\n")
	require.Greater(t, len(raw), 40)
	rsa := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: block.Bytes}))
	cut := string(p.private[:len(p.private)-20])
	twice := string(p.private) + string(p.private)
	for _, value := range []string{raw, rsa, cut, twice, "/" + raw, strings.ReplaceAll(string(p.private), "PRIVATE", "PUBLIC")} {
		t.Setenv(token.EnvSigningKey, value)
		t.Setenv(token.EnvKeys, value)
		_, err := token.SignerFromEnv()
		require.Error(t, err)
		require.NotContains(t, err.Error(), raw[10:40])
		if value != twice { // the same key twice is one
			_, err = token.FromEnv()
			require.Error(t, err)
			require.NotContains(t, err.Error(), raw[10:40])
		}
	}
}

// TestKeysOfOtherTools need a header that says whose they are, and nothing else.
func TestKeysOfOtherTools(t *testing.T) {
	key := signer(t, "").Key()
	der, err := x509.MarshalPKIXPublicKey(key.Public)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "openssl.pem")
	plain := "a comment\n" + string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	write(t, path, []byte(plain), 0o644)
	_, err = token.Open(path)
	require.ErrorContains(t, err, "Person: NAME")
	for header, owner := range map[string]approval.Owner{
		"Person: ann":                           {Person: "ann"},
		"Issuer: sso":                           {Issuer: "sso"},
		"Issuer: sso\nFor: group:finance,  bob": {Issuer: "sso", For: []string{"group:finance", "bob"}},
	} {
		write(t, path, []byte(strings.Replace(plain, "KEY-----\n", "KEY-----\n"+header+"\n\n", 1)), 0o644)
		k, err := token.Open(path)
		require.NoError(t, err, header)
		got, err := k.Owner(key.ID, time.Now())
		require.NoError(t, err)
		require.Equal(t, owner, got)
	}
}

// TestGeneratedKeysSayWhoseTheyAre, and a person's signs for nobody else.
func TestGeneratedKeysSayWhoseTheyAre(t *testing.T) {
	owner := approval.Owner{Issuer: "sso", For: []string{"group:finance", "bob"}}
	_, public, err := token.Generate(owner, "k")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "k.pem")
	write(t, path, public, 0o644)
	k, err := token.Open(path)
	require.NoError(t, err)
	got, err := k.Owner("k", time.Now())
	require.NoError(t, err)
	require.Equal(t, owner, got)
	_, err = k.Owner("other", time.Now())
	var unknown *approval.TokenError
	require.ErrorAs(t, err, &unknown)

	for _, bad := range []approval.Owner{{}, {Person: " ann"}, {Person: "a\nb"}, {Issuer: "sso", For: []string{"a,b"}}, {Issuer: "x", Person: "y"}} {
		_, _, err := token.Generate(bad, "")
		var wrong *token.KeyError
		require.ErrorAs(t, err, &wrong)
	}
	private, _, err := token.Generate(approval.Owner{Person: "bob"}, "")
	require.NoError(t, err)
	s, err := token.ParseSigner(private)
	require.NoError(t, err)
	_, err = s.Sign(claims)
	var invalid *approval.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Contains(t, err.Error(), "bob's")
}
