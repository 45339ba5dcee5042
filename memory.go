package superstep

import (
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/internal/memory"
	"superstep.dev/internal/runtime"
)

// Memory is a [Runtime] that keeps threads in this process, for tests and for graphs that need no durability. It is
// safe for concurrent use. Runs go on in the background until they wait or end; what a state call asks of a thread
// that runs is answered when it stops.
type Memory struct{ threads *memory.Runtime }

func (m *Memory) runtime() runtime.Runtime { return m.threads }

// NewMemory returns a Memory without threads.
func NewMemory(opts ...MemoryOption) *Memory {
	var cfg memory.Config
	for _, o := range opts {
		o.applyMemory(&cfg)
	}
	return &Memory{memory.New(cfg)}
}

// MemoryOption shapes a [Memory].
type MemoryOption interface{ applyMemory(*memory.Config) }

type memoryOption func(*memory.Config)

func (o memoryOption) applyMemory(m *memory.Config) { o(m) }

// WithGate makes a [Memory] hold answers to approvals, and their use, to a gate. Without one every answer counts as that
// of whoever it says ([AskedBy]), and every approval that is valid still may be acted upon: that is for tests.
func WithGate(g *approval.Gate) MemoryOption {
	return memoryOption(func(m *memory.Config) { m.Gate = g })
}

// WithAuditSigner makes a [Memory] sign the ends of audits that are exported, as a worker does with WorkerConfig.AuditSigner.
func WithAuditSigner(s approval.HeadSigner) MemoryOption {
	return memoryOption(func(m *memory.Config) { m.Heads = s })
}

// Runtime keeps and runs threads: [*Memory] in this process, or a [*Client] on Temporal. The same test body runs on both.
type Runtime interface{ runtime() runtime.Runtime }

// Runnable is a graph that can be a subgraph of another one, and that workers and runtimes serve: a compiled
// [*Graph] of any state.
type Runnable interface {
	// Name is the graph's name.
	Name() string
	// Adapter is the graph without its types.
	Adapter() *graphadapter.Graph
}
