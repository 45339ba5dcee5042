package cli

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"superstep.dev/thread"
)

// optionsOf puts a connection together as a command line would.
func optionsOf(t *testing.T, env environment, args ...string) (client.Options, *app, error) {
	a, _, _ := testApp(t, &script{}, "")
	if _, ok := env["TEMPORAL_CONFIG_FILE"]; !ok && env != nil {
		env["TEMPORAL_CONFIG_FILE"] = filepath.Join(t.TempDir(), "none.toml")
	}
	if env != nil {
		a.env = env
	}
	var (
		opts client.Options
		err  error
	)
	root := a.rootCommand()
	probe := a.build(command{name: "probe", run: func(context.Context, []string) error {
		opts, err = a.clientOptions()
		return nil
	}})
	root.AddCommand(probe)
	root.SetArgs(append([]string{"probe"}, args...))
	require.NoError(t, root.Execute())
	return opts, a, err
}

// file writes a file of the test's own and returns its path.
func file(t *testing.T, name, text string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

const configText = `
[profile.default]
address = "file.example:1"
namespace = "file"

[profile.other]
address = "other.example:2"
api_key = "other-s3cr3t"
`

func TestConnectionPrecedence(t *testing.T) {
	config := file(t, "temporal.toml", configText)
	for name, c := range map[string]struct {
		env                environment
		args               []string
		address, namespace string
	}{
		"nothing said": {nil, nil, "127.0.0.1:7233", "default"},
		"file":         {environment{"TEMPORAL_CONFIG_FILE": config}, nil, "file.example:1", "file"},
		"file by flag": {environment{}, []string{"--config", config}, "file.example:1", "file"},
		"environment over file": {
			environment{"TEMPORAL_CONFIG_FILE": config, "TEMPORAL_ADDRESS": "env.example:3"}, nil, "env.example:3", "file",
		},
		"flag over environment": {
			environment{"TEMPORAL_CONFIG_FILE": config, "TEMPORAL_ADDRESS": "env.example:3", "TEMPORAL_NAMESPACE": "env"},
			[]string{"--address", "flag.example:4"}, "flag.example:4", "env",
		},
		"profile": {
			environment{"TEMPORAL_CONFIG_FILE": config}, []string{"--profile", "other"}, "other.example:2", "default",
		},
		"profile by environment": {
			environment{"TEMPORAL_CONFIG_FILE": config, "TEMPORAL_PROFILE": "other"}, nil, "other.example:2", "default",
		},
		"flag over profile by environment": {
			environment{"TEMPORAL_CONFIG_FILE": config, "TEMPORAL_PROFILE": "other"}, []string{"--profile", "default"},
			"file.example:1", "file",
		},
		"empty environment": {environment{"TEMPORAL_ADDRESS": ""}, nil, "127.0.0.1:7233", "default"},
	} {
		t.Run(name, func(t *testing.T) {
			opts, _, err := optionsOf(t, c.env, c.args...)
			require.NoError(t, err)
			require.Equal(t, c.address, opts.HostPort)
			require.Equal(t, c.namespace, opts.Namespace)
		})
	}
}

func TestConnectionSecrets(t *testing.T) {
	_, a, err := optionsOf(t, environment{"TEMPORAL_API_KEY": "env-s3cr3t"}, "--api-key-file", file(t, "key", "file-s3cr3t\n"))
	require.NoError(t, err)
	require.Equal(t, "[redacted] env-s3cr3t", a.secrets.Redact("file-s3cr3t env-s3cr3t"), "the flag wins, and a line's end is no part of a key")

	opts, a, err := optionsOf(t, environment{
		"TEMPORAL_API_KEY": "k1", "TEMPORAL_CODEC_AUTH": "k2", "TEMPORAL_GRPC_META_authorization": "k3", "TEMPORAL_GRPC_META_x": "v",
	})
	require.NoError(t, err)
	require.Equal(t, "[redacted] [redacted] [redacted] v", a.secrets.Redact("k1 k2 k3 v"))
	require.NotNil(t, opts.ConnectionOptions.TLS, "an API key never travels in the open")
}

// TestConnectionErrorsTellNoSecrets: a configuration that cannot be read is described, not quoted.
func TestConnectionErrorsTellNoSecrets(t *testing.T) {
	for name, text := range map[string]string{
		"quotes forgotten": "[profile.default]\naddress = \"a:1\"\napi_key = s3cr3t\n",
		"line broken":      "[profile.default]\napi_key = \"s3cr3t\nmore\"\n",
		"wrong type":       "[profile.default]\ntls = \"s3cr3t\"\n",
		"twice":            "[profile.default]\napi_key = \"s3cr3t\"\napi_key = \"s3cr3t2\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := optionsOf(t, environment{}, "--config", file(t, "temporal.toml", text))
			require.ErrorIs(t, err, thread.ErrBadInput)
			require.NotContains(t, err.Error(), "s3cr3t")
			require.Contains(t, err.Error(), "configuration file")
		})
	}
}

func TestConnectionRefusals(t *testing.T) {
	config := file(t, "temporal.toml", configText)
	cert, key := certificate(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no such profile":     {[]string{"--config", config, "--profile", "mine"}, "unable to find profile mine"},
		"no such config":      {[]string{"--config", config + ".old"}, "no such file"},
		"no port":             {[]string{"--address", "localhost"}, "is not HOST:PORT"},
		"no host":             {[]string{"--address", ":7233"}, "is not HOST:PORT"},
		"key without cert":    {[]string{"--tls-key", key}, "go together"},
		"no such certificate": {[]string{"--tls-cert", cert + "x", "--tls-key", key}, "no such file"},
		"not an authority":    {[]string{"--tls-ca", config}, "CA"},
		"no such key file":    {[]string{"--api-key-file", config + "x"}, "no such file"},
		"two keys":            {[]string{"--api-key-file", file(t, "keys", "one\ntwo")}, "one API key"},
		"no key":              {[]string{"--api-key-file", file(t, "none", "\n")}, "one API key"},
		"not a key":           {[]string{"--api-key-file", file(t, "big", string(make([]byte, 20<<10)))}, "one API key"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := optionsOf(t, environment{}, c.args...)
			require.ErrorIs(t, err, thread.ErrBadInput)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestConnectionTLS(t *testing.T) {
	cert, key := certificate(t)
	opts, _, err := optionsOf(t, environment{"TEMPORAL_TLS": "false", "TEMPORAL_TLS_CLIENT_CERT_DATA": "old"},
		"--tls-cert", cert, "--tls-key", key, "--tls-ca", cert, "--tls-server-name", "temporal.example")
	require.NoError(t, err)
	tls := opts.ConnectionOptions.TLS
	require.False(t, opts.ConnectionOptions.TLSDisabled)
	require.Equal(t, "temporal.example", tls.ServerName)
	pair, err := tls.GetClientCertificate(nil)
	require.NoError(t, err)
	require.NotNil(t, pair.PrivateKey)
	require.NotNil(t, tls.VerifyConnection)
}

// certificate writes a self-signed certificate and its key.
func certificate(t *testing.T) (cert, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "temporal.example"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"temporal.example"},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return file(t, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		file(t, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
}

// TestConnectionStorage: the option wins over the environment, the client gets what it names, and what cannot be a directory is refused.
func TestConnectionStorage(t *testing.T) {
	t.Parallel()
	named, other := filepath.Join(t.TempDir(), "named"), filepath.Join(t.TempDir(), "other")
	opts, a, err := optionsOf(t, environment{"SUPERSTEP_STORAGE": other}, "--storage", named)
	require.NoError(t, err)
	require.Equal(t, named, a.storage.Where())
	require.Len(t, opts.ExternalStorage.Drivers, 1)
	require.NoDirExists(t, other)
	_, a, err = optionsOf(t, environment{"SUPERSTEP_STORAGE": other})
	require.NoError(t, err)
	require.Equal(t, other, a.storage.Where())
	opts, a, err = optionsOf(t, environment{})
	require.NoError(t, err)
	require.Nil(t, a.storage)
	require.Empty(t, opts.ExternalStorage.Drivers)
	_, _, err = optionsOf(t, environment{}, "--storage", file(t, "file", "no directory"))
	require.ErrorContains(t, err, "--storage: ")
	_, code := exitOf(err)
	require.Equal(t, ExitUnreachable, code, "it may be there again")
	for _, address := range []string{"s3://key:a-secret@values", "s3://values?endpoint=http://key:a-secret@127.0.0.1:1"} {
		_, _, err = optionsOf(t, environment{}, "--storage", address)
		require.ErrorContains(t, err, "--storage: an address of a bucket has no credentials")
		require.NotContains(t, err.Error(), "a-secret")
	}
}
