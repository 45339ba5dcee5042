package main

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
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
