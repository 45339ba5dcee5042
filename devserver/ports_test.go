package main_test

import (
	"net"
	"net/url"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// neighbours returns a free port and the next one, where the ports of the web UI and of live tokens are free too.
func neighbours(t *testing.T) (first, second string) {
	t.Helper()
	for port := 17_000; port < 31_000; port += 7 {
		if free(port) && free(port+1) && free(port+1000) && free(port+1001) {
			return strconv.Itoa(port), strconv.Itoa(port + 1)
		}
	}
	require.FailNow(t, "no free ports")
	return "", ""
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && l.Close() == nil
}

// Two devservers that are given nothing but a port each serve beside each other.
func TestTwoWithAPortEach(t *testing.T) {
	t.Parallel()
	one, two := neighbours(t)
	first := ready(t, launch(t, "--db", ":memory:", "--port", one))
	second := ready(t, launch(t, "--db", ":memory:", "--port", two))
	seen := map[string]bool{}
	for _, s := range []*running{first, second} {
		ui, err := url.Parse(s.ui)
		require.NoError(t, err)
		for _, at := range []string{s.address, ui.Host, liveOf(t, s).Host} {
			require.False(t, seen[at], at)
			seen[at] = true
		}
	}
	require.Equal(t, "127.0.0.1:"+one, first.address)
	require.Equal(t, "127.0.0.1:"+two, second.address)
	port, err := strconv.Atoi(one)
	require.NoError(t, err)
	require.Contains(t, first.ui, strconv.Itoa(port+1000))
	require.Zero(t, first.stop(t))
	require.Zero(t, second.stop(t))
}
