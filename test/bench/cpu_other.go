//go:build !unix

package main

import "time"

// started is when this process began, nearly.
var started = time.Now()

// ownCPU is elapsed time where the system's own account of processor time is not read.
func ownCPU() time.Duration { return time.Since(started) }
