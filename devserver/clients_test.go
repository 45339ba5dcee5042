package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
)

// Who asks for the search attributes again and again, as each page of the Web UI does, leaves nothing behind in the server.
func TestSearchAttributesAreListedManyTimes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("open files are counted in /proc")
	}
	s := start(t, filepath.Join(t.TempDir(), "runs.db"), "--headless")
	c, ctx := dial(t, s.address), within(t, startTimeout)
	open := func() int {
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
		require.NoError(t, err)
		return len(files)
	}
	list := func(times int) {
		for range times {
			listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: "default"})
			require.NoError(t, err)
			require.Contains(t, listed.GetCustomAttributes(), "SuperstepGraph")
		}
	}
	list(1)
	before := open()
	list(100)
	require.Less(t, open(), before+20, "files for each call stay open")
	require.Zero(t, s.stop(t))
}
