package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// instructions are the Dockerfile's lines of one kind, without the keyword.
func instructions(t *testing.T, keyword string) []string {
	t.Helper()
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	joined := strings.ReplaceAll(string(text), "\\\n", " ")
	var found []string
	for line := range strings.Lines(joined) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), keyword+" "); ok {
			found = append(found, rest)
		}
	}
	return found
}

func TestImageRunsAsNobodySpecial(t *testing.T) {
	users := instructions(t, "USER")
	require.Equal(t, []string{"65532:65532"}, users, "by number, and not root")
	for _, name := range ours {
		require.Equal(t, users[0], project(t).Services[name].User)
	}
}

func TestBaseImagesArePinned(t *testing.T) {
	from := instructions(t, "FROM")
	require.Equal(t, []string{
		"--platform=$BUILDPLATFORM golang:1.26.8 AS build",
		"gcr.io/distroless/static-debian12:nonroot",
	}, from)
}

func TestImageHoldsNoSecret(t *testing.T) {
	text, err := os.ReadFile("../Dockerfile")
	require.NoError(t, err)
	for _, keyword := range []string{"ARG", "ENV"} {
		for _, line := range instructions(t, keyword) {
			require.NotRegexp(t, regexp.MustCompile(`(?i)password|secret|token|key`), line)
		}
	}
	require.NotContains(t, string(text), "ADD ", "nothing is fetched from the network by URL")
	ignored, err := os.ReadFile("../.dockerignore")
	require.NoError(t, err)
	lines := strings.Split(string(ignored), "\n")
	for _, want := range []string{".git", "deploy", "devserver", "go.work", "**/*.db", "**/.env*",
		"**/*.db.*", "**/superstep.storage", "**/superstep.store", "**/*.keys", "**/*.keys.*", "**/*.key", "**/*.pem", "**/*.token", "archives", "audits"} {
		require.Contains(t, lines, want)
	}
}

func TestSecretsAreNotCommitted(t *testing.T) {
	text, err := os.ReadFile("secrets/.gitignore")
	require.NoError(t, err)
	var rules []string
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			rules = append(rules, line)
		}
	}
	require.Equal(t, []string{"*", "!.gitignore", "!README.md"}, rules)
}
