package pregel

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// maxPlain is the size up to which a value itself is part of its checkpoint's digest. Of a longer one its SHA-256 is.
const maxPlain = 1 << 10

// newDigest begins the digest of a long value. Tests count what is written to it.
var newDigest = sha256.New

// valueDigest is the SHA-256 of one long value, with what makes that of the next one cheap. It is never changed.
//
// Most long values grow at their end: a list, a conversation, a text. Such a value has all bytes of the one before it but
// the last, the closing bracket or quote. So hash is over all bytes but the last, and only what is new is hashed. What a
// value's digest is does not depend on how it came about: it is that of its bytes, after a restart too.
type valueDigest struct {
	of   Held
	hash hash.Hash
	sum  [sha256.Size]byte
	// grows says that the value goes on where the one before it ended.
	grows bool
}

// digestValue makes the digest of a long value. before is that of the value that the channel had; it may be nil.
func digestValue(v Held, before *valueDigest) *valueDigest {
	d := &valueDigest{of: v}
	text, last := v.open()
	from := 0
	if before != nil {
		if had, _ := before.of.open(); bytes.HasPrefix(text, had) { // at once where they share their memory
			d.hash, from, d.grows = cloned(before.hash), len(had), true
		}
	}
	if d.hash == nil {
		d.hash, from = newDigest(), 0
	}
	d.hash.Write(text[from:])
	whole := cloned(d.hash)
	if whole == nil {
		d.sum = sha256.Sum256(v.Value())
		return d
	}
	whole.Write([]byte{last})
	whole.Sum(d.sum[:0])
	return d
}

// cloned returns a hash that goes on from where h is; nil where that cannot be done.
func cloned(h hash.Hash) hash.Hash {
	c, ok := h.(hash.Cloner)
	if !ok {
		return nil
	}
	same, err := c.Clone()
	if err != nil {
		return nil
	}
	return same
}

// appendIdentity appends what tells the cell's value apart from any other: its size, and the value or its SHA-256.
func (s *cell) appendIdentity(text []byte) []byte {
	text = binary.AppendUvarint(text, uint64(s.value.Len()))
	if s.value.Len() <= maxPlain {
		s.sum = nil
		return append(text, s.value.Value()...)
	}
	s.sum = digestValue(s.value, s.sum)
	return append(text, s.sum.sum[:]...)
}
