package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
)

// endpoints are the addresses that one devserver listens on.
type endpoints struct {
	frontend netip.AddrPort // the Temporal API, gRPC
	http     netip.AddrPort // the same over HTTP, on a free port: Nexus needs it
	ui       netip.AddrPort // the Web UI; the zero value when headless
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
		if e.ui, err = r.listen(ip, o.uiPort, "--ui-port"); err != nil {
			return e, err
		}
	}
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	for _, internal := range []*netip.AddrPort{&e.history, &e.matching, &e.worker} {
		if *internal, err = r.listen(loopback, 0, "--port"); err != nil {
			return e, err
		}
	}
	return e, nil
}

func (r *reservation) listen(ip netip.Addr, port int, flag string) (netip.AddrPort, error) {
	want := netip.AddrPortFrom(ip, uint16(port)) //nolint:gosec // validated to be a port
	l, err := net.Listen("tcp", want.String())
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
