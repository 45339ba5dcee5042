package delta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/bits"
)

// block is the shortest stretch that is looked for in the earlier version.
const block = 32

// multiplier is that of the rolling sum over a block; out is what a byte that leaves the block has become by then.
const multiplier uint64 = 0x9E3779B97F4A7C15

var out = func() uint64 {
	p := uint64(1)
	for range block {
		p *= multiplier
	}
	return p
}()

// Make tells version by base. It reports false when that takes more than most bytes.
//
// A delta is a sequence of: how many bytes are new, those bytes, where in base a stretch begins that follows, and how long it is.
// Numbers are unsigned varints; the last stretch may be empty.
func Make(base, version []byte, most int) ([]byte, bool) {
	d := &maker{base: base, version: version, most: most}
	if most <= 0 || !d.make() {
		return nil, false
	}
	return d.delta, len(d.delta) <= most
}

type maker struct {
	base, version, delta []byte
	most                 int
	places               []uint32 // where in base a block with a sum is, plus one
	shift                int
}

// index notes where the blocks of base are. Of equal ones the last is noted.
func (d *maker) index() {
	n := len(d.base) / block
	size := bits.Len(uint(2*n + 1))
	d.places, d.shift = make([]uint32, 1<<size), 64-size
	for i := range n {
		d.places[d.slot(sum(d.base[i*block:]))] = uint32(i*block + 1)
	}
}

// slot is the place of a sum in the index.
func (d *maker) slot(sum uint64) uint64 { return sum * multiplier >> d.shift }

// sum is the rolling sum of the block at the beginning of b.
func sum(b []byte) (s uint64) {
	for _, c := range b[:block] {
		s = s*multiplier + uint64(c)
	}
	return s
}

// make writes the delta, and gives up when too much is new.
func (d *maker) make() bool {
	at := matching(d.base, d.version) // most of what differs does so further behind
	d.add(nil, 0, at)
	fresh := at // from here on nothing is written yet
	for at+block <= len(d.version) {
		if d.places == nil {
			d.index()
		}
		from, to, size := d.find(at, fresh)
		if size == 0 {
			break
		}
		if d.add(d.version[fresh:to], from, size); len(d.delta) > d.most {
			return false
		}
		at = to + size
		fresh = at
	}
	if len(d.version)-fresh > d.most {
		return false
	}
	if fresh < len(d.version) {
		d.add(d.version[fresh:], 0, 0)
	}
	return true
}

// find looks for the next stretch of base from at on, and how much of what is before it and not written, from fresh on, belongs to it. The
// size is 0 when there is none, or when it is too far.
func (d *maker) find(at, fresh int) (from, to, size int) {
	s := sum(d.version[at:])
	for {
		if place := d.places[d.slot(s)]; place > 0 {
			from, to = int(place)-1, at
			if size = matching(d.base[from:], d.version[to:]); size >= block {
				for from > 0 && to > fresh && d.base[from-1] == d.version[to-1] {
					from, to, size = from-1, to-1, size+1
				}
				return from, to, size
			}
		}
		if at+block >= len(d.version) || at-fresh > d.most {
			return 0, 0, 0
		}
		s = s*multiplier + uint64(d.version[at+block]) - out*uint64(d.version[at])
		at++
	}
}

func (d *maker) add(fresh []byte, from, size int) {
	d.delta = binary.AppendUvarint(d.delta, uint64(len(fresh)))
	d.delta = append(d.delta, fresh...)
	d.delta = binary.AppendUvarint(d.delta, uint64(from))
	d.delta = binary.AppendUvarint(d.delta, uint64(size))
}

// stride is how many bytes are compared at once.
const stride = 4 << 10

// matching is how many bytes two have in common at their beginning.
func matching(a, b []byte) int {
	n := min(len(a), len(b))
	at := 0
	for at+stride <= n && bytes.Equal(a[at:at+stride], b[at:at+stride]) {
		at += stride
	}
	for at < n && a[at] == b[at] {
		at++
	}
	return at
}

// errBad is the error of what [Make] did not make of that version and that base.
var errBad = errors.New("a delta is not what was made")

// Apply returns the version of size bytes that delta tells by base. What Make did not make is an error, or gives another version: who must
// know holds delta and base to their digests.
func Apply(base, delta []byte, size int) ([]byte, error) {
	if size < 0 {
		return nil, errBad
	}
	var version []byte
	for first := true; len(delta) > 0; first = false {
		fresh, n := binary.Uvarint(delta)
		if n <= 0 || fresh > uint64(len(delta)-n) || fresh > uint64(size-len(version)) {
			return nil, errBad
		}
		news := delta[n : n+int(fresh)]
		delta = delta[n+int(fresh):]
		from, n := binary.Uvarint(delta)
		if n <= 0 {
			return nil, errBad
		}
		long, m := binary.Uvarint(delta[n:])
		if m <= 0 || from > uint64(len(base)) || long > uint64(len(base))-from || long > uint64(size-len(version)-int(fresh)) {
			return nil, errBad
		}
		delta = delta[n+m:]
		if first {
			version = make([]byte, 0, min(size, len(base)+len(delta)+len(news)))
		}
		version = append(append(version, news...), base[from:from+long]...)
	}
	if len(version) != size {
		return nil, errBad
	}
	return version, nil
}
