package pregel

import (
	"bytes"
	"crypto/sha256"
	"testing"
)

// FuzzDigestValue: the digest of a value is its SHA-256, whatever the values before it were.
func FuzzDigestValue(f *testing.F) {
	f.Add([]byte(`["a"]`), []byte(`["a","b"]`), []byte(`["a","b","c"]`))
	f.Add([]byte(`["a"]`), []byte(`["a"]`), []byte(`["b"]`))
	f.Add([]byte(`"ab"`), []byte(`"a"`), []byte(`"`))
	f.Add([]byte(`[1]`), []byte(`[12]`), []byte(`[1]`))
	f.Fuzz(func(t *testing.T, one, two, three []byte) {
		var before *valueDigest
		for _, v := range [][]byte{one, two, three, append(bytes.Clone(three), one...), two} {
			if len(v) == 0 {
				continue
			}
			before = digestValue(Hold(v), before)
			if before.sum != sha256.Sum256(v) {
				t.Fatalf("the digest of %q is not its SHA-256", v)
			}
		}
	})
}
