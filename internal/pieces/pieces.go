// Package pieces cuts large values where their content says so: what two of them have in common mostly comes to the same pieces.
package pieces

import (
	"bytes"
	"errors"
	"io"
	"sync"

	"github.com/restic/chunker"
)

// A piece has about 40 KiB, and at most Most. Smaller ones make more of them, larger ones make more of what two values have in
// common different.
const (
	least, bits = 8 << 10, 15
	Most        = 256 << 10
)

// Polynomial says where values are cut that hide nothing from each other. It is irreducible and chosen at random, once: with
// another one the same value is cut elsewhere, and shares nothing with what was stored before.
const Polynomial = chunker.Pol(0x3DA3358B4DC173)

// cutter is what cuts one value after the other; buffer takes a copy of each piece that nobody needs.
type cutter struct {
	chunker *chunker.Chunker
	buffer  []byte
}

var cutters = sync.Pool{New: func() any { return &cutter{chunker: chunker.New(nil, Polynomial)} }}

// Cut divides data at what a polynomial says of its content: behind what is inserted, data is cut in the same places as without.
// The pieces are parts of data.
func Cut(data []byte, at chunker.Pol) ([][]byte, error) {
	c := cutters.Get().(*cutter)
	defer cutters.Put(c)
	c.chunker.ResetWithBoundaries(bytes.NewReader(data), at, least, Most)
	c.chunker.SetAverageBits(bits)
	var out [][]byte
	for {
		piece, err := c.chunker.Next(c.buffer[:0])
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		c.buffer = piece.Data
		out = append(out, data[piece.Start:piece.Start+piece.Length])
	}
}
