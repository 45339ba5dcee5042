package deploy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// setting is one value of a key of the server's settings.
type setting struct {
	Value       any            `yaml:"value"`
	Constraints map[string]any `yaml:"constraints"`
}

// dynamicConfig are the settings that the server reads.
func dynamicConfig(t *testing.T) (settings map[string][]setting) {
	t.Helper()
	text, err := os.ReadFile("dynamicconfig.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, &settings))
	return settings
}

// The queues whose stock 20 polls a second cap one run at 20 steps a second.
func TestDynamicConfigLiftsThePollLimits(t *testing.T) {
	settings := dynamicConfig(t)
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

// What lists show is written often enough that it is at most a second late, seldom enough that the runs have the database, and so much at a
// time that it does not fall behind: as on the devserver.
func TestDynamicConfigWritesVisibilitySomeTimesASecond(t *testing.T) {
	settings := dynamicConfig(t)
	number := func(key string) int {
		t.Helper()
		require.Len(t, settings[key], 1, key)
		require.IsType(t, 0, settings[key][0].Value, key)
		return settings[key][0].Value.(int)
	}
	polls, batch := number("history.visibilityProcessorMaxPollRPS"), number("history.visibilityTaskBatchSize")
	require.GreaterOrEqual(t, polls, 1)
	require.LessOrEqual(t, polls, 5)
	require.GreaterOrEqual(t, batch, 100)
	require.Equal(t, 1, number("history.visibilityQueueMaxReaderCount"), "a second reader would wait behind the polls of the first one")
}

// A queue does not store its place with each timer: as on the devserver.
func TestDynamicConfigTakesNoBusyQueueForAStuckOne(t *testing.T) {
	values := dynamicConfig(t)["history.queueReaderStuckCriticalAttempts"]
	require.Len(t, values, 1)
	require.Equal(t, 0, values[0].Value)
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
