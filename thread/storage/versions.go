package storage

import (
	"bytes"
	"sync"
	"time"

	"github.com/jellydator/ttlcache/v3"
	commonpb "go.temporal.io/api/common/v1"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/delta"
)

// version is a value in memory, which a later one may be told by. It is never changed.
type version struct {
	value
	payload *commonpb.Payload
	table   []byte // of its pieces, nil for none
	number  int    // see package delta; 0 for one that is stored whole
	base    *version
	read    int // bytes of the deltas that it is read by
	since   time.Time
}

// same reports whether a payload is this one.
func (v *version) same(p *commonpb.Payload) bool {
	return bytes.Equal(v.payload.GetData(), p.GetData()) && proto.Equal(v.payload, p)
}

// news tells data by this version; it reports false when it is better stored whole.
func (v *version) news(data []byte) ([]byte, bool) {
	most := delta.Worth(len(data), v.read)
	if len(data)-v.bytes > most {
		return nil, false
	}
	made, ok := delta.Make(v.payload.GetData(), data, most)
	if !ok {
		return nil, false
	}
	again, err := delta.Apply(v.payload.GetData(), made, len(data))
	return made, err == nil && bytes.Equal(again, data) // what cannot be told is not lost either
}

// copied is the payload for somebody who may change it.
func (v *version) copied() *commonpb.Payload {
	p := proto.CloneOf(&commonpb.Payload{Metadata: v.payload.GetMetadata(), ExternalPayloads: v.payload.GetExternalPayloads()})
	p.Data = bytes.Clone(v.payload.GetData())
	return p
}

// chain are a version and all that it is told by.
func (v *version) chain() (all []*version) {
	for ; v != nil; v = v.base {
		all = append(all, v)
	}
	return all
}

// keptFor is how long what was read stays in memory at most: so long a process may still have what was erased.
const keptFor = time.Hour

// latest is how many values of a thread are remembered that the next one may go on from. A turn has one at its run's beginning and one at
// its end; longer ones hand states to activities beside.
const latest = 4

// versions are the latest values of threads. It is safe for concurrent use.
type versions struct {
	mu    sync.Mutex
	most  int
	known *ttlcache.Cache[string, []*version] // by space, the newest first
}

func newVersions(most int) *versions {
	return &versions{most: most, known: ttlcache.New(ttlcache.WithTTL[string, []*version](keptFor), ttlcache.WithDisableTouchOnHit[string, []*version](),
		ttlcache.WithMaxCost(uint64(most), func(item ttlcache.CostItem[string, []*version]) uint64 {
			cost, _ := costOf(item.Value, most)
			return uint64(cost)
		}))}
}

// costOf is what versions take of memory, and how many of them take at most as much.
func costOf(all []*version, most int) (cost, fit int) {
	seen := map[*version]bool{}
	for i, v := range all {
		for _, one := range v.chain() {
			if !seen[one] {
				seen[one] = true
				cost += one.bytes
			}
		}
		if cost <= most {
			fit = i + 1
		}
	}
	return cost, fit
}

// takes reports whether a version, and what it is told by, is not too large to be remembered.
func (m *versions) takes(v *version) bool {
	_, fit := costOf([]*version{v}, m.most)
	return fit > 0
}

// of returns the latest values of a space, the newest first.
func (m *versions) of(space string) []*version {
	m.mu.Lock()
	defer m.mu.Unlock()
	if item := m.known.Get(space); item != nil {
		return item.Value()
	}
	return nil
}

// find returns a value, nil when it is not known.
func (m *versions) find(v value) *version {
	for _, one := range m.of(v.space) {
		for _, known := range one.chain() {
			if known.value == v {
				return known
			}
		}
	}
	return nil
}

// keep makes a version the newest of its space.
func (m *versions) keep(v *version) {
	if !m.takes(v) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	all := []*version{v}
	if item := m.known.Get(v.space); item != nil {
		for _, one := range item.Value() {
			if one.value != v.value && len(all) < latest && time.Since(one.since) < keptFor {
				all = append(all, one)
			}
		}
	}
	_, fit := costOf(all, m.most)
	m.known.Set(v.space, all[:fit], ttlcache.DefaultTTL)
}

// forget forgets the values of a space.
func (m *versions) forget(space string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known.Delete(space)
}
