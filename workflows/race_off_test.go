//go:build !race

package workflows_test

import "time"

const (
	raced = 3 * time.Second
	flood = 10_000
)
