package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

// startUI serves the Web UI on addr until stop is called, to requests whose Host is
// an IP address, localhost or one of names.
func startUI(addr, frontend netip.AddrPort, names []string) (stop func(), err error) {
	handler, err := uiHandler(&uiconfig.Config{
		TemporalGRPCAddress: dialable(frontend).String(),
		DefaultNamespace:    namespace,
		EnableUI:            true,
		HideLogs:            true,
		DisableNewsFetch:    true, // a development server does not call home
	})
	if err != nil {
		return nil, fmt.Errorf("set up the Web UI: %w", err)
	}
	var listen net.ListenConfig
	listener, err := listen.Listen(context.Background(), "tcp", addr.String())
	if err != nil {
		return nil, listenError(addr, "--ui-port", err)
	}
	server := &http.Server{Handler: guardHost(handler, names...), ReadHeaderTimeout: 10 * time.Second}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // that it ends is stop's doing
	}()
	return func() {
		_ = server.Close()
		<-done
	}, nil
}

// uiHandler is the UI server's handler. Its own server listens by itself, with
// nothing before the handler, so what it puts together is put together here. No
// origin but its own may call it, so it sends no CORS headers.
func uiHandler(config *uiconfig.Config) (http.Handler, error) {
	provider, err := uiconfig.NewConfigProviderWithRefresh(config)
	if err != nil {
		return nil, err
	}
	all, err := ui.Assets()
	if err != nil {
		return nil, err
	}
	local, err := fs.Sub(all, "local") // beside it is "cloud"
	if err != nil {
		return nil, err
	}
	// Without TLS browsers drop cookies marked secure, and with them every button
	// that writes.
	const secureCookies = false
	e := echo.New()
	e.Use(middleware.Recover(), middleware.Gzip(), middleware.Secure(), csrf.EnsureTokenCookie(secureCookies),
		middleware.CSRFWithConfig(csrf.MiddlewareConfig(provider, secureCookies)))
	e.Pre(route.PublicPath(config.PublicPath))
	route.SetHealthRoute(e)
	if err := route.SetAPIRoutes(e, provider, nil); err != nil {
		return nil, err
	}
	route.SetAuthRoutes(e, provider)
	route.SetUIRoutes(e, config.PublicPath, local, provider)
	route.SetRenderRoute(e, "/")
	return e, nil
}

func uiURL(addr netip.AddrPort) string { return "http://" + addr.String() }

// guardHost passes on the requests whose Host is an IP address, localhost, or one
// of names, with whatever port; it answers others with 403. A page of another site
// can have that site's name resolve to this machine (DNS rebinding): its requests
// are of one origin then, and nothing but their Host tells them from the user's. No
// page can take an address or localhost for its name.
func guardHost(next http.Handler, names ...string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !allowed(r.Host, names) {
			http.Error(w, fmt.Sprintf("the host %.100q is not known here: use an IP address or localhost, or name it when this "+
				"server is started", r.Host), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func allowed(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "localhost" || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}
