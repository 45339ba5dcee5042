package access

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func with(header, value string) *http.Request {
	r := httptest.NewRequest("GET", "/threads", nil)
	if header != "" {
		r.Header.Set(header, value)
	}
	return r
}

// A key is known by what the file keeps of it, which is not the key; one that is taken out is good no more.
func TestKeys(t *testing.T) {
	ann, secret, err := NewKey(Identity{Name: "ann"}, time.Now())
	require.NoError(t, err)
	root, rootSecret, err := NewKey(Identity{Name: "root", Permissions: []string{Admin}}, time.Now())
	require.NoError(t, err)
	text := KeysText([]Key{ann, root})
	require.NotContains(t, string(text), secret[len(keyPrefix)+9:])
	file := filepath.Join(t.TempDir(), "keys")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	keys, err := KeysIn(file)
	require.NoError(t, err)
	for _, r := range []*http.Request{with("X-Api-Key", secret), with("Authorization", "bearer "+secret)} {
		who, err := keys.Authenticate(r)
		require.NoError(t, err)
		require.Equal(t, "ann", who.Name)
		require.False(t, who.Can(Admin))
	}
	both := with("Authorization", "Bearer "+secret)
	both.Header.Set("X-Api-Key", "lsv2_of_another_service")
	who, err := keys.Authenticate(both)
	require.NoError(t, err, "clients send the key of another service along")
	require.Equal(t, "ann", who.Name)
	both.Header.Set("Authorization", "Bearer x.y.z")
	_, err = keys.Authenticate(both)
	require.ErrorIs(t, err, ErrNoCredential, "it is for who knows tokens to say")
	both.Header.Set("X-Api-Key", secret+"0")
	_, err = keys.Authenticate(both)
	require.ErrorIs(t, err, ErrUnauthenticated)
	who, err = keys.Authenticate(with("X-Api-Key", rootSecret))
	require.NoError(t, err)
	require.True(t, who.Can(Admin))
	for _, bad := range []string{"x", keyPrefix, secret + "0", secret[:len(secret)-1], keyPrefix + ann.ID, strings.Replace(rootSecret, root.ID, ann.ID, 1), strings.ToUpper(secret)} {
		_, err := keys.Authenticate(with("X-Api-Key", bad))
		require.ErrorIs(t, err, ErrUnauthenticated)
		require.NotContains(t, err.Error(), bad)
	}
	for _, none := range []*http.Request{with("", ""), with("Authorization", "Basic "+secret), with("Authorization", "Bearer x.y.z"), with("Authorization", secret)} {
		_, err := keys.Authenticate(none)
		require.ErrorIs(t, err, ErrNoCredential)
	}
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600)) // the key itself, by mistake
	require.Eventually(t, func() bool { return keys.Problem() != nil }, time.Minute, 10*time.Millisecond)
	require.NotContains(t, keys.Problem().Error(), secret)
	_, err = keys.Authenticate(with("X-Api-Key", secret))
	require.Error(t, err, "no key is good while the file is broken")
	require.NotErrorIs(t, err, ErrUnauthenticated, "the server cannot know")
	require.NoError(t, os.WriteFile(file, KeysText([]Key{root}), 0o600))
	require.Eventually(t, func() bool {
		_, err := keys.Authenticate(with("X-Api-Key", secret))
		return errors.Is(err, ErrUnauthenticated)
	},
		time.Minute, 10*time.Millisecond)
}

func TestBadFilesOfKeys(t *testing.T) {
	good, _, err := NewKey(Identity{Name: "ann"}, time.Now())
	require.NoError(t, err)
	line := strings.TrimPrefix(string(KeysText([]Key{good})), keysHead)
	for _, bad := range []string{"", keysHead, line + line, "a b c", strings.Replace(line, "sha256:", "md5:", 1), strings.Replace(line, "sha256:", "sha256:0", 1),
		strings.Replace(line, good.Made.Format(time.RFC3339), "today", 1)} {
		file := filepath.Join(t.TempDir(), "keys")
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
		_, err := KeysIn(file)
		require.Error(t, err, bad)
	}
	_, err = KeysIn(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = KeysIn(t.TempDir())
	require.ErrorContains(t, err, "directory")
	for _, name := range []string{"", "a b", "#ann", "a\nb", strings.Repeat("x", 201)} {
		_, _, err := NewKey(Identity{Name: name}, time.Now())
		require.Error(t, err, name)
	}
}

func TestGrants(t *testing.T) {
	has := Metadata{"owner": json.RawMessage(`"ann"`), "team": json.RawMessage(`["a","b"]`), "level": json.RawMessage(`3`), "at": json.RawMessage(`{"x":1}`)}
	for _, c := range []struct {
		filter map[string]any
		finds  bool
	}{
		{nil, true},
		{map[string]any{"owner": "ann"}, true},
		{map[string]any{"owner": "bob"}, false},
		{map[string]any{"owner": "ann", "level": 3}, true},
		{map[string]any{"owner": "ann", "level": 4}, false},
		{map[string]any{"none": nil}, false},
		{map[string]any{"owner": map[string]any{"$eq": "ann"}}, true},
		{map[string]any{"team": map[string]any{"$contains": "b"}}, true},
		{map[string]any{"team": map[string]any{"$contains": "c"}}, false},
		{map[string]any{"owner": map[string]any{"$contains": "ann"}}, false},
		{map[string]any{"owner": map[string]any{"$like": "a"}}, false},
		{map[string]any{"at": map[string]any{}}, false},
		{map[string]any{"owner": func() {}}, false},
	} {
		require.Equal(t, c.finds, Grant{Filter: c.filter}.Finds(has), "%v", c.filter)
	}
	set, err := Grant{Metadata: map[string]any{"owner": "bob"}}.Set(has)
	require.NoError(t, err)
	require.Equal(t, `"bob"`, string(set["owner"]))
	require.Equal(t, `"ann"`, string(has["owner"]))
}

func TestOwn(t *testing.T) {
	ann, root := Identity{Name: "ann"}, Identity{Name: "root", Permissions: []string{Admin}}
	of := func(owner string) Metadata { return Metadata{Owner: json.RawMessage(`"` + owner + `"`)} }
	granted := func(who Identity, do Action, on Resource) (Grant, bool) {
		g, err := Own(t.Context(), who, do, on)
		if err != nil {
			require.ErrorIs(t, err, ErrForbidden)
		}
		return g, err == nil && g.Finds(on.Metadata)
	}
	_, ok := granted(ann, Read, Resource{Kind: Threads, Metadata: of("bob")})
	require.False(t, ok)
	_, ok = granted(ann, Read, Resource{Kind: Threads})
	require.False(t, ok, "what is nobody's is an admin's")
	g, _ := granted(ann, Create, Resource{Kind: Threads, Metadata: of("bob")})
	require.Equal(t, "ann", g.Metadata[Owner], "nobody makes things of others")
	_, ok = granted(root, Update, Resource{Kind: Threads, Metadata: of("bob")})
	require.True(t, ok)
	g, _ = granted(root, Create, Resource{Kind: Threads, Metadata: of("bob")})
	require.Empty(t, g.Metadata)
	g, _ = granted(root, Create, Resource{Kind: Threads})
	require.Equal(t, "root", g.Metadata[Owner])
	_, ok = granted(ann, Read, Resource{Kind: Assistants, System: true})
	require.True(t, ok)
	_, ok = granted(ann, Update, Resource{Kind: Assistants, System: true})
	require.False(t, ok)
	_, ok = granted(root, Update, Resource{Kind: Assistants, System: true})
	require.True(t, ok)
}

// Items are those of whose name their namespace begins with, and no name begins another one.
func TestOwnItems(t *testing.T) {
	for namespace, mine := range map[string]bool{`["ann"]`: true, `["ann","x"]`: true, `["anna"]`: false, `["bob","ann"]`: false, `[]`: false, `null`: false, `["*"]`: false} {
		item := Resource{Kind: Store, Metadata: Metadata{Namespace: json.RawMessage(namespace)}}
		_, err := Own(t.Context(), Identity{Name: "ann"}, Search, item)
		require.Equal(t, mine, err == nil, namespace)
		_, err = Own(t.Context(), Identity{Name: "root", Permissions: []string{Admin}}, Search, item)
		require.NoError(t, err)
	}
}
