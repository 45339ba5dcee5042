package testbed

import (
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OwnCPU is the processor time that this process has used, all threads together: unlike elapsed time it does not grow
// when others keep the machine busy.
func OwnCPU() time.Duration { return time.Duration(CPU(os.Getpid()) * float64(time.Millisecond)) }

// CPU is the processor time that a running process has used, threads that have ended included, in milliseconds; NaN where
// there is no such process.
func CPU(pid int) float64 {
	var t unix.Timespec
	// A process's clock is named as clock_getcpuclockid(3) does: the complement of its id, and 2 for the scheduler's account.
	if unix.ClockGettime(int32(^pid<<3|2), &t) != nil {
		return math.NaN()
	}
	return float64(t.Nano()) / 1e6
}

// TreeCPU is CPU of a process together with its children and theirs, also of those that have ended: PostgreSQL has a process for
// each connection.
func TreeCPU(pid int) float64 {
	sum := CPU(pid) + endedCPU(pid)
	children, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children") // none is none
	for child := range strings.FieldsSeq(string(children)) {
		if id, err := strconv.Atoi(child); err == nil {
			if of := TreeCPU(id); !math.IsNaN(of) { // NaN for one that has just ended
				sum += of
			}
		}
	}
	return sum
}

// endedCPU is the processor time of a process's children that have ended, as far as it has been told of them.
func endedCPU(pid int) float64 {
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat") // without it there is none
	fields := strings.Fields(string(stat[strings.LastIndex(string(stat), ")")+1:]))
	if len(fields) < 15 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[13], 64) // proc_pid_stat(5): cutime and cstime, of which the first two fields are cut off
	system, _ := strconv.ParseFloat(fields[14], 64)
	return (user + system) * 10 // ticks, of which Linux shows programs a hundred a second
}
