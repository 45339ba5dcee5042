package activities

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

const (
	// A replay holds a run's history and its state: a few at a time are enough, many would fill the memory.
	maxRebuilds = 2
	// rebuildTimeout bounds one replay, most of it for a server that does not answer.
	rebuildTimeout = 2 * time.Minute
)

// Run names a run on a server.
type Run struct{ Namespace, WorkflowID, RunID string }

// Rebuild goes through a run's history as it is now, and calls pass with every value that the run has sent by reference.
type Rebuild func(ctx context.Context, run Run, pass func(v pregel.Value)) error

// rebuilder finds values by going through a run's history: one replay for all that ask while it has not begun, and for
// all that want nothing else than those before them.
type rebuilder struct {
	cache   *cache
	rebuild Rebuild
	slots   chan struct{}

	mu   sync.Mutex
	runs map[Run]*flights
}

// flights are the replays of one run.
type flights struct {
	begun *flight // wants no more than it does; nil between two
	next  *flight // takes more until it begins; nil when nobody waits
}

// flight is one replay.
type flight struct {
	wanted map[string]int // sizes by digest
	done   chan struct{}
	// Once done: what was found, or why nothing was.
	found map[string]pregel.Value
	err   error
}

func newRebuilder(c *cache, rebuild Rebuild) *rebuilder {
	return &rebuilder{cache: c, rebuild: rebuild, slots: make(chan struct{}, maxRebuilds), runs: map[Run]*flights{}}
}

// find returns the values of these references, as many as the run has ever sent, by their digests. It gives up waiting
// when ctx ends.
func (b *rebuilder) find(ctx context.Context, run Run, refs []graphadapter.Reference) (map[string]pregel.Value, error) {
	had, f := b.board(run, refs)
	if f == nil {
		return had, nil
	}
	select {
	case <-f.done:
		return f.found, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// board finds a flight that comes by all the references, unless the cache has them all. A task that asks was scheduled
// before, so its values are in the history that a flight reads which begins later; one that has begun is only as good
// when it looks for the same.
func (b *rebuilder) board(run Run, refs []graphadapter.Reference) (map[string]pregel.Value, *flight) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if had, all := b.cached(refs); all {
		return had, nil // by a flight that ended just now
	}
	of := b.runs[run]
	if of == nil {
		of = &flights{}
		b.runs[run] = of
	}
	if of.begun != nil && of.begun.wants(refs) {
		return nil, of.begun
	}
	if of.next == nil {
		of.next = &flight{wanted: map[string]int{}, done: make(chan struct{})}
		if of.begun == nil {
			go b.fly(run, of)
		}
	}
	for _, ref := range refs {
		of.next.wanted[ref.Digest] = ref.Size
	}
	return nil, of.next
}

// cached returns what the cache has of the references, and whether that is all.
func (b *rebuilder) cached(refs []graphadapter.Reference) (had map[string]pregel.Value, all bool) {
	had, all = map[string]pregel.Value{}, true
	for _, ref := range refs {
		v, ok := b.cache.get(ref.Digest)
		if !ok {
			all = false
			continue
		}
		had[ref.Digest] = v
	}
	return had, all
}

func (f *flight) wants(refs []graphadapter.Reference) bool {
	for _, ref := range refs {
		if _, ok := f.wanted[ref.Digest]; !ok {
			return false
		}
	}
	return true
}

// fly flies one flight after the other, as long as somebody waits.
func (b *rebuilder) fly(run Run, of *flights) {
	for {
		b.slots <- struct{}{}
		f := b.begin(of)
		f.found, f.err = b.collect(run, f.wanted)
		for digest, v := range f.found {
			b.cache.put(digest, v)
		}
		<-b.slots
		more := b.end(run, of)
		close(f.done)
		if !more {
			return
		}
	}
}

func (b *rebuilder) begin(of *flights) *flight {
	b.mu.Lock()
	defer b.mu.Unlock()
	of.begun, of.next = of.next, nil
	return of.begun
}

func (b *rebuilder) end(run Run, of *flights) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	of.begun = nil
	if of.next == nil {
		delete(b.runs, run)
	}
	return of.next != nil
}

// collect replays the run. Whoever asked may have left since: those who come next may still want what it finds.
func (b *rebuilder) collect(run Run, wanted map[string]int) (map[string]pregel.Value, error) {
	ctx, cancel := context.WithTimeout(context.Background(), rebuildTimeout)
	defer cancel()
	c := collector{wanted: wanted, sizes: map[int]*byte{}, found: map[string]pregel.Value{}}
	for _, size := range wanted {
		c.sizes[size] = nil
	}
	if err := b.rebuild(ctx, run, c.pass); err != nil {
		return nil, err
	}
	return c.found, nil
}

// collector picks the wanted values out of all that a replay comes by.
type collector struct {
	wanted map[string]int
	found  map[string]pregel.Value
	// sizes are those wanted, each with where the last value of that size was: most come by again and again, and only
	// what may be wanted is worth a digest.
	sizes map[int]*byte
}

func (c *collector) pass(v pregel.Value) {
	last, ok := c.sizes[len(v)]
	if !ok || len(v) == 0 || last == &v[0] || len(c.found) == len(c.wanted) {
		return
	}
	c.sizes[len(v)] = &v[0]
	digest := graphadapter.DigestOf(v)
	if _, ok := c.wanted[digest]; ok {
		c.found[digest] = v
	}
}

// cache keeps values by their digest, the latest used of them, up to a number of bytes. It is safe for concurrent use.
// Its values are shared: whoever takes one out to give it away copies it.
type cache struct {
	most   int
	values *ttlcache.Cache[string, pregel.Value]
}

func newCache(bytes int) *cache {
	return &cache{most: bytes, values: ttlcache.New(ttlcache.WithMaxCost(uint64(max(bytes, 1)),
		func(item ttlcache.CostItem[string, pregel.Value]) uint64 { return uint64(len(item.Value)) }))}
}

// put keeps a value, and drops those used longest ago to make room. One that is larger than the cache is not kept.
func (c *cache) put(digest string, v pregel.Value) {
	if len(v) <= c.most && c.values.Get(digest) == nil {
		c.values.Set(digest, v, ttlcache.NoTTL)
	}
}

func (c *cache) get(digest string) (pregel.Value, bool) {
	item := c.values.Get(digest)
	if item == nil {
		return nil, false
	}
	return item.Value(), true
}

// Specs returns the graph that a run goes on with, as the run itself knows it.
type Specs func(ctx context.Context, run Run) (*pregel.Spec, error)

// specTimeout bounds how long a run is asked for its graph.
const specTimeout = 5 * time.Second

// specs are the graphs that runs go on with and this worker's are not, by their fingerprints.
type specs struct {
	ask   Specs
	known sync.Map // of *pregel.Spec
}

// differs reports whether a graph is another version than that of the fingerprint.
func (s *specs) differs(g *graphadapter.Graph, print string) (bool, error) {
	here, err := g.Fingerprint()
	return here != print, err
}

// began returns the graph of a run that is of another version than this worker's; nil when it is the same.
func (s *specs) began(ctx context.Context, g *graphadapter.Graph, run Run, print string) (*pregel.Spec, error) {
	if s.ask == nil || print == "" {
		return nil, nil
	}
	if other, err := s.differs(g, print); err != nil || !other {
		return nil, err
	}
	if spec, known := s.known.Load(print); known {
		return spec.(*pregel.Spec), nil
	}
	ctx, cancel := context.WithTimeout(ctx, specTimeout)
	defer cancel()
	spec, err := s.ask(ctx, run)
	if err != nil {
		return nil, fmt.Errorf("this worker has another version of the graph %q than the run, which does not say which it has: %w", g.Spec.Name, err)
	}
	s.known.Store(print, spec)
	return spec, nil
}
