package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
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

// tick is the unit of Linux's processor times.
const tick = 10 * time.Millisecond

// cpu is the processor time that a running child has used, as far as the system tells: NaN milliseconds if not.
func (p *process) cpu() float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return math.NaN()
	}
	// Fields are counted behind the command in parentheses, which may hold anything; 14 and 15 of all are user and
	// system time.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return math.NaN()
	}
	user, errUser := strconv.ParseInt(string(fields[11]), 10, 64)
	system, errSystem := strconv.ParseInt(string(fields[12]), 10, 64)
	if errUser != nil || errSystem != nil {
		return math.NaN()
	}
	return milliseconds(time.Duration(user+system) * tick)
}
