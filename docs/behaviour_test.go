package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBehaviourIsShown: each row of behaviour.md names tests that exist, and each script that the page names is there.
func TestBehaviourIsShown(t *testing.T) {
	page, err := os.ReadFile("behaviour.md")
	require.NoError(t, err)
	test, script := regexp.MustCompile("`([a-z0-9/]+)[.](Test[A-Za-z0-9]+)`"), regexp.MustCompile("`findings/([a-z0-9-]+[.]sh)`")
	rows := 0
	for line := range strings.Lines(string(page)) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| one would guess") {
			continue
		}
		rows++
		named := test.FindAllStringSubmatch(line, -1)
		require.NotEmpty(t, named, line)
		for _, n := range named {
			require.True(t, hasTest(t, n[1], n[2]), "%s has no %s", n[1], n[2])
		}
	}
	require.Greater(t, rows, 25)
	for _, n := range script.FindAllStringSubmatch(string(page), -1) {
		require.FileExists(t, filepath.Join("..", "findings", n[1]))
	}
}

// hasTest reports whether a package has a test of that name.
func hasTest(t *testing.T, folder, name string) bool {
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(folder), "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(text), "func "+name+"(") {
			return true
		}
	}
	return false
}
