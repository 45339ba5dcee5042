// Package hosts says under which names a server may be asked. One that answers under any name answers the pages of whoever has a
// name point at this machine.
package hosts

import (
	"net"
	"slices"
	"strings"
)

// Allowed reports whether a request's Host, with or without a port, is this machine's own or one of the names.
func Allowed(host string, names []string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return Loopback(host) || slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, host) })
}

// Loopback reports whether a name or an address, without a port, is this machine's own.
func Loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}
