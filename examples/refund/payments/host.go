package payments

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

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
