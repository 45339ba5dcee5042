// Package page is a page for the chat example, in plain HTML, CSS and JavaScript: it uses fetch and server-sent events, needs no build and
// loads nothing from elsewhere. It stands beside the handler of package serve in a service of one's own:
//
//	threads, err := serve.Handler(client, serve.Config{Temporal: temporal})
//	http.Handle("/", threads)
//	http.Handle("/chat/", page.Handler(page.Config{Threads: client, Signer: signer}))
//
// All that the page does with threads it does by the protocol of package serve, as any other client. Approvals are not answered there:
// the workers' gate wants proof of who answers. A service that knows who its callers are has a key to prove it with, so the page asks
// the service it came from, which signs what the person has seen and sends it to the gate.
package page

import (
	"context"
	"embed"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"strings"

	"superstep.dev/approval/token"
	"superstep.dev/thread"
)

//go:embed files
var embedded embed.FS

// policy lets the page load what this service has, and nothing else: no script of its text, no frame around it, no other site.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Threads is what the page's service does with threads itself; a *superstep.Client is one.
type Threads interface {
	State(ctx context.Context, r thread.StateRequest) (thread.StateView, error)
	Resume(ctx context.Context, r thread.ResumeRequest) (thread.ResumeReply, error)
	Cancel(ctx context.Context, r thread.CancelRequest) (thread.View, error)
}

// Config is what a page needs.
type Config struct {
	Threads Threads
	// Signer has the key of the person who approves; nil for a page that shows approvals and answers none. A service for several
	// people has an issuer's key, and signs for whoever is logged in.
	Signer *token.Signer
	// Hosts are the names under which the page may be reached, besides localhost and the addresses of loopback.
	Hosts []string
}

// Handler answers below /chat/. It asks nobody who they are, as its one approver is whoever sits at this machine: it is to be reached
// from there alone, and refuses requests that a browser sends for the page of another site.
func Handler(cfg Config) http.Handler {
	files, err := fs.Sub(embedded, "files")
	if err != nil {
		panic(err) // the name is that of the directive above
	}
	mux := http.NewServeMux()
	mux.Handle("GET /chat/", http.StripPrefix("/chat/", http.FileServerFS(files)))
	d := desk{cfg}
	mux.HandleFunc("GET /chat/threads/{thread}", d.show)
	mux.HandleFunc("POST /chat/threads/{thread}/approvals", d.reply)
	mux.HandleFunc("POST /chat/threads/{thread}/stop", d.stop)
	own := http.NewCrossOriginProtection().Handler(mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		if !cfg.reachedBy(r.Host) {
			refuse(w, http.StatusMisdirectedRequest, "this page is not to be reached under that Host")
			return
		}
		own.ServeHTTP(w, r)
	})
}

// reachedBy reports whether a Host is one of the page's: no site can have its name point here.
func (c Config) reachedBy(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if ip := net.ParseIP(name); ip != nil && ip.IsLoopback() || name == "localhost" {
		return true
	}
	return slices.ContainsFunc(c.Hosts, func(h string) bool { return strings.EqualFold(h, name) })
}
