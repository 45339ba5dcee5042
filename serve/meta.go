package serve

import (
	"cmp"
	"html/template"
	"net/http"
	"regexp"
	"strings"
)

// meta is what a server says of itself.
type meta struct{ *Server }

func (s meta) routes() []route {
	return []route{
		{"GET", "/ok", "Whether the server answers", s.ok},
		{"GET", "/info", "What the server is and can do", s.info},
		{"GET", "/openapi.json", "This description", s.openAPI},
		{"GET", "/docs", "This description for people", s.docs},
	}
}

func (s meta) ok(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, map[string]any{"ok": true, "services": map[string]any{}})
	return nil
}

// protocolVersion is the version of the agent server whose protocol this is: clients look at it.
const protocolVersion = "0.16.7"

func (s meta) info(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, map[string]any{"version": protocolVersion, "langgraph_py_version": "1.2.22",
		"flags": map[string]bool{"assistants": true, "crons": true, "langsmith": false, "langsmith_tracing_replicas": false},
		"host":  map[string]string{"kind": "superstep", "version": cmp.Or(s.cfg.Version, "devel")}})
	return nil
}

var inPath = regexp.MustCompile(`\{([a-z_]+)\}`)

// openAPI describes the paths that there are.
func (s meta) openAPI(w http.ResponseWriter, _ *http.Request) error {
	paths := map[string]map[string]any{}
	for _, r := range s.Server.routes() {
		if paths[r.path] == nil {
			paths[r.path] = map[string]any{}
		}
		params := []any{}
		for _, m := range inPath.FindAllStringSubmatch(r.path, -1) {
			params = append(params, map[string]any{"name": m[1], "in": "path", "required": true, "schema": map[string]string{"type": "string"}})
		}
		paths[r.path][strings.ToLower(r.method)] = map[string]any{"summary": r.about, "parameters": params,
			"responses": map[string]any{"default": map[string]string{"description": "JSON, or a refusal with a detail"}}}
	}
	answer(w, http.StatusOK, map[string]any{"openapi": "3.1.0", "info": map[string]string{"title": "Superstep", "version": protocolVersion}, "paths": paths})
	return nil
}

var docsPage = template.Must(template.New("docs").Parse(`<!doctype html><meta charset="utf-8"><title>Superstep</title>
<h1>Superstep</h1><p>The protocol of LangGraph's agent server over durable threads. <a href="openapi.json">openapi.json</a></p>
<table>{{range .}}<tr><td>{{.Method}}<td><code>{{.Path}}</code><td>{{.About}}{{end}}</table>
`))

func (s meta) docs(w http.ResponseWriter, _ *http.Request) error {
	type line struct{ Method, Path, About string }
	var lines []line
	for _, r := range s.Server.routes() {
		lines = append(lines, line{r.method, r.path, r.about})
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	return docsPage.Execute(w, lines)
}
