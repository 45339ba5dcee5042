package deploy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// The queues whose stock 20 polls a second cap one run at 20 steps a second.
func TestDynamicConfigLiftsThePollLimits(t *testing.T) {
	text, err := os.ReadFile("dynamicconfig.yaml")
	require.NoError(t, err)
	var settings map[string][]struct {
		Value       any            `yaml:"value"`
		Constraints map[string]any `yaml:"constraints"`
	}
	require.NoError(t, yaml.Unmarshal(text, &settings))
	for _, queue := range []string{"transfer", "timer", "outbound"} {
		values := settings["history."+queue+"ProcessorMaxPollRPS"]
		require.Len(t, values, 1, queue)
		require.Equal(t, 10_000, values[0].Value, queue)
	}
	for key, values := range settings {
		require.Len(t, values, 1, key)
		require.NotNil(t, values[0].Value, key)
		require.Empty(t, values[0].Constraints, key)
	}
}

func TestDynamicConfigGivesReasons(t *testing.T) {
	text, err := os.ReadFile("dynamicconfig.yaml")
	require.NoError(t, err)
	before := ""
	for line := range strings.Lines(string(text)) {
		if line[0] != ' ' && line[0] != '#' && strings.TrimSpace(line) != "" {
			require.True(t, strings.HasPrefix(before, "# "), "no reason above %s", line)
		}
		before = line
	}
}

// The server's service mounts the file where it is told to read it.
func TestDynamicConfigIsMounted(t *testing.T) {
	loaded := project(t)
	temporal := loaded.Services["temporal"]
	targets := map[string]string{}
	for _, config := range temporal.Configs {
		targets[config.Target] = loaded.Configs[config.Source].File
	}
	path := temporal.Environment["DYNAMIC_CONFIG_FILE_PATH"]
	require.NotNil(t, path)
	require.Contains(t, targets, *path)
	require.True(t, strings.HasSuffix(targets[*path], "/deploy/dynamicconfig.yaml"))
}
