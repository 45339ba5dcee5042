package segment

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// blocks is a text that grows without being copied: the outcomes of a thousand tasks.
type blocks struct {
	all  [][]byte
	size int
}

// leastBlock is how many bytes a block of a text has at least.
const leastBlock = 8 << 10

// put adds an element to a list.
func (b *blocks) put(encoded []byte) {
	last := len(b.all) - 1
	if need := len(encoded) + 1; last < 0 || cap(b.all[last])-len(b.all[last]) < need {
		b.all = append(b.all, make([]byte, 0, max(need, leastBlock)))
		last++
	}
	if b.size > 0 {
		b.all[last] = append(b.all[last], ',')
		b.size++
	}
	b.all[last] = append(b.all[last], encoded...)
	b.size += len(encoded)
}

// packers are of the fastest level: outcomes are so much alike that the next ones gain little.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(io.Discard, flate.BestSpeed) // the level is known
	return w
}}

// packed is the text between two others, in the DEFLATE format.
func (b *blocks) packed(before, behind string) []byte {
	packed, _ := b.packedApart(before, 0, behind)
	return packed
}

// packedApart is packed, and the text behind the first part bytes of b can be unpacked alone, from at on; with no such part
// at is 0.
func (b *blocks) packedApart(before string, part int, behind string) (packed []byte, at int) {
	var out bytes.Buffer
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(&out)
	_, _ = io.WriteString(w, before) // into memory, as all that follows
	for _, block := range b.all {
		if part > 0 && part <= len(block) {
			_, _ = w.Write(block[:part])
			_ = w.Flush() // to a whole byte, and not as the last of the stream
			w.Reset(&out)
			at, block, part = out.Len(), block[part:], 0
		}
		part = max(part-len(block), 0)
		_, _ = w.Write(block)
	}
	_, _ = io.WriteString(w, behind)
	_ = w.Close()
	return out.Bytes(), at
}

// maxUnpacked bounds the text of a packed result: a segment leaves when its outcomes have maxSegmentBytes.
const maxUnpacked = 2 * maxOutcomeBytes

var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// unpack returns what was packed.
func unpack(packed []byte) ([]byte, error) {
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(min(8*len(packed), maxUnpacked))
	switch n, err := out.ReadFrom(io.LimitReader(r, maxUnpacked+1)); {
	case err != nil:
		return nil, err
	case n > maxUnpacked:
		return nil, fmt.Errorf("they have more than %d bytes", maxUnpacked)
	}
	return out.Bytes(), nil
}
