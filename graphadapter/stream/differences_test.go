package stream_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestEveryDifferenceIsTested holds the table of docs/differences.md about streams to tests that are there.
func TestEveryDifferenceIsTested(t *testing.T) {
	text, err := os.ReadFile("../../docs/differences.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(text), "## What streams differ by")
	require.True(t, found)
	named := regexp.MustCompile(`\| (Test\w+) \|`).FindAllStringSubmatch(section, -1)
	require.NotEmpty(t, named)
	var tests strings.Builder
	for _, pattern := range []string{"*_test.go", "../../test/stream/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			tests.Write(source)
		}
	}
	for _, m := range named {
		assert.True(t, strings.Contains(tests.String(), "func "+m[1]+"("), m[1])
	}
}
