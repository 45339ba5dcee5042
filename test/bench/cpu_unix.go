//go:build unix

package main

import (
	"syscall"
	"time"
)

// ownCPU is the processor time that this process has used, all threads together: unlike elapsed time it does not grow
// when others keep the machine busy.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
