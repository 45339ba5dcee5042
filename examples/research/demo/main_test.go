package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"superstep.dev/test/processes/programtest"
)

func TestMain(m *testing.M) { programtest.Main(m, main) }

// What a user has set for another server, or a model, must not reach this demo. It tells how often each attempt was started: a busy
// machine must not lose a worker.
func TestDemo(t *testing.T) {
	dir := t.TempDir()
	p := programtest.Launch(t, dir, []string{"YES=1", "TEMPORAL_ADDRESS=127.0.0.1:1", "TEMPORAL_API_KEY=none", "OPENAI_API_KEY=",
		"OPENAI_BASE_URL=", "RESEARCH_DIR=/nowhere", "RESEARCH_RESAMPLES=none"}, "--any-port", "--lost-after", "8s", "--dir", dir)
	code, screen := p.End(t)
	require.Zero(t, code, screen)
	t.Logf("the screen:\n%s", screen)
	lines := strings.Split(strings.TrimSpace(screen), "\n")
	require.Equal(t, "demo-research: OK, one report, and its figures are right", lines[len(lines)-1])
	for _, line := range lines {
		require.LessOrEqual(t, len([]rune(line)), 100, line)
	}
	require.NotContains(t, screen, "\x1b")
	for _, pattern := range []string{
		`(?m)^     replaced +\S+ analyst +plan 2: 3 subjobs in its place$`,
		`(?m)^     planned again \S+, as 3 subjobs$`,
		`(?m)^     kill -9 \d+$`,
		`(?m)^   Which measure should lead the report\? body mass \(nobody is asked`,
		`(?m)^     \| Gentoo \| 123 \| 5076\.02 \|`,
		`(?m)^     sent back +p2-\S+, p2-\S+:$`,
		`(?m)^ +2 of 3 analyses are wrong: Take every mean per measured bird\. Adelie,`,
		`(?m)^     resumed +attempt 1 of p2-`,
		`(?m)^     attempts +10 attempts of 7 subjobs, each started once and finished once$`,
	} {
		require.Regexp(t, pattern, screen)
	}
	require.Empty(t, p.Processes(t))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
