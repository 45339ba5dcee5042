package access_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"superstep.dev/serve/access"
)

// What a team makes is the team's: give such a function to serve.Config, beside the Authenticate that says which team somebody is of.
func ExampleAuthorize() {
	var authorize access.Authorize = func(_ context.Context, who access.Identity, do access.Action, on access.Resource) (access.Grant, error) {
		if do == access.Delete && !who.Can("cleaner") {
			return access.Grant{}, fmt.Errorf("%w: only cleaners delete %s", access.ErrForbidden, on.Kind)
		}
		team := who.Claims["team"]
		return access.Grant{Filter: map[string]any{"team": team}, Metadata: map[string]any{"team": team}}, nil
	}
	ann := access.Identity{Name: "ann", Claims: map[string]any{"team": "red"}}
	of := func(team string) access.Resource {
		return access.Resource{Kind: access.Threads, Metadata: access.Metadata{"team": json.RawMessage(team)}}
	}
	for _, thread := range []access.Resource{of(`"red"`), of(`"blue"`)} {
		grant, err := authorize(context.Background(), ann, access.Read, thread)
		fmt.Println(grant.Finds(thread.Metadata), err)
	}
	_, err := authorize(context.Background(), ann, access.Delete, of(`"red"`))
	fmt.Println(err)
	// Output:
	// true <nil>
	// false <nil>
	// that is not allowed: only cleaners delete threads
}

// A key is shown once; the file has what it is known by.
func ExampleKeysIn() {
	dir, err := os.MkdirTemp("", "keys")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	key, secret, err := access.NewKey(access.Identity{Name: "ann"}, time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	file := filepath.Join(dir, "clients.keys")
	if err := os.WriteFile(file, access.KeysText([]access.Key{key}), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	keys, err := access.KeysIn(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	r := httptest.NewRequest(http.MethodGet, "/threads", nil)
	_, err = keys.Authenticate(r)
	fmt.Println(err)
	r.Header.Set("X-Api-Key", secret)
	who, err := keys.Authenticate(r)
	fmt.Println(who.Name, err)
	// Output:
	// the request has no credential
	// ann <nil>
}
