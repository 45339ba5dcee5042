package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"superstep.dev/store"
	"superstep.dev/store/sqlite"
)

// storing runs commands on the store of a file.
type storing struct {
	*testing.T
	place string
}

func (s storing) run(stdin string, args ...string) (code int, stdout, stderr string) {
	s.Helper()
	a, out, errs := testApp(s.T, &script{}, stdin)
	code = a.run(s.Context(), append(append([]string{"store"}, args...), "--store", s.place))
	return code, out.String(), errs.String()
}

// says runs a command that succeeds.
func (s storing) says(args ...string) string {
	s.Helper()
	code, out, errs := s.run("", args...)
	require.Equal(s, ExitOK, code, errs)
	return out
}

func TestStoreCommands(t *testing.T) {
	s := storing{t, filepath.Join(t.TempDir(), "store.db")}
	require.Equal(t, "no items\n", s.says("search"))
	require.Equal(t, "no namespaces\n", s.says("namespaces"))
	require.Equal(t, "put  users.42  preferences\n", s.says("put", "users.42", "preferences", "--value", `{"city":"Berlin","age":33}`))
	code, out, _ := s.run(`{"city":"Rome","text":"`+"\\u001b[2J"+`"}`, "put", "users.7", "preferences", "--value", "-", "-o", "json")
	require.Equal(t, ExitOK, code)
	require.JSONEq(t, `{"event":"put","namespace":["users","7"],"key":"preferences"}`, out)
	for range 2 {
		s.says("put", "users.42", "draft", "--value", `{"n":1}`, "--ttl", "1h", "--id", "d-1")
	}
	var item store.Item
	require.NoError(t, json.Unmarshal([]byte(s.says("get", "users.42", "draft", "-o", "json")), &item))
	require.EqualValues(t, 1, item.Version)
	require.False(t, item.Expires.IsZero())
	shown := s.says("get", "users.7", "preferences")
	require.Contains(t, shown, "namespace  users.7\nkey        preferences\nversion    1\n")
	require.NotContains(t, shown, "\x1b")
	require.NotContains(t, shown, "expires")

	found := s.says("search", "users", "--filter", `{"age":{"$gt":18}}`)
	require.Contains(t, found, `users.42   preferences  1`)
	require.NotContains(t, found, "Rome")
	var hits []store.Hit
	require.NoError(t, json.Unmarshal([]byte(s.says("search", "--limit", "2", "-o", "json")), &hits))
	require.Len(t, hits, 2)
	require.Contains(t, s.says("search", "--limit", "2"), "2 shown; there may be more")
	require.JSONEq(t, `[]`, s.says("search", "nobody", "-o", "json"))
	require.Equal(t, "users.42\nusers.7\n", s.says("namespaces", "--prefix", "users.*"))
	require.JSONEq(t, `[["users"]]`, s.says("namespaces", "--max-depth", "1", "-o", "json"))
	require.Equal(t, "deleted  users.42  draft\n", s.says("delete", "users.42", "draft"))
	code, _, errs := s.run("", "get", "users.42", "draft")
	require.Equal(t, ExitNotFound, code)
	require.Contains(t, errs, `item "draft" of "users.42"`)
}

func TestStoreCommandsRefuse(t *testing.T) {
	s := storing{t, filepath.Join(t.TempDir(), "store.db")}
	for text, args := range map[string][]string{
		"a label of the namespace is empty": {"get", "users..42", "k"},
		"the key is empty":                  {"get", "users", ""},
		"--value is an array":               {"put", "a", "k", "--value", "[1]"},
		"--value is empty":                  {"put", "a", "k"},
		"--ttl -1s is not between":          {"put", "a", "k", "--value", "{}", "--ttl", "-1s"},
		"--limit 0 is not between":          {"search", "--limit", "0"},
		"--offset -1 is not between":        {"search", "--offset", "-1"},
		"is none of $eq":                    {"search", "--filter", `{"a":{"$in":1}}`},
		"only in a store with an Index":     {"search", "--text", "cats"},
		"--max-depth 99 is not between":     {"namespaces", "--max-depth", "99"},
		"a label of the prefix is empty":    {"namespaces", "--prefix", "a..b"},
		`no command "forget" below`:         {"forget"},
		"NAMESPACE and KEY":                 {"get", "users"},
	} {
		code, out, errs := s.run("", args...)
		require.Equal(t, ExitUsage, code, "%v: %s", args, errs)
		require.Empty(t, out)
		if text != `no command "forget" below` && text != "NAMESPACE and KEY" { // other tests hold these texts
			require.Contains(t, errs, text)
		}
	}
	for place, want := range map[string]struct {
		code int
		text string
	}{
		filepath.Join(t.TempDir(), "no", "store.db"): {ExitUnreachable, "cannot be used now"},
		"postgres://u:s3cret@h/x":                    {ExitUsage, "--store has a password"},
		"postgres://h/x?password=s3cret":             {ExitUsage, "--store has a password"},
		"postgres://u@127.0.0.1:1/x":                 {ExitUnreachable, "cannot be used now"},
		"none":                                       {ExitUsage, "there is no store"},
	} {
		code, _, errs := storing{t, place}.run("", "get", "a", "k")
		require.Equal(t, want.code, code, "%s: %s", place, errs)
		require.Contains(t, errs, want.text)
		require.NotContains(t, errs, "s3cret")
	}
}

// TestWhichStore: the flag wins over the environment, and both over what a devserver of this machine says, which alone needs a server.
func TestWhichStore(t *testing.T) {
	dir := t.TempDir()
	put := func(place, key string) {
		s, err := sqlite.Open(place, store.Options{})
		require.NoError(t, err)
		require.NoError(t, s.Put(t.Context(), []string{"a"}, key, map[string]any{}))
		require.NoError(t, s.Close())
	}
	named, other := filepath.Join(dir, "named.db"), filepath.Join(dir, "other.db")
	put(named, "named")
	put(other, "other")
	put(filepath.Join(dir, storeFile), "announced")
	search := func(address string, folder func() (string, error), env string, args ...string) (int, string, string) {
		a, out, errs := testApp(t, &script{}, "")
		if env != "" {
			a.env = environment{envStore: env, "TEMPORAL_CONFIG_FILE": dir + "/none.toml"}
		}
		a.backend.folder = func(_ context.Context, _ client.Client, namespace, key string) (string, error) {
			require.Equal(t, "default/superstep.store", namespace+"/"+key)
			return folder()
		}
		code := a.run(t.Context(), append([]string{"store", "search", "--address", address}, args...))
		return code, out.String(), errs.String()
	}
	says := func(dir string, err error) func() (string, error) { return func() (string, error) { return dir, err } }
	for _, c := range []struct {
		env, want string
		args      []string
	}{{"", "announced", nil}, {other, "other", nil}, {other, "named", []string{"--store", named}}} {
		code, out, errs := search("127.0.0.1:7233", says(dir, nil), c.env, c.args...)
		require.Equal(t, ExitOK, code, errs)
		require.Contains(t, out, c.want)
	}
	code, _, errs := search("127.0.0.1:7233", says("", nil), "")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "there is no store: name one by --store")
	code, _, errs = search("127.0.0.1:7233", says(dir, errors.New("it is another machine's")), "")
	require.Equal(t, ExitUsage, code)
	require.Contains(t, errs, "it is another machine's")
	code, _, errs = search("db.example:7233", says(dir, nil), "")
	require.Equal(t, ExitUsage, code, "a server of another machine is not asked")
	require.True(t, strings.Contains(errs, "there is no store"), errs)
}

// byLength embeds texts by how long they are.
type byLength struct{}

func (byLength) Embed(_ context.Context, texts []string) ([][]float32, error) {
	var out [][]float32
	for _, text := range texts {
		out = append(out, []float32{float32(len(text)), 1})
	}
	return out, nil
}

// TestIndexOfAProgram: a program's commands embed what they write, and find it by meaning.
func TestIndexOfAProgram(t *testing.T) {
	place := filepath.Join(t.TempDir(), "store.db")
	run := func(args ...string) string {
		t.Helper()
		a, out, errs := testApp(t, &script{}, "")
		a.index = &store.Index{Embedder: byLength{}, Dims: 2, Fields: []string{"text"}}
		require.Equal(t, ExitOK, a.run(t.Context(), append(append([]string{"store"}, args...), "--store", place)), errs)
		return out.String()
	}
	run("put", "a", "short", "--value", `{"text":"x"}`)
	run("put", "a", "long", "--value", `{"text":"xxxxxxxxxxxxxxxxxxxx"}`)
	var hits []store.Hit
	require.NoError(t, json.Unmarshal([]byte(run("search", "a", "--text", "y", "-o", "json")), &hits))
	require.Equal(t, "short", hits[0].Key)
	require.InDelta(t, 1, *hits[0].Score, 1e-6)
}
