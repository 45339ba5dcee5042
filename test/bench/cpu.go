package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"
)

// tick is the unit of Linux's processor times.
const tick = 10 * time.Millisecond

// cpuOf is the processor time that a running process has used, in milliseconds; NaN where the system does not tell.
func cpuOf(pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
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
