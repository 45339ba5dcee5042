package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"superstep.dev/thread/secret"
	"superstep.dev/thread/storage"
)

const marker = "a marker that nobody may read"

// sizes are those at which the form changes, and beside them.
var sizes = []int{0, 1, 255, 256, 64 << 10, 64<<10 + 1, 300 << 10, 5 << 20}

func TestWhatIsSealedIsOpened(t *testing.T) {
	t.Parallel()
	path := written(t, ring(t, "k-1", "k-2"))
	writer, err := secret.File(path, secret.Options{})
	require.NoError(t, err)
	reader, err := secret.File(path, secret.Options{})
	require.NoError(t, err)
	for _, size := range sizes {
		for _, data := range [][]byte{words(size, 1), bytes.Repeat([]byte{'a'}, size)} {
			p := payload(append(data, marker...))
			sealed := encode(t, writer, p)
			require.Equal(t, "k-2", string(sealed.Metadata[secret.MetadataKey]), "the newest key writes")
			all, err := proto.Marshal(sealed)
			require.NoError(t, err)
			require.NotContains(t, string(all), marker)
			require.NotContains(t, string(all), "json/plain", "what it is of is sealed too")
			got, err := decode(reader, sealed)
			require.NoError(t, err)
			require.True(t, proto.Equal(p, got), "%d bytes", size)
		}
	}
}

// TestSmallPayloadsLookDifferent though they are equal, and large ones take the room of what is new in them.
func TestSmallPayloadsLookDifferent(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, ring(t, "k-1"))
	small := payload([]byte(marker))
	require.False(t, proto.Equal(encode(t, keys, small), encode(t, keys, small)))
	large := payload(words(200<<10, 1))
	require.True(t, proto.Equal(encode(t, keys, large), encode(t, keys, large)))
	other := keysOf(t, ring(t, "k-1"))
	require.False(t, proto.Equal(encode(t, keys, large), encode(t, other, large)), "another key under the same id")
}

// TestAListThatGrowsTakesWhatItGrowsBy in a storage though it is sealed there, also when something before the list changes.
func TestAListThatGrowsTakesWhatItGrowsBy(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, ring(t, "k-1"))
	dir := t.TempDir()
	values, err := storage.Files(dir, storage.Options{})
	require.NoError(t, err)
	driver := values.External().Drivers[0]
	var said []string
	for i := range 1000 {
		said = append(said, string(words(10<<10, uint64(i))))
	}
	stored := 0
	for turn := 100; turn <= len(said); turn += 100 {
		p := payload(fmt.Appendf(nil, `{"step":%d,"messages":[%q]}`, turn*7919, strings.Join(said[:turn], `","`)))
		stored += len(p.Data)
		_, err := driver.Store(converter.StorageDriverStoreContext{Context: t.Context()}, []*commonpb.Payload{encode(t, keys, p)})
		require.NoError(t, err)
	}
	took := 0
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		object, err := os.ReadFile(path)
		took += len(object)
		require.NotContains(t, string(object), said[0][:64])
		return err
	}))
	t.Logf("%d bytes said, %d handed to the storage, %d lie there", 1000*10<<10, stored, took)
	assert.Less(t, took, 1000*10<<10*5/4)
	assert.Greater(t, stored, 4*took)
}

// TestWhatWasChangedIsNotOpened: no bit of a sealed payload can be changed, no part left out, moved or taken from elsewhere.
func TestWhatWasChangedIsNotOpened(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, ring(t, "k-1", "k-2"))
	for _, size := range []int{20, 200 << 10} {
		sealed := encode(t, keys, payload(words(size, 2)))
		for at := 0; at < len(sealed.Data); at += 1 + len(sealed.Data)/400 {
			bad := proto.CloneOf(sealed)
			bad.Data[at] ^= 1 << (at % 8)
			_, err := decode(keys, bad)
			require.Error(t, err, "byte %d of %d", at, len(sealed.Data))
			bad.Data = bad.Data[:at]
			_, err = decode(keys, bad)
			require.Error(t, err, "cut at %d", at)
		}
		bad := proto.CloneOf(sealed)
		bad.Metadata[secret.MetadataKey] = []byte("k-1")
		_, err := decode(keys, bad)
		require.ErrorIs(t, err, secret.ErrWrongKey)
	}
	a, b := parts(encode(t, keys, payload(words(300<<10, 3)))), parts(encode(t, keys, payload(words(300<<10, 4))))
	require.Greater(t, len(a), 3)
	swapped := append([][]byte{a[1], a[0]}, a[2:]...)
	for name, of := range map[string][][]byte{"moved": swapped, "left out": a[1:], "twice": append([][]byte{a[0]}, a...), "no table": a[:len(a)-1],
		"only a table": a[len(a)-1:], "another's table": append(append([][]byte{}, a[:len(a)-1]...), b[len(b)-1]),
		"another's piece": append([][]byte{b[0]}, a[1:]...)} {
		_, err := decode(keys, &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(secret.Encoding), secret.MetadataKey: []byte("k-2")},
			Data: append([]byte{2}, bytes.Join(of, nil)...)})
		require.Error(t, err, name)
	}
}

// parts are those of a payload in pieces, with their lengths.
func parts(p *commonpb.Payload) (out [][]byte) {
	for data := p.Data[1:]; len(data) > 0; {
		n := 4 + 24 + int(data[2])<<8 + int(data[3]) + int(data[1])<<16
		out, data = append(out, data[:n]), data[n:]
	}
	return out
}

// TestOneClearErrorEach: what is missing, and what to do, in one line without a byte of a key.
func TestOneClearErrorEach(t *testing.T) {
	t.Parallel()
	first, other := ring(t, "k-1"), ring(t, "k-1")
	sealed := encode(t, keysOf(t, first), payload([]byte(marker)))
	var none *secret.Keys
	for _, c := range []struct {
		keys *secret.Keys
		kind error
		says []string
	}{
		{none, secret.ErrNoKeys, []string{`"k-1"`, "no keys", "--keys FILE"}},
		{keysOf(t, ring(t, "k-2", "k-3")), secret.ErrUnknownKey, []string{`"k-1"`, "k-2, k-3", "put that key back"}},
		{keysOf(t, other), secret.ErrWrongKey, []string{`"k-1"`, "another key", "keys of the workers"}},
	} {
		_, err := decode(c.keys, sealed)
		require.ErrorIs(t, err, c.kind)
		for _, word := range c.says {
			require.ErrorContains(t, err, word)
		}
		harmless(t, err.Error(), first, other)
		require.NotContains(t, err.Error(), "\n")
	}
	bad := proto.CloneOf(sealed)
	bad.Metadata[secret.MetadataKey] = []byte("\x1b[2J")
	_, err := decode(none, bad)
	require.ErrorIs(t, err, secret.ErrDamaged)
	require.NotContains(t, err.Error(), "\x1b")
	plain := payload([]byte("from before there were keys"))
	got, err := decode(keysOf(t, first), plain)
	require.NoError(t, err)
	require.True(t, proto.Equal(plain, got))
}

// harmless fails when a text has bytes of a key.
func harmless(t *testing.T, text string, rings ...secret.Ring) {
	t.Helper()
	for _, r := range rings {
		var all struct{ Keys []struct{ Key []byte } }
		require.NoError(t, json.Unmarshal(r.Text(), &all))
		for _, k := range all.Keys {
			require.NotContains(t, text, base64.StdEncoding.EncodeToString(k.Key)[:12])
			require.NotContains(t, text, fmt.Sprintf("%x", k.Key[:8]))
			require.NotContains(t, text, fmt.Sprint(k.Key[:8]))
			require.NotContains(t, text, string(k.Key[:8]))
		}
	}
}

// TestConverter: outside of workflow code an error comes back, within it the task stops.
func TestConverter(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, ring(t, "k-1"))
	var none *secret.Keys
	c, open := keys.Converter(nil), none.Converter(nil)
	require.True(t, secret.Hides(c))
	require.False(t, secret.Hides(open))
	require.False(t, secret.Hides(nil))
	require.True(t, secret.Hides(converter.GetDefaultDataConverter()), "nobody knows what others do")
	all, err := c.ToPayloads(marker, 7)
	require.NoError(t, err)
	var text string
	var n int
	require.NoError(t, c.FromPayloads(all, &text, &n))
	require.Equal(t, marker, text)
	require.ErrorIs(t, open.FromPayloads(all, &text, &n), secret.ErrNoKeys)
	require.True(t, secret.Concerns(open.FromPayload(all.Payloads[0], &text)))
	plain := converter.GetDefaultDataConverter().FromPayload(all.Payloads[0], &text)
	require.True(t, secret.Concerns(plain), "%v", plain)
	require.False(t, secret.Concerns(nil))

	within := open.(converter.ContextAware).WithWorkflowContext(nil)
	within = converter.WithDataConverterSerializationContext(within, converter.WorkflowSerializationContext{})
	stops := func(do func()) {
		t.Helper()
		defer func() {
			err, _ := recover().(error)
			require.ErrorIs(t, err, secret.ErrNoKeys)
		}()
		do()
	}
	stops(func() { _ = within.FromPayloads(all, &text, &n) })
	stops(func() { _ = within.FromPayload(all.Payloads[0], &text) })
	require.Error(t, within.FromPayload(&commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("other")}}, &text), "others stay errors")
}

// FuzzDecode: whatever the server sends, what comes back was sealed by who has the key, and nothing panics or takes all memory.
func FuzzDecode(f *testing.F) {
	keys := keysOfFuzz(f)
	for _, size := range []int{0, 300, 100 << 10} {
		out, err := keys.Codec().Encode([]*commonpb.Payload{payload(words(size, 9))})
		require.NoError(f, err)
		f.Add("k-1", out[0].Data, uint(7), byte(1))
	}
	f.Add("k-1", []byte{2, 0xff, 0xff, 0xff, 0xff}, uint(0), byte(0))
	f.Add("", []byte{}, uint(0), byte(0))
	f.Fuzz(func(t *testing.T, id string, data []byte, at uint, change byte) {
		if len(data) > 0 {
			data = bytes.Clone(data)
			data[at%uint(len(data))] ^= change
		}
		got, err := decode(keys, &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte(secret.Encoding), secret.MetadataKey: []byte(id)}, Data: data})
		if err == nil && string(got.GetMetadata()["of"]) != "a test" {
			t.Fatal("nobody has sealed that")
		}
	})
}

func keysOfFuzz(f *testing.F) *secret.Keys {
	r, _, err := secret.Ring{}.Rotate("k-1", day, day)
	require.NoError(f, err)
	path := f.TempDir() + "/keys"
	require.NoError(f, writeFile(path, r.Text()))
	keys, err := secret.File(path, secret.Options{})
	require.NoError(f, err)
	return keys
}
