package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// authority is a certificate authority of a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	a := &authority{}
	a.cert = &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	a.pem, _, a.key = a.issue(t, a.cert)
	return a
}

// issue makes a certificate and its key, both as PEM.
func (a *authority) issue(t *testing.T, template *x509.Certificate) (cert, key []byte, private *ecdsa.PrivateKey) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	signer := a.key
	if signer == nil { // its own
		signer = private
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, signer)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), private
}

func (a *authority) of(t *testing.T, name string) (cert, key []byte) {
	cert, key, _ = a.issue(t, &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name}})
	return cert, key
}

// put replaces files as a program that renews them does.
func put(t *testing.T, dir string, texts map[string][]byte) {
	for name, text := range texts {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path+".new", text, 0o600))
		require.NoError(t, os.Rename(path+".new", path))
	}
}

// A connection that is made anew uses the certificates as they are on the disk by then, and no server gets by with one of an authority that
// is no longer there.
func TestCertificatesAreRenewed(t *testing.T) {
	first, second, dir := newAuthority(t), newAuthority(t), t.TempDir()
	now := &atomic.Pointer[tls.Config]{}
	use := func(server, clients *authority, name string) {
		cert, key := server.of(t, name)
		pair, err := tls.X509KeyPair(cert, key)
		require.NoError(t, err)
		pool := x509.NewCertPool()
		pool.AddCert(parsed(t, clients.pem))
		now.Store(&tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, NextProtos: []string{"h2"}})
	}
	renew := func(server, clients *authority) {
		cert, key := clients.of(t, "worker")
		put(t, dir, map[string][]byte{"ca.pem": server.pem, "cert.pem": cert, "key.pem": key})
	}
	use(first, first, "temporal.example")
	renew(first, first)
	address := startFrontend(t, &frontend{}, grpc.Creds(credentials.NewTLS(&tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load(), nil },
	})))
	opts, _, err := optionsOf(t, environment{}, "--address", address, "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"),
		"--tls-ca", filepath.Join(dir, "ca.pem"), "--tls-server-name", "temporal.example")
	require.NoError(t, err)
	opts.Logger = silentLogger()
	connect := func() error {
		c, err := dial(t.Context(), opts)
		if err == nil {
			c.Close()
		}
		return err
	}
	require.NoError(t, connect())
	use(second, second, "temporal.example")
	require.ErrorContains(t, connect(), "no TLS connection")
	renew(second, second)
	require.NoError(t, connect())
	put(t, dir, map[string][]byte{"ca.pem": []byte("half"), "key.pem": []byte("half")})
	require.NoError(t, connect(), "files that are being written leave the last ones")
	use(second, second, "other.example")
	require.ErrorContains(t, connect(), "no TLS connection", "a certificate of another server")
}

func parsed(t *testing.T, text []byte) *x509.Certificate {
	block, _ := pem.Decode(text)
	cert, err := x509.ParseCertificate(block.Bytes)
	require.NoError(t, err)
	return cert
}

// A call has the API key that its file has by then.
func TestAPIKeyIsRenewed(t *testing.T) {
	ca, dir := newAuthority(t), t.TempDir()
	cert, key := ca.of(t, "temporal.example")
	pair, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	put(t, dir, map[string][]byte{"ca.pem": ca.pem, "api.key": []byte("key-one\n")})
	server := &frontend{key: "key-one"}
	creds := credentials.NewServerTLSFromCert(&pair)
	opts, a, err := optionsOf(t, environment{}, "--address", startFrontend(t, server, grpc.Creds(creds)), "--api-key-file", filepath.Join(dir, "api.key"),
		"--tls-ca", filepath.Join(dir, "ca.pem"), "--tls-server-name", "temporal.example")
	require.NoError(t, err)
	opts.Logger = silentLogger()
	c, err := dial(t.Context(), opts)
	require.NoError(t, err)
	defer c.Close()
	ask := func(c client.Client) error {
		_, err := c.WorkflowService().GetSystemInfo(t.Context(), &workflowservice.GetSystemInfoRequest{})
		return err
	}
	require.NoError(t, ask(c))
	server.set("key-two")
	require.Error(t, ask(c))
	put(t, dir, map[string][]byte{"api.key": []byte("key-two\n")})
	require.NoError(t, ask(c))
	require.NotContains(t, a.secrets.Redact("key-two"), "key-two")
	put(t, dir, map[string][]byte{"api.key": nil})
	require.NoError(t, ask(c), "a file that is being written leaves the last key")
}
