package testserver

import (
	"crypto/rand"
	"os"
	"strings"
	"sync"
	"testing"
)

// shared is the server of this process, started once.
var shared = sync.OnceValues(func() (*Server, error) {
	path, err := binary()
	if err != nil {
		return nil, err
	}
	return Launch(path, Options{})
})

// Address returns the address of the server that all tests share: that of SUPERSTEP_TEST_ADDRESS, or one that this
// process starts now. It is no test's to stop. The test fails when there is none.
func Address(t testing.TB) string {
	t.Helper()
	address, err := Shared()
	if err != nil {
		t.Fatalf("a Temporal server for tests: %v", err)
	}
	return address
}

// Shared is [Address] for those who can do without: the error is [ErrNoSource] outside the server's workspace.
func Shared() (address string, err error) {
	if address := os.Getenv(EnvAddress); address != "" {
		return address, nil
	}
	s, err := shared()
	if err != nil {
		return "", err
	}
	return s.Address(), nil
}

// Queue returns the name of a task queue, or of a thread, that no other test uses: the test's name and a random part.
func Queue(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' || r == '"' || r == '\'' {
			return '-'
		}
		return r
	}, t.Name())
	const most = 80 // thread ids are bounded, and a longer name helps nobody
	return strings.ToValidUTF8(name[:min(len(name), most)], "") + "-" + strings.ToLower(rand.Text()[:8])
}
