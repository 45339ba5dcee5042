package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"superstep.dev/thread/storage"
)

// TestWhatIsStoredIsRead: of any size, by another process, with its metadata.
func TestWhatIsStoredIsRead(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	for _, size := range []int{2, 16 << 10, 64 << 10, 64<<10 + 1, 300 << 10, 5 << 20} {
		p := payload(words(size, uint64(size)))
		claims, err := store(t.Context(), s, p)
		require.NoError(t, err)
		for _, reader := range []*storage.Storage{s, reopened(t, dir)} {
			got, err := retrieve(t.Context(), reader, claims...)
			require.NoError(t, err)
			assert.True(t, proto.Equal(p, got[0]), "%d bytes", size)
		}
	}
}

// TestAnyValueIsRead: whatever its bytes are, and however often the same ones come.
func TestAnyValueIsRead(t *testing.T) {
	t.Parallel()
	s, _ := opened(t)
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "unit")
		p := payload(bytes.Repeat(unit, rapid.IntRange(1, 3000).Draw(t, "times")))
		claims, err := store(t.Context(), s, p, p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := retrieve(t.Context(), s, claims...)
		if err != nil || !proto.Equal(got[0], p) || !proto.Equal(got[1], p) {
			t.Fatalf("%v: another payload came back", err)
		}
	})
}

// TestAListThatGrowsTakesWhatItGrowsBy: of a conversation of a hundred turns that is stored whole after each, the storage holds
// little more than the conversation; also when something before the list changes each time.
func TestAListThatGrowsTakesWhatItGrowsBy(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	said := make([]string, 0, 1000)
	for i := range 1000 {
		said = append(said, string(words(10<<10, uint64(i))))
	}
	stored := 0
	for turn := 100; turn <= len(said); turn += 100 {
		data := fmt.Appendf(nil, `{"step":%d,"messages":[%s]}`, turn*7919, strings.Join(said[:turn], ","))
		stored += len(data)
		_, err := store(t.Context(), s, payload(data))
		require.NoError(t, err)
	}
	_, took := lying(t, dir)
	t.Logf("%d bytes said, %d handed to the storage, %d lie there", len(said)*10<<10, stored, took)
	assert.Less(t, took, 1000*10<<10*5/4)
	assert.Greater(t, stored, 5*took)
}

// TestEqualValuesTakeTheirRoomOnce: stored by any number of writers at once.
func TestEqualValuesTakeTheirRoomOnce(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	p := payload(words(400<<10, 1))
	first, err := store(t.Context(), s, p)
	require.NoError(t, err)
	files, took := lying(t, dir)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again, err := store(t.Context(), reopened(t, dir), p)
			assert.NoError(t, err)
			assert.Equal(t, first, again)
		})
	}
	all.Wait()
	after, tookAfter := lying(t, dir)
	assert.Equal(t, files, after)
	assert.Equal(t, took, tookAfter)
}

// TestSmallIsSmallerStored: what compresses takes less room, what does not hardly more.
func TestSmallIsSmallerStored(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	_, err := store(t.Context(), s, payload(bytes.Repeat([]byte("the same again. "), 20_000)))
	require.NoError(t, err)
	_, took := lying(t, dir)
	assert.Less(t, took, 20<<10)
}

// TestLettersAreSmallerStored: text that repeats nothing has few letters all the same.
func TestLettersAreSmallerStored(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	const size = 300 << 10
	_, err := store(t.Context(), s, payload(words(size, 1)))
	require.NoError(t, err)
	_, took := lying(t, dir)
	assert.Less(t, took, size*2/3)
}

// TestHostileClaims: whoever can write into a history can write a claim.
func TestHostileClaims(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	claims, err := store(t.Context(), s, payload(words(300<<10, 1)), payload(words(20<<10, 2)))
	require.NoError(t, err)
	write(t, dir+"/secret", []byte("a secret"))
	for name, change := range map[string]func(map[string]string){
		"a path":           func(c map[string]string) { c["sha256"] = "../../../../../../../../../../etc/passwd" },
		"a file beside":    func(c map[string]string) { c["sha256"] = "se/../secret" },
		"no object":        func(c map[string]string) { delete(c, "sha256") },
		"a huge size":      func(c map[string]string) { c["bytes"] = "99999999999999" },
		"the largest size": func(c map[string]string) { c["bytes"] = fmt.Sprint(storage.MaxValueBytes) },
		"a negative size":  func(c map[string]string) { c["bytes"] = "-1" },
		"a smaller size":   func(c map[string]string) { c["bytes"] = "100000" },
		"no form":          func(c map[string]string) { delete(c, "form") },
		"an unknown form":  func(c map[string]string) { c["form"] = "other" },
		"the other's form": func(c map[string]string) {
			c["form"] = map[string]string{"whole": "pieces", "pieces": "whole"}[c["form"]]
		},
		"another's object":  func(c map[string]string) { c["sha256"] = strings.Repeat("0", 64) },
		"an upper-case one": func(c map[string]string) { c["sha256"] = strings.ToUpper(c["sha256"]) },
	} {
		for _, claim := range claims {
			bad := map[string]string{}
			for key, value := range claim.ClaimData {
				bad[key] = value
			}
			change(bad)
			_, err := retrieve(t.Context(), s, converter.StorageDriverClaim{ClaimData: bad})
			assert.Error(t, err, name)
			if err != nil {
				assert.NotContains(t, err.Error(), "a secret")
			}
		}
	}
	_, err = retrieve(t.Context(), s, converter.StorageDriverClaim{})
	assert.Error(t, err)
}

// TestTooLargeAValue is refused before anything is written.
func TestTooLargeAValue(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	_, err := store(t.Context(), s, payload(make([]byte, storage.MaxValueBytes+1)))
	require.ErrorIs(t, err, storage.ErrTooLarge)
	files, _ := lying(t, dir)
	assert.Empty(t, files)
}

// TestConverter: whoever calls the server by hand stores and reads what the SDK would.
func TestConverter(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	c := s.Converter(converter.GetDefaultDataConverter())
	small, large := "small", string(words(100<<10, 3))
	payloads, err := c.ToPayloads(small, large)
	require.NoError(t, err)
	assert.Contains(t, string(payloads.Payloads[0].GetData()), small)
	assert.Less(t, proto.Size(payloads.Payloads[1]), 600)
	before := proto.CloneOf(payloads)
	for _, from := range []*storage.Storage{s, reopened(t, dir)} {
		var a, b string
		require.NoError(t, from.Converter(converter.GetDefaultDataConverter()).FromPayloads(payloads, &a, &b))
		assert.Equal(t, []string{small, large}, []string{a, b})
		require.NoError(t, from.Converter(converter.GetDefaultDataConverter()).FromPayload(payloads.Payloads[1], &b))
		assert.Equal(t, large, b)
	}
	assert.True(t, proto.Equal(before, payloads), "the caller's payloads stay as they are")

	var none *storage.Storage
	plain := none.Converter(converter.GetDefaultDataConverter())
	var text string
	require.ErrorIs(t, plain.FromPayloads(&commonpb.Payloads{Payloads: payloads.Payloads[1:]}, &text), storage.ErrNone)
	require.ErrorIs(t, plain.FromPayload(payloads.Payloads[1], &text), storage.ErrNone)
	inline, err := plain.ToPayload(large)
	require.NoError(t, err)
	assert.Greater(t, proto.Size(inline), 100<<10)
}

// TestEncodedBeforeStored: with a codec nothing readable lies in the storage.
func TestEncodedBeforeStored(t *testing.T) {
	t.Parallel()
	s, dir := opened(t)
	c := s.Converter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), converter.NewZlibCodec(converter.ZlibCodecOptions{AlwaysEncode: true})))
	const marker = "a marker that nobody may read"
	p, err := c.ToPayload(marker + string(words(200<<10, 4)))
	require.NoError(t, err)
	var back string
	require.NoError(t, c.FromPayload(p, &back))
	assert.Contains(t, back, marker)
	raw := reopened(t, dir).Converter(converter.GetDefaultDataConverter())
	assert.Error(t, raw.FromPayload(p, &back), "without the codec nobody reads it")
}

// TestAConverterThatKnowsItsContext is told of it before a storage as without one: it may have a key for each workflow.
func TestAConverterThatKnowsItsContext(t *testing.T) {
	s, _ := opened(t)
	for _, of := range []*storage.Storage{s, nil} {
		inner := &aware{DataConverter: converter.GetDefaultDataConverter()}
		told, ok := of.Converter(inner).(converter.ContextAware)
		require.True(t, ok)
		p, err := told.WithContext(t.Context()).ToPayload(1)
		require.NoError(t, err)
		require.Equal(t, "told", string(p.Metadata["context"]))
		require.NotNil(t, told.WithWorkflowContext(nil))
	}
}

// aware marks what it encodes once it was told of a context.
type aware struct {
	converter.DataConverter
	told bool
}

func (a *aware) WithWorkflowContext(converter.WorkflowContext) converter.DataConverter { return a }

func (a *aware) WithContext(context.Context) converter.DataConverter {
	return &aware{a.DataConverter, true}
}

func (a *aware) ToPayload(v any) (*commonpb.Payload, error) {
	p, err := a.DataConverter.ToPayload(v)
	if err == nil && a.told {
		p.Metadata["context"] = []byte("told")
	}
	return p, err
}
