//go:build race

package workflows_test

import "time"

// The race detector makes computing some ten times as long: raced is how long a workflow may compute at a time then, and
// flood how many answers attack a run.
const (
	raced = 20 * time.Second
	flood = 1_500
)
