package stack

import "net"

// port returns the port of an address if it can be had, else "0", which lets the program pick a free one.
func (s *Stack) port(address string) string {
	_, port, err := net.SplitHostPort(address)
	if err != nil || s.cfg.AnyPort {
		return "0"
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "0"
	}
	_ = l.Close() // nothing was accepted on it
	return port
}
