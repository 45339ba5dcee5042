package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/csrf"
	"github.com/temporalio/ui-server/v2/server/route"
	"github.com/temporalio/ui-server/v2/ui"
)

// endpoints are the addresses that one devserver listens on.
type endpoints struct {
	frontend netip.AddrPort // the Temporal API, gRPC
	http     netip.AddrPort // the same over HTTP, on a free port: Nexus needs it
	ui       netip.AddrPort // the Web UI; the zero value when headless
	live     netip.AddrPort // NATS, on loopback; the zero value for none
	history  netip.AddrPort // these three serve the process itself, on loopback
	matching netip.AddrPort
	worker   netip.AddrPort
}

// reservation holds listeners open, so that free ports differ from each other and
// a port in use is found before the server starts: the server ends the process
// with a stack trace when it cannot listen.
type reservation struct {
	listeners []net.Listener
}

// reserve finds every address that o asks for. The caller releases the
// reservation right before the server takes the ports over. The error names the
// flag to change.
func reserve(o options) (endpoints, *reservation, error) {
	r := &reservation{}
	e, err := r.endpoints(o)
	if err != nil {
		r.release()
		return endpoints{}, nil, err
	}
	return e, r, nil
}

func (r *reservation) endpoints(o options) (e endpoints, err error) {
	ip, err := o.address()
	if err != nil {
		return e, err
	}
	if e.frontend, err = r.listen(ip, o.port, "--port"); err != nil {
		return e, err
	}
	if e.http, err = r.listen(ip, 0, "--port"); err != nil {
		return e, err
	}
	if !o.headless {
		if e.ui, err = r.listenNear(ip, o.uiPort, o.uiNamed, "--ui-port"); err != nil {
			return e, err
		}
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if o.live != noLive {
		if e.live, err = r.listenNear(loopback, o.livePort, o.liveNamed, "--live-port"); err != nil {
			return e, err
		}
	}
	for _, internal := range []*netip.AddrPort{&e.history, &e.matching, &e.worker} {
		if *internal, err = r.listen(loopback, 0, "--port"); err != nil {
			return e, err
		}
	}
	return e, nil
}

// Free ports are taken from below those that systems give to outgoing connections (Linux from 32768 on, others higher): one of
// these could be given away between the reservation and the server.
const (
	lowestFree = 16_384
	freePorts  = 16_384
	freeTries  = 100
)

// listenFree listens on a free port.
func listenFree(ip netip.Addr) (net.Listener, error) {
	for range freeTries {
		port := lowestFree + rand.IntN(freePorts) //nolint:gosec // nobody is to be surprised
		if l, err := net.Listen("tcp", netip.AddrPortFrom(ip, uint16(port)).String()); err == nil {
			return l, nil
		}
	}
	return net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
}

// listenNear listens on a port, or on the next free one if no flag names it.
func (r *reservation) listenNear(ip netip.Addr, port int, named bool, flag string) (addr netip.AddrPort, err error) {
	for try := range freeTries {
		addr, err = r.listen(ip, port+try, flag)
		if named || port == 0 || port+try >= maxPort || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	return addr, err
}

func (r *reservation) listen(ip netip.Addr, port int, flag string) (netip.AddrPort, error) {
	want := netip.AddrPortFrom(ip, uint16(port)) //nolint:gosec // validated to be a port
	l, err := net.Listener(nil), error(nil)
	if port == 0 {
		l, err = listenFree(ip)
	} else {
		l, err = net.Listen("tcp", want.String())
	}
	if err != nil {
		return netip.AddrPort{}, listenError(want, flag, err)
	}
	r.listeners = append(r.listeners, l)
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("listen on %s: not a TCP address: %s", want, l.Addr())
	}
	return netip.AddrPortFrom(ip, addr.AddrPort().Port()), nil
}

func (r *reservation) release() {
	for _, l := range r.listeners {
		_ = l.Close() // nothing was accepted on it, so nothing can be lost
	}
	r.listeners = nil
}

func listenError(addr netip.AddrPort, flag string, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%s is already in use, perhaps by another devserver: stop that one, or choose another %s (0 picks a free port): %w", addr, flag, err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%s is not an address of this machine: choose another --ip: %w", addr.Addr(), err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s needs privileges: choose a %s of 1024 or above: %w", addr, flag, err)
	default:
		return fmt.Errorf("cannot listen on %s: choose another --ip or %s: %w", addr, flag, err)
	}
}

// dialable is addr as a client on this machine reaches it: the wildcard address
// stands for every interface when listening and for none when dialling.
func dialable(addr netip.AddrPort) netip.AddrPort {
	if !addr.Addr().IsUnspecified() {
		return addr
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if addr.Addr().Is6() {
		loopback = netip.IPv6Loopback()
	}
	return netip.AddrPortFrom(loopback, addr.Port())
}

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
