package main

import (
	"net/netip"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

// startUI serves the Web UI on addr until stop is called. The port must be free:
// the UI server ends the process when it cannot listen.
func startUI(addr, frontend netip.AddrPort) (stop func()) {
	server := uiserver.NewServer(server_options.WithConfigProvider(&uiconfig.Config{
		Host:                uiHost(addr.Addr()),
		Port:                int(addr.Port()),
		TemporalGRPCAddress: dialable(frontend).String(),
		DefaultNamespace:    namespace,
		EnableUI:            true,
		HideLogs:            true,
		DisableNewsFetch:    true, // a development server does not call home
		// Without TLS browsers drop cookies marked secure, and with them every
		// button that writes.
		CORS: uiconfig.CORS{CookieInsecure: true},
	}))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Start() // nil once stopped; it ends the process on any other error
	}()
	return func() {
		server.Stop()
		<-done
	}
}

// uiHost is ip as the UI server wants it: it joins host and port by a bare colon.
func uiHost(ip netip.Addr) string {
	if ip.Is6() {
		return "[" + ip.String() + "]"
	}
	return ip.String()
}

func uiURL(addr netip.AddrPort) string { return "http://" + addr.String() }
