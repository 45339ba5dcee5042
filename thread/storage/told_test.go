package storage_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"superstep.dev/internal/delta"
	"superstep.dev/thread/storage"
)

// talk is the state of a conversation as a run leaves it after some turns: what changes stands before the texts and behind them.
func talk(turns int) *commonpb.Payload {
	data := fmt.Appendf(nil, `{"id":"c-%x","step":%d,"texts":[`, turns*7919, turns)
	for turn := range turns {
		data = append(append(data, words(1<<10, uint64(turn))...), ',')
	}
	return payload(fmt.Appendf(data, `""],"turns":%d}`, turns))
}

// told are claims of a conversation that goes on turn by turn.
func told(t *testing.T, s *storage.Storage, first, last int) (claims []converter.StorageDriverClaim) {
	t.Helper()
	for turns := first; turns <= last; turns++ {
		claim, err := store(t.Context(), s, talk(turns))
		require.NoError(t, err)
		claims = append(claims, claim...)
	}
	return claims
}

// formOf says how a value is stored.
func formOf(claim converter.StorageDriverClaim) string { return claim.ClaimData["form"] }

// fileOf is the file of the object that a claim names.
func fileOf(dir string, claim converter.StorageDriverClaim) string {
	space := claim.ClaimData["space"]
	return filepath.Join(dir, space[:2], space, claim.ClaimData["sha256"])
}

// TestTurnsAreToldByTheOnesBefore: all states of a conversation are read by a process that knows nothing, newest and oldest first; one in
// some is whole; and all together take some times of what was said.
func TestTurnsAreToldByTheOnesBefore(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	const first, last = 100, 400
	claims := told(t, s, first, last)
	_, took := lying(t, dir)
	whole, since := 0, 0
	for i, claim := range claims {
		since++
		if formOf(claim) != "delta" {
			assert.True(t, i == 0 || since > 40, "state %d is whole", i)
			whole, since = whole+1, 0
		}
		require.LessOrEqual(t, since, delta.Last)
	}
	t.Logf("%d states of up to %d KiB, %d of them whole, take %d bytes a turn", len(claims), last, whole, took/(last-first))
	assert.GreaterOrEqual(t, whole, 3)
	assert.Less(t, took/(last-first), 6<<10)
	for _, backwards := range []bool{true, false} {
		reader := reopened(t, dir)
		for i := range claims {
			if backwards {
				i = len(claims) - 1 - i
			}
			got, err := retrieve(t.Context(), reader, claims[i])
			require.NoError(t, err)
			require.True(t, proto.Equal(talk(first+i), got[0]), "state %d", i)
		}
	}
}

// counting are objects that count how often they are read.
type counting struct {
	storage.Objects
	mu   sync.Mutex
	gets map[string]int
}

func (c *counting) Get(ctx context.Context, name string) ([]byte, error) {
	c.mu.Lock()
	c.gets[name]++
	c.mu.Unlock()
	return c.Objects.Get(ctx, name)
}

// inDir are the objects in a directory, without a storage's memory.
type inDir struct {
	storage.Objects
	dir string
}

func (d inDir) path(name string) string { return filepath.Join(d.dir, name[:2], name) }

func (d inDir) Where() string { return d.dir }

func (d inDir) Has(_ context.Context, name string) (bool, error) {
	_, err := os.Stat(d.path(name))
	return err == nil, nil
}

func (d inDir) Get(_ context.Context, name string) ([]byte, error) { return os.ReadFile(d.path(name)) }

func (d inDir) Put(_ context.Context, name string, object []byte) error {
	return os.WriteFile(d.path(name), object, 0o600)
}

// TestAStateIsReadInFewCalls: however many turns there were since the last whole one. A process that goes on from it reads the next one
// in one.
func TestAStateIsReadInFewCalls(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	claims := told(t, s, 100, 240)
	most := 0
	for i, claim := range claims {
		c := &counting{Objects: inDir{dir: dir}, gets: map[string]int{}}
		reader := storage.New(c, storage.Options{})
		_, err := retrieve(t.Context(), reader, claim)
		require.NoError(t, err)
		roots := 0
		for name := range c.gets {
			for _, other := range claims {
				if other.ClaimData["sha256"] == filepath.Base(name) {
					roots++
				}
			}
		}
		most = max(most, roots)
		before := len(c.gets)
		if i+1 < len(claims) && formOf(claims[i+1]) == "delta" {
			_, err = retrieve(t.Context(), reader, claims[i+1])
			require.NoError(t, err)
			assert.Equal(t, before+1, len(c.gets), "state %d behind the one before", i+1)
		}
	}
	assert.LessOrEqual(t, most, 7+1, "the seven deltas by which a version is read, and a whole one")
	assert.Greater(t, most, 3)
}

// TestAChainWithAGap: what was erased or harmed is named, with what goes on from it; what does not is read; a process that has the gap in
// memory stores the next state whole, and that is read.
func TestAChainWithAGap(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]struct {
		kind error
		do   func(path string) error
	}{
		"erased": {storage.ErrMissing, os.Remove},
		"harmed": {storage.ErrDamaged, func(path string) error { return os.WriteFile(path, []byte("garbage"), 0o600) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, dir := opened(t)
			claims := told(t, s, 100, 120)
			middle := 16 // numbers 17 to 20 are told by it
			require.NoError(t, harm.do(fileOf(dir, claims[middle])))
			for i, claim := range claims {
				got, err := retrieve(t.Context(), reopened(t, dir), claim)
				if i < middle {
					require.NoError(t, err)
					require.True(t, proto.Equal(talk(100+i), got[0]))
					continue
				}
				require.ErrorIs(t, err, harm.kind)
				require.ErrorContains(t, err, claims[middle].ClaimData["sha256"])
				require.ErrorContains(t, err, claim.ClaimData["sha256"])
				var told *storage.Error
				require.ErrorAs(t, err, &told)
				require.Equal(t, i > middle, told.For != "")
			}
			if harm.kind == storage.ErrDamaged {
				return
			}
			next := told(t, s, 121, 121)
			require.Equal(t, "pieces", formOf(next[0]))
			got, err := retrieve(t.Context(), reopened(t, dir), next...)
			require.NoError(t, err)
			require.True(t, proto.Equal(talk(121), got[0]))
		})
	}
}

// TestAGapInPieces: a state is told by no other whose pieces are not there any more.
func TestAGapInPieces(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	claims := told(t, s, 200, 203)
	objects, _ := lying(t, dir)
	for _, claim := range claims {
		delete(objects, claim.ClaimData["sha256"])
	}
	for _, path := range objects { // any piece
		require.NoError(t, os.Remove(path))
		break
	}
	_, err := retrieve(t.Context(), reopened(t, dir), claims[3])
	require.ErrorIs(t, err, storage.ErrMissing)
	next := told(t, s, 204, 204)
	require.Equal(t, "pieces", formOf(next[0]))
	_, err = retrieve(t.Context(), reopened(t, dir), next...)
	require.NoError(t, err)
}

// TestAStateKeepsWhatItIsToldBy: whoever removes what is old removes nothing that a new state needs.
func TestAStateKeepsWhatItIsToldBy(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	told(t, s, 200, 210)
	objects, _ := lying(t, dir)
	old := time.Now().Add(-60 * 24 * time.Hour)
	for _, path := range objects {
		require.NoError(t, os.Chtimes(path, old, old))
	}
	next := told(t, s, 211, 211)
	require.Equal(t, "delta", formOf(next[0]))
	removed := 0
	for _, path := range objects {
		info, err := os.Stat(path)
		require.NoError(t, err)
		if time.Since(info.ModTime()) > 24*time.Hour {
			removed++
			require.NoError(t, os.Remove(path))
		}
	}
	require.NotZero(t, removed, "states of which nothing goes on")
	got, err := retrieve(t.Context(), reopened(t, dir), next...)
	require.NoError(t, err)
	require.True(t, proto.Equal(talk(211), got[0]))
}

// TestTwoGoOnFromOneState: both are read, as are those that go on from each.
func TestTwoGoOnFromOneState(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	claims := told(t, s, 100, 110)
	lines := make([][]converter.StorageDriverClaim, 2)
	var both sync.WaitGroup
	for i := range lines {
		mine := reopened(t, dir)
		_, err := retrieve(t.Context(), mine, claims[10])
		require.NoError(t, err)
		both.Go(func() {
			for turns := range 20 {
				p := talk(111 + turns)
				p.Data = append(p.Data, fmt.Sprintf(" line %d", i)...)
				claim, err := store(context.Background(), mine, p)
				assert.NoError(t, err)
				lines[i] = append(lines[i], claim...)
			}
		})
	}
	both.Wait()
	for i, line := range lines {
		for turns, claim := range line {
			require.Equal(t, "delta", formOf(claim))
			got, err := retrieve(t.Context(), reopened(t, dir), claim)
			require.NoError(t, err)
			require.Equal(t, string(talk(111+turns).Data)+fmt.Sprintf(" line %d", i), string(got[0].Data))
		}
	}
}

// TestWhatIsReadIsTheReaders: a codec may decode in place.
func TestWhatIsReadIsTheReaders(t *testing.T) {
	t.Parallel()
	s, _ := opened(t)
	p := talk(100)
	claims, err := store(t.Context(), s, p)
	require.NoError(t, err)
	clear(p.Data)
	claims = append(claims, told(t, s, 101, 102)...)
	for range 2 {
		got, err := retrieve(t.Context(), s, claims...)
		require.NoError(t, err)
		for i := range got {
			require.True(t, proto.Equal(talk(100+i), got[i]))
			clear(got[i].Data)
			got[i].Metadata["encoding"][0] = 'x'
		}
	}
}

// TestOfLargeValuesLittleIsRemembered: what does not fit into memory is stored whole, and read.
func TestOfLargeValuesLittleIsRemembered(t *testing.T) {
	t.Parallel()
	s, err := storage.Files(filepath.Join(t.TempDir(), "values"), storage.Options{CacheBytes: 300 << 10})
	require.NoError(t, err)
	claims := told(t, s, 100, 400)
	deltas := 0
	for i, claim := range claims {
		got, err := retrieve(t.Context(), s, claim)
		require.NoError(t, err)
		require.True(t, proto.Equal(talk(100+i), got[0]))
		if formOf(claim) == "delta" {
			deltas++
		}
	}
	assert.NotZero(t, deltas)
	assert.Equal(t, "pieces", formOf(claims[len(claims)-1]))
}

// TestHostileDeltas: whoever can write into the storage can write a delta, and a claim for it.
func TestHostileDeltas(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	claims := told(t, s, 100, 102)
	digest, err := hex.DecodeString(claims[0].ClaimData["sha256"])
	require.NoError(t, err)
	size := len(talk(100).Data)
	head := func(number, form byte, of []byte, size int, d ...byte) []byte {
		data := append([]byte{number, form}, of...)
		for ; size >= 0x80; size >>= 7 {
			data = append(data, byte(size)|0x80)
		}
		return append(append(data, byte(size)), d...)
	}
	for name, data := range map[string][]byte{
		"nothing":             {},
		"cut off":             head(1, 1, digest[:20], 0)[:22],
		"number 0":            head(0, 1, digest, size),
		"a number too high":   head(200, 1, digest, size),
		"a whole base":        head(3, 1, digest, size),
		"no whole base":       head(2, 2, digest, size),
		"a form":              head(1, 7, digest, size),
		"a size":              head(1, 1, digest, size+1),
		"a huge size":         head(1, 1, digest, 1<<40),
		"another object":      head(1, 1, make([]byte, 32), size),
		"a stretch too far":   head(1, 1, digest, size, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 1),
		"a stretch too long":  head(1, 1, digest, size, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f),
		"news that are not":   head(1, 1, digest, size, 0x7f, 'x'),
		"less than there are": head(1, 1, digest, size, 0, 0, 10),
	} {
		root, err := proto.Marshal(payload(data))
		require.NoError(t, err)
		claim := converter.StorageDriverClaim{ClaimData: map[string]string{"space": claims[0].ClaimData["space"], "form": "delta", "bytes": "1000",
			"sha256": digestOf(root)}}
		write(t, fileOf(dir, claim), append([]byte{0}, root...))
		for _, reader := range []*storage.Storage{s, reopened(t, dir)} {
			_, err = retrieve(t.Context(), reader, claim)
			assert.Error(t, err, name)
		}
	}
	for _, form := range []string{"whole", "pieces", "delta"} {
		for i, claim := range claims {
			other := converter.StorageDriverClaim{ClaimData: map[string]string{}}
			for key, value := range claim.ClaimData {
				other.ClaimData[key] = value
			}
			other.ClaimData["form"] = form
			_, err = retrieve(t.Context(), s, other)
			assert.Equal(t, form == formOf(claim), err == nil, "%d as %s", i, form)
		}
	}
}

// TestALongChainIsRefused: a version is told by the one that its number says and by no other, so that nobody makes others read a chain as
// long as there are numbers, each of whose values may be as large as values are.
func TestALongChainIsRefused(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	claims := told(t, s, 100, 102)
	size := len(talk(101).Data)
	on := claims[1] // number 1, by which no other is told
	for _, number := range []byte{3, 5, 127} {
		digest, err := hex.DecodeString(on.ClaimData["sha256"])
		require.NoError(t, err)
		data := binary.AppendUvarint(append([]byte{number, 2}, digest...), uint64(size))
		data = binary.AppendUvarint(append(data, 0, 0), uint64(size)) // the same value
		root, err := proto.Marshal(payload(data))
		require.NoError(t, err)
		on = converter.StorageDriverClaim{ClaimData: map[string]string{"space": on.ClaimData["space"], "form": "delta", "bytes": strconv.Itoa(size),
			"sha256": digestOf(root)}}
		write(t, fileOf(dir, on), append([]byte{0}, root...))
		for name, reader := range map[string]*storage.Storage{"knows the base": s, "knows nothing": reopened(t, dir)} {
			_, err = retrieve(t.Context(), reader, on)
			require.ErrorIs(t, err, storage.ErrDamaged, "number %d, and who reads %s", number, name)
		}
		text, err := protojson.Marshal(&sdkpb.ExternalStorageReference{DriverName: "superstep", ClaimData: on.ClaimData})
		require.NoError(t, err)
		reference := &commonpb.Payload{Data: text, Metadata: map[string][]byte{"encoding": []byte("json/protobuf"),
			"messageType": []byte("temporal.api.sdk.v1.ExternalStorageReference")}}
		err = s.References(t.Context(), &commonpb.Payloads{Payloads: []*commonpb.Payload{reference}}, func(string) error { return nil })
		require.ErrorIs(t, err, storage.ErrDamaged, "number %d", number)
	}
}

// TestReferencesOfADelta: an archive takes all that it is told by.
func TestReferencesOfADelta(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	c := s.Converter(converter.GetDefaultDataConverter())
	var last *commonpb.Payload
	for turns := 200; turns <= 211; turns++ { // number 11 is told by 10, 8 and the whole one
		var err error
		last, err = c.ToPayload(base64.StdEncoding.EncodeToString(talk(turns).Data))
		require.NoError(t, err)
	}
	var found []string
	reader := reopened(t, dir)
	require.NoError(t, reader.References(t.Context(), &commonpb.Payloads{Payloads: []*commonpb.Payload{last}}, func(name string) error {
		found = append(found, name)
		return nil
	}))
	assert.Greater(t, len(found), 4+3)
	copied := filepath.Join(t.TempDir(), "copied")
	for _, name := range found {
		object, err := reader.Raw(t.Context(), name)
		require.NoError(t, err)
		path := filepath.Join(copied, name[:2], name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		write(t, path, object)
	}
	var text string
	require.NoError(t, reopened(t, copied).Converter(converter.GetDefaultDataConverter()).FromPayload(last, &text))
	assert.Equal(t, base64.StdEncoding.EncodeToString(talk(211).Data), text)
}
