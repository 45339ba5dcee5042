package cli

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.uber.org/zap"

	"superstep.dev/serve"
	"superstep.dev/serve/access"
)

// Where nobody is asked who they are only this machine may reach the server, whatever name or address is asked for.
func TestServeListensOnLoopbackOnly(t *testing.T) {
	for address, allowed := range map[string]bool{
		"127.0.0.1:2024": true, "127.9.9.9:0": true, "localhost:2024": true, "[::1]:2024": true,
		"0.0.0.0:2024": false, ":2024": false, "[::]:2024": false, "10.0.0.7:2024": false, "example.org:2024": false,
		"localhost.example.org:2024": false, "2024": false, "127.0.0.1": false, "": false,
	} {
		a, _, stderr := testApp(t, &script{}, "{}")
		if !allowed {
			require.Equal(t, ExitUsage, a.run(t.Context(), []string{"serve", "--listen", address}), address)
			require.Contains(t, stderr.String(), "--listen", address)
			continue
		}
		require.NoError(t, checkListen(address, false), address)
	}
}

// The examples of help are command lines that the command takes.
func TestServeExamples(t *testing.T) {
	a, _, _ := testApp(t, &script{}, "{}")
	cmd := operating{a}.serveCommand()
	for line := range strings.Lines(cmd.Example) {
		words := strings.Fields(line)
		require.Equal(t, []string{"superstep", "serve"}, words[:2])
		require.NoError(t, cmd.ParseFlags(words[2:]), line)
	}
}

// A key is shown once; the file has what it is known by, and gives up none that is taken away.
func TestClientKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	run := func(code int, args ...string) string {
		a, stdout, stderr := testApp(t, &script{}, "")
		require.Equal(t, code, a.run(t.Context(), append([]string{"serve", "keys"}, args...)), stderr)
		return stdout.String() + stderr.String()
	}
	const file = "--client-keys=clients.keys"
	require.Contains(t, run(ExitUsage, "new", "ann"), envClientKeys)
	secret := strings.TrimSpace(run(ExitOK, "new", "ann", file))
	var admin newClientKey
	require.NoError(t, json.Unmarshal([]byte(run(ExitOK, "new", "root", file, "--admin", "-o", "json")), &admin))
	text, err := os.ReadFile("clients.keys")
	require.NoError(t, err)
	require.NotContains(t, string(text), secret)
	info, err := os.Stat("clients.keys")
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	for _, says := range []string{"ann", "root", access.Admin, admin.ID} {
		require.Contains(t, run(ExitOK, "list", file), says)
	}
	keys, err := access.KeysIn("clients.keys")
	require.NoError(t, err)
	as := func(secret string) (access.Identity, error) {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("X-Api-Key", secret)
		return keys.Authenticate(r)
	}
	who, err := as(secret)
	require.NoError(t, err)
	require.Equal(t, "ann", who.Name)
	who, err = as(admin.Key)
	require.NoError(t, err)
	require.True(t, who.Can(access.Admin))
	for _, bad := range [][]string{{"remove", "none", file}, {"new", "a b", file}, {"list", "--client-keys=none"}, {"new"}, {"burn"}} {
		run(ExitUsage, bad...)
	}
	require.NotContains(t, run(ExitOK, "remove", admin.ID, file), "root")
	require.Contains(t, run(ExitOK, "list", file), "ann")
}

// Elsewhere than on this machine a server begins only when it knows who asks: by a file of keys, by tokens, or by the program itself.
func TestServeWantsToKnowWhoAsks(t *testing.T) {
	t.Chdir(t.TempDir())
	a, _, _ := testApp(t, &script{}, "")
	o := operating{a}
	way, done, err := o.authentication(serveFlags{}, zap.NewNop())
	require.NoError(t, err)
	require.Nil(t, way)
	done()
	k, key, err := access.NewKey(access.Identity{Name: "ann"}, a.Now())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("clients.keys", access.KeysText([]access.Key{k}), 0o600))
	way, done, err = o.authentication(serveFlags{clientKeys: "clients.keys", issuer: "https://id.example.com", audience: []string{"agents"}}, zap.NewNop())
	require.NoError(t, err)
	defer done()
	r := httptest.NewRequest("GET", "/", nil)
	_, err = way(r)
	require.ErrorIs(t, err, access.ErrNoCredential)
	r.Header.Set("Authorization", "Bearer "+key)
	who, err := way(r)
	require.NoError(t, err)
	require.Equal(t, "ann", who.Name)
	for _, bad := range [][]string{
		{"--client-keys", "none"}, {"--client-keys", os.DevNull}, {"--jwt-issuer", "https://id.example.com"}, {"--jwt-audience", "agents"},
		{"--jwt-issuer", "http://id.example.com", "--jwt-audience", "agents"}, {"--jwt-keys", "https://id.example.com/keys"},
		{"--jwt-issuer", "https://user:pass@id.example.com", "--jwt-audience", "agents"},
		{"--rate", "-2"}, {"--rate", "NaN"}, {"--rate", "+Inf"}, {"--most-open", "-1"},
		{"--origin", "foo"}, {"--origin", "https://chat.example/"}, {"--origin", "null"}, {"--origin", "https://chat.example,chat.example"},
	} {
		a, _, stderr := testApp(t, &script{}, "")
		require.Equal(t, ExitUsage, a.run(t.Context(), append([]string{"serve"}, bad...)), "%v", bad)
		require.Contains(t, stderr.String(), bad[0][:6])
		require.NotContains(t, stderr.String(), "pass@")
	}
	// A program that knows who asks may listen anywhere: it gets as far as the server, which is not there.
	b, _, stderr := testApp(t, &script{}, "")
	b.serving = func(c *serve.Config) { c.Authenticate = way }
	b.backend.dial = func(context.Context, client.Options) (client.Client, error) { return nil, context.Canceled }
	require.NotEqual(t, ExitUsage, b.run(t.Context(), []string{"serve", "--listen", "0.0.0.0:0", "--rate", "-1", "--origin", "*,HTTPS://chat.example:8443"}), stderr)
	require.NotContains(t, stderr.String(), "--listen")
	require.NoError(t, checkListen("0.0.0.0:2024", true))
}
