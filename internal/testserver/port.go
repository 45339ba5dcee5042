package testserver

import (
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports of servers that are told theirs, or start again on theirs: below those that systems give to outgoing connections, one of which
// would else have the port by then.
const (
	lowestPort = 16_384
	ports      = 16_384
)

// freePort returns a port at which nobody listens.
func freePort() int {
	for {
		port := lowestPort + rand.IntN(ports)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil && l.Close() == nil {
			return port
		}
	}
}

// FreeAddress returns an address of this machine at which nobody listens, for a process that listens there later, or again and again: no
// outgoing connection takes its port meanwhile.
func FreeAddress() string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort()))
}
