package graphadapter

import (
	"errors"
	"sync"

	"superstep.dev/graphadapter/pregel"
)

// Barrier keeps a run from starting tasks while it is shut; those under way end. The zero Gate is open. It is safe for
// concurrent use.
type Barrier struct {
	// Held is called when the run stands still at the gate, with the thread to be looked at and changed until it opens. It
	// may be nil.
	Held func(*pregel.Snapshot)

	mu     sync.Mutex
	opened chan struct{} // closed when the gate opens; nil while it is open
}

// ErrSuperseded is how a run ends whose thread was updated while it stood at a shut [Gate].
var ErrSuperseded = errors.New("superstep: the thread was updated while the run was held")

// Shut shuts the gate.
func (g *Barrier) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened == nil {
		g.opened = make(chan struct{})
	}
}

// Open opens the gate.
func (g *Barrier) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// Opened returns what is closed when the gate opens, nil while it is open.
func (g *Barrier) Opened() <-chan struct{} {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}
