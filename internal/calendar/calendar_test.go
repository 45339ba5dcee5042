package calendar

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpressions(t *testing.T) {
	for schedule, want := range map[string][]string{
		"0 3 * * *":              {"0 3 * * *"},
		"  */5 9-17 ? * MON-FRI": {"*/5 9-17 * * MON-FRI"},
		"0 0 13 * 5":             {"0 0 13 * *", "0 0 * * 5"},
		"0 3 * * * 30":           {"30 0 3 * * * *"},
		"0 0 13 * 5 */20":        {"*/20 0 0 13 * * *", "*/20 0 0 * * 5 *"},
		"@daily":                 {"0 0 * * *"},
		"@Weekly":                {"0 0 * * 0"},
		" @hourly ":              {"0 * * * *"},
	} {
		got, err := Expressions(schedule)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, bad := range []string{"", "nonsense", "@every 5s", "@reboot", "0 3 * *", "0 3 * * * * *", "TZ=UTC 3 * * *", "0 3 * * #", "0 3 * * \x00", strings.Repeat("9", 200) + " * * * *"} {
		_, err := Expressions(bad)
		require.Error(t, err, bad)
		require.Less(t, len(err.Error()), 300)
	}
}

func TestZone(t *testing.T) {
	for zone, good := range map[string]bool{"": true, "UTC": true, "Europe/Berlin": true, "Local": false, "Mars/Base": false, "../etc": false} {
		require.Equal(t, good, Zone(zone) == nil, zone)
	}
}
