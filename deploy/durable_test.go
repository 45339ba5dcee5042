package deploy_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the database says that it has stored is there after a power cut. PostgreSQL does so unless it is told otherwise: by its command, by a
// file of settings, or by a script that is run in it.
func TestTheDatabaseStoresBeforeItSaysSo(t *testing.T) {
	loaded := project(t)
	postgres := loaded.Services["postgres"]
	require.Equal(t, "postgres", postgres.Command[0])
	for _, argument := range postgres.Command[1:] {
		require.False(t, strings.HasPrefix(argument, "-F"), "%s is short for fsync=off", argument)
	}
	require.Empty(t, postgres.Entrypoint)
	require.Empty(t, postgres.Configs)
	require.Len(t, postgres.Volumes, 1, "its data alone: no settings and no scripts")
	require.Equal(t, "/var/lib/postgresql/data", postgres.Volumes[0].Target)

	files := []string{"../docker-compose.yml"}
	for _, config := range loaded.Configs {
		files = append(files, config.File)
	}
	require.Greater(t, len(files), 4)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			require.NotContains(t, strings.ToLower(string(text)), setting, file)
		}
	}
}
