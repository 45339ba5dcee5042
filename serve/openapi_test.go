package serve

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
)

// bare is a server that asks nothing of Temporal.
func bare(cfg Config) *Server {
	s := &Server{cfg: cfg, mux: http.NewServeMux(), log: zap.NewNop().Sugar(), callers: newCallers(cfg.Limits.or(cfg.Authenticate != nil))}
	s.handle()
	return s
}

// The description is one of OpenAPI 3.1, by the schema that its authors publish (https://spec.openapis.org/oas/3.1/schema), and what it
// refers to is there.
func TestTheDescriptionIsValid(t *testing.T) {
	d, err := describe((&Server{}).routes())
	require.NoError(t, err)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(text, &tree))

	published, err := os.ReadFile("testdata/openapi-3.1.json")
	require.NoError(t, err)
	var s jsonschema.Schema
	require.NoError(t, json.Unmarshal(published, &s))
	resolved, err := s.Resolve(nil)
	require.NoError(t, err)
	require.NoError(t, resolved.Validate(tree))
	broken, ok := tree.(map[string]any)
	require.True(t, ok)
	broken["openapi"] = 3
	require.Error(t, resolved.Validate(broken), "the schema does check")

	each(tree, func(m map[string]any) {
		if ref, ok := m["$ref"].(string); ok {
			require.Contains(t, d.Components.Schemas, strings.TrimPrefix(ref, schemas))
		}
	})
	// The schemas themselves are JSON Schema, and what they refer to resolves.
	defs, err := json.Marshal(map[string]any{"$defs": d.Components.Schemas, "$ref": "#/$defs/State"})
	require.NoError(t, err)
	var all jsonschema.Schema
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(defs), schemas, "#/$defs/")), &all))
	state, err := all.Resolve(nil)
	require.NoError(t, err)
	var empty any
	require.NoError(t, json.Unmarshal(raw(nothing()), &empty))
	require.NoError(t, state.Validate(empty))
	require.Error(t, state.Validate(map[string]any{"values": 1}))
}

// each calls f for all objects of a value.
func each(v any, f func(map[string]any)) {
	switch v := v.(type) {
	case map[string]any:
		f(v)
		for _, below := range v {
			each(below, f)
		}
	case []any:
		for _, below := range v {
			each(below, f)
		}
	}
}

// All that the handler answers is in the description, and nothing else: who changes the routes changes both.
func TestTheDescriptionHasEveryRoute(t *testing.T) {
	s := bare(Config{})
	d := meta{s}.described()
	require.NoError(t, s.description.err)
	ids := map[string]bool{}
	patterns := map[string]bool{}
	for _, r := range s.routes() {
		patterns[r.pattern()] = true
		require.Contains(t, contracts, r.pattern(), "say in contract.go what it takes, and what it does to whose things")
		o, ok := d.Paths[r.path][strings.ToLower(r.method)]
		require.True(t, ok, r.pattern())
		require.False(t, ids[o.ID], o.ID)
		ids[o.ID] = true
		_, pattern := s.mux.Handler(httptest.NewRequest(r.method, inPath.ReplaceAllString(r.path, "x"), nil))
		require.Equal(t, r.pattern(), pattern)
		c := contracts[r.pattern()]
		require.True(t, c.open != (len(c.does) > 0), "%s is for everybody, or does something", r.pattern())
		if c.answer == nil && !c.stream && c.status == 0 {
			require.NotEmpty(t, c.text, r.pattern())
		}
	}
	for pattern := range contracts {
		require.True(t, patterns[pattern], "%s is described, and not answered", pattern)
	}
	require.Len(t, ids, len(s.routes()))
}

// The page and the description are served to everybody, and the page asks for nothing from elsewhere.
func TestTheDocumentationPage(t *testing.T) {
	s := bare(Config{})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", path, nil)
		r.Host = "localhost"
		s.ServeHTTP(w, r)
		require.Equal(t, 200, w.Code)
		return w
	}
	page := get("/docs")
	require.Equal(t, "text/html; charset=utf-8", page.Header().Get("Content-Type"))
	require.Equal(t, docsPolicy, page.Header().Get("Content-Security-Policy"))
	body := page.Body.String()
	for _, r := range s.routes() {
		require.Contains(t, body, "<code>"+r.path+"</code> "+strings.ReplaceAll(r.about, "'", "&#39;"), r.pattern())
	}
	require.Contains(t, body, "multitask_strategy")
	for _, outside := range []string{"http://", "https://", "<script", "src=", "@import", "url("} {
		require.NotContains(t, body, outside)
	}
	var d map[string]any
	require.NoError(t, json.Unmarshal(get("/openapi.json").Body.Bytes(), &d))
	require.Equal(t, "3.1.0", d["openapi"])
}
