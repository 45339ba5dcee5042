// Package heaproom lets the heap of a small process grow before it is collected.
//
// Go collects when the heap has doubled. A worker of small graphs lives on some 10 MB, and a superstep leaves a few KB
// behind, so it would collect hundreds of times a second: a third of its processor time. With 64 MiB of room it collects a
// tenth as often, and a worker that lives on more than that collects as any Go program does.
package heaproom

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// room is how much garbage there may be, in bytes, however little lives.
	room = 64 << 20
	// leastLive is what counts as living at least, in bytes: below, Go's own rule for tiny heaps would multiply the room.
	leastLive = 4 << 20
	// usual is Go's own setting, in percent of what lives.
	usual = 100
)

// Give keeps room for 64 MiB of garbage from here on, for the whole process: for main packages only. It does nothing when
// GOGC or GOMEMLIMIT is set, because then somebody has decided, and nothing when it is called again.
func Give() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		start()
	}
}

var start = sync.OnceFunc(func() { (&pace{}).follow() })

// percentFor is the percentage (GOGC) at which a heap of that many living bytes has the room, never less than the usual.
func percentFor(live uint64) int { return int(max(usual, room*100/max(live, leastLive))) }

// pace is the percentage as it was last set.
type pace struct{ percent int }

// follow sets the percentage by what lives now, and again after each collection: what nothing refers to is found by it.
func (p *pace) follow() {
	if percent := percentFor(live()); percent != p.percent {
		p.percent = percent
		debug.SetGCPercent(percent)
	}
	runtime.AddCleanup(&struct{ found *pace }{p}, (*pace).follow, p)
}

// live is how many bytes the last collection left.
func live() uint64 {
	left := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(left)
	if left[0].Value.Kind() != metrics.KindUint64 {
		return room // a Go that does not tell: the usual
	}
	return left[0].Value.Uint64()
}
