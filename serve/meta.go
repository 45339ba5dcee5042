package serve

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
)

// meta is what a server says of itself, to everybody: nothing of it is anybody's.
type meta struct{ *Server }

func (s meta) routes() []route {
	return []route{
		{"GET", "/ok", "Whether the server answers", s.ok},
		{"GET", "/info", "What the server is and can do", s.info},
		{"GET", "/metrics", "How many requests are open, for Prometheus", s.metrics},
		{"GET", "/openapi.json", "This description", s.openAPI},
		{"GET", "/docs", "This description for people", s.docs},
	}
}

type okOut struct {
	OK       bool     `json:"ok"`
	Services struct{} `json:"services"`
}

func (s meta) ok(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, okOut{OK: true})
	return nil
}

type infoOut struct {
	Version string          `json:"version"`
	Library string          `json:"langgraph_py_version"`
	Flags   map[string]bool `json:"flags"`
	Host    hostOut         `json:"host"`
}

type hostOut struct {
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

func (s meta) info(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, infoOut{protocolVersion, libraryVersion,
		map[string]bool{"assistants": true, "crons": true, "langsmith": false, "langsmith_tracing_replicas": false},
		hostOut{"superstep", cmp.Or(s.cfg.Version, "devel")}})
	return nil
}

// metrics tells how much of what it may have open the server has, as Prometheus reads it, or as JSON.
func (s meta) metrics(w http.ResponseWriter, r *http.Request) error {
	open, most := s.callers.open.Load(), s.callers.limits.OpenAll
	if r.URL.Query().Get("format") == "json" {
		answer(w, http.StatusOK, map[string]any{"requests_open": open, "requests_open_most": most})
		return nil
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := fmt.Fprintf(w, "# HELP superstep_serve_requests_open Requests that are open, streams among them.\n"+
		"# TYPE superstep_serve_requests_open gauge\nsuperstep_serve_requests_open %d\n"+
		"# HELP superstep_serve_requests_open_most How many may be open.\n"+
		"# TYPE superstep_serve_requests_open_most gauge\nsuperstep_serve_requests_open_most %d\n", open, most)
	return err
}

func (s meta) openAPI(w http.ResponseWriter, _ *http.Request) error {
	answer(w, http.StatusOK, s.described())
	return nil
}

// docsPage shows the description. It asks for nothing but itself, and its policy lets it ask for nothing.
var docsPage = template.Must(template.New("docs").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Superstep</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color-scheme: light dark }
code, pre { font: 14px/1.5 ui-monospace, monospace } pre { overflow-x: auto; max-height: 30rem } h2 { margin-top: 2rem }
summary { cursor: pointer } summary code:first-child { display: inline-block; min-width: 4.5rem } details { border-top: 1px solid #8884; padding: .3rem 0 }
</style>
<h1>Superstep</h1>
<p>The protocol of LangGraph's agent server over durable threads. For programs: <a href="openapi.json">openapi.json</a>.</p>
<p>{{.Who}}</p>
{{range .Groups}}<h2>{{.Name}}</h2>
{{range .Paths}}<details><summary><code>{{.Method}}</code> <code>{{.Path}}</code> {{.About}}</summary>
{{if .Query}}<p>Query: {{range .Query}}<code>{{.}}</code> {{end}}</p>{{end}}
{{if .Body}}<p>Body:</p><pre>{{.Body}}</pre>{{end}}
<p>Answer: {{.Status}}{{if .Stream}}, server-sent events{{end}}</p>{{if .Answer}}<pre>{{.Answer}}</pre>{{end}}
</details>
{{end}}{{end}}</html>
`))

// docsPolicy lets the page have its own style, and nothing else: no script, and no address.
const docsPolicy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s meta) docs(w http.ResponseWriter, _ *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", docsPolicy)
	h.Set("Referrer-Policy", "no-referrer")
	return docsPage.Execute(w, s.page())
}
