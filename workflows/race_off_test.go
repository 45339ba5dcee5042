//go:build !race

package workflows_test

import "time"

const (
	raced = 10 * time.Second
	flood = 10_000
)
