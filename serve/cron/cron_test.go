package cron

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpecRefusesUnknownTimeZones(t *testing.T) {
	for zone, good := range map[string]bool{"": true, "UTC": true, "Europe/Berlin": true, "Local": false, "Mars/Base": false, "../etc": false} {
		c := Cron{Schedule: "0 3 * * *", Timezone: &zone, EndTime: &time.Time{}}
		_, err := c.spec()
		require.Equal(t, good, err == nil, zone)
		if !good {
			require.ErrorIs(t, err, ErrBadSchedule)
		}
	}
}
