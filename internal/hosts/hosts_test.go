package hosts

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNamesUnderWhichAServerMayBeAsked(t *testing.T) {
	names := []string{"agents.example.com"}
	for _, host := range []string{"localhost", "LOCALHOST:80", "127.0.0.1:2024", "127.9.9.9", "[::1]:2024", "::1", "[::1]", "Agents.Example.com:443"} {
		require.True(t, Allowed(host, names), host)
	}
	for _, host := range []string{"", ":80", "evil.example", "evil.example:80", "localhost.evil.example", "agents.example.com.evil", "10.0.0.1:80", "[fe80::1]:80"} {
		require.False(t, Allowed(host, names), host)
	}
	require.False(t, Loopback("localhost:80"), "a port is not part of a name")
}
