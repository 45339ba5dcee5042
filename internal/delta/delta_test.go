package delta_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"superstep.dev/internal/delta"
)

// TestAVersionIsToldByAnyOther: whatever both are, the version comes back.
func TestAVersionIsToldByAnyOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SliceOfN(rapid.Byte(), 0, 100)
		parts := rapid.SliceOfN(unit, 1, 12).Draw(t, "parts")
		put := func(name string) (out []byte) {
			for _, at := range rapid.SliceOfN(rapid.IntRange(0, len(parts)-1), 0, 40).Draw(t, name) {
				out = append(out, parts[at]...)
			}
			return out
		}
		base, version := put("base"), put("version")
		d, ok := delta.Make(base, version, 1<<20)
		if !ok {
			t.Fatal("a megabyte was not enough")
		}
		got, err := delta.Apply(base, d, len(version))
		if err != nil || !bytes.Equal(got, version) {
			t.Fatalf("%v: another version came back", err)
		}
	})
}

// talk is a state of n texts, as a run leaves it: what changes stands before the texts and behind them.
func talk(n int) []byte {
	from := rand.New(rand.NewPCG(1, 2))
	texts := make([]string, n)
	for i := range texts {
		drawn := make([]byte, 768)
		for at := range drawn {
			drawn[at] = byte(from.Uint32())
		}
		texts[i] = `"` + base64.StdEncoding.EncodeToString(drawn) + `"`
	}
	return fmt.Appendf(nil, `{"graph":"talk","head":{"id":"c-%x","step":%d,"values":{"texts":[%s],"turn":%d}},"seq":%d}`,
		n*7919, n, strings.Join(texts, ","), n, 3*n)
}

// TestATurnTakesWhatItAdds: whatever the conversation's length, and however many turns are told at once.
func TestATurnTakesWhatItAdds(t *testing.T) {
	t.Parallel()
	for _, turns := range []int{20, 500, 4000} {
		for _, more := range []int{0, 1, 8} {
			base, version := talk(turns), talk(turns+more)
			d, ok := delta.Make(base, version, delta.MostBytes)
			require.True(t, ok)
			assert.Less(t, len(d), more*1100+200, "%d turns, %d more", turns, more)
			got, err := delta.Apply(base, d, len(version))
			require.NoError(t, err)
			require.True(t, bytes.Equal(got, version))
		}
	}
	_, ok := delta.Make(talk(100), bytes.Repeat([]byte("another value. "), 1000), delta.MostBytes)
	assert.True(t, ok, "what repeats nothing is written, while it is small enough")
	_, ok = delta.Make(talk(100), bytes.Repeat([]byte("another value. "), 10_000), delta.MostBytes)
	assert.False(t, ok)
	_, ok = delta.Make(nil, talk(100), delta.MostBytes)
	assert.False(t, ok)
	_, ok = delta.Make(talk(100), talk(100), 0)
	assert.False(t, ok)
}

// TestVersionsAreReadByFewDeltas: and who has a version has the base of the next one.
func TestVersionsAreReadByFewDeltas(t *testing.T) {
	t.Parallel()
	most := 0
	for n := 1; n <= delta.Last; n++ {
		steps := 0
		for at := n; at > 0; at = delta.Base(at) {
			steps++
		}
		most = max(most, steps)
		before := n - 1
		for before != delta.Base(n) {
			require.Positive(t, before)
			before = delta.Base(before)
		}
	}
	assert.Equal(t, 7, most)
	next, ok := delta.Next(delta.Last)
	assert.False(t, ok, next)
	assert.LessOrEqual(t, delta.Worth(100, 60), 0, "all that is read for a version is at most half of what it is")
}

// FuzzApply: a delta that somebody else wrote is refused, or makes a value of the size that was asked for.
func FuzzApply(f *testing.F) {
	base := talk(3)
	d, _ := delta.Make(base, talk(4), delta.MostBytes)
	f.Add(base, d, len(talk(4)))
	f.Add([]byte("x"), []byte{0, 0, 1, 0xff}, 5)
	f.Fuzz(func(t *testing.T, base, d []byte, size int) {
		if got, err := delta.Apply(base, d, size); err == nil && len(got) != size {
			t.Fatalf("%d bytes, not %d", len(got), size)
		}
	})
}

func BenchmarkMake(b *testing.B) {
	base, version := talk(2000), talk(2001)
	b.SetBytes(int64(len(version)))
	for b.Loop() {
		if _, ok := delta.Make(base, version, delta.MostBytes); !ok {
			b.Fatal("too large")
		}
	}
}
