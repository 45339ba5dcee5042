package superstep

import (
	"testing"

	"superstep.dev/workflows/protocol"
)

// LaunchBehind continues a thread as a client does that read its last run some time ago: at that run.
func LaunchBehind(t *testing.T, c *Client, thread, run string) error {
	t.Helper()
	last, err := c.theLastRun(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	last.runID, last.open = run, false
	in := protocol.GraphInput{Graph: last.graph}
	_, err = c.launch(t.Context(), StartRequest{Graph: last.graph, Thread: thread}, in, last)
	return err
}
