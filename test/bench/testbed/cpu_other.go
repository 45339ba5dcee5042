//go:build !linux

package testbed

import (
	"math"
	"time"
)

// started is when this process began, nearly.
var started = time.Now()

// OwnCPU is elapsed time where the system's own account of processor time is not read.
func OwnCPU() time.Duration { return time.Since(started) }

// CPU is NaN where the system's account of processor time is not read.
func CPU(int) float64 { return math.NaN() }

// TreeCPU is CPU.
func TreeCPU(pid int) float64 { return CPU(pid) }
