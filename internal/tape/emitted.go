package tape

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/crc32"

	"superstep.dev/graphadapter/pregel"
)

// MostUnderWay is of how many tasks at once a reader hands out what they emit before the history tells it: an offset says of each how
// much its holder has. What further tasks emit comes when others have ended.
const MostUnderWay = 100

// Emitted is how much of what a task emits a reader has: the attempt, the number of its values, and a digest of these.
type Emitted struct {
	Attempt, Count int
	Digest         uint32
}

// NothingEmitted is what a reader has of a task that has only begun.
var NothingEmitted = Emitted{Attempt: 1}

// With is what a reader has after one more emission.
func (m Emitted) With(e pregel.Event) Emitted {
	if e.Kind == pregel.EventReset {
		return Emitted{Attempt: e.Attempt}
	}
	value := append([]byte(e.Kind), Canonical(e.Value)...)
	return Emitted{Attempt: cmp.Or(m.Attempt, 1), Count: m.Count + 1, Digest: crc32.Update(m.Digest+1, crc32.IEEETable, value)}
}

// Canonical is a value's JSON without spaces and with the same escapes, however it was written on its way.
func Canonical(v pregel.Value) []byte {
	var plain, out bytes.Buffer
	if json.Compact(&plain, v) != nil {
		return v
	}
	json.HTMLEscape(&out, plain.Bytes())
	return out.Bytes()
}

// taskName is a task's key in an offset.
func taskName(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}
