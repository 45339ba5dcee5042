package superstep

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/jsonfit"
)

// document is what a list may be of: values, and what can be changed behind a copy's back.
type document struct {
	Title  string         `json:"title"`
	Rating float64        `json:"rating,omitempty"`
	Labels map[string]any `json:"labels,omitempty"`
	Next   *document      `json:"next,omitempty"`
	Parts  []document     `json:"parts"`
	Pair   [2][]int       `json:"pair,omitzero"`
	Body   []byte         `json:"body,omitempty"`
	When   time.Time      `json:"when,omitzero"`
	Raw    json.RawMessage
	Number json.Number `json:"number,omitempty"`
}

// flat has nothing that can be shared.
type flat struct {
	Name string  `json:"name"`
	Size int64   `json:"size,omitempty"`
	At   [2]bool `json:"at,omitzero"`
}

// counting decodes itself: what it shares is its own affair.
type counting struct{ seen *string }

func (c *counting) UnmarshalJSON(data []byte) error {
	text := string(data)
	c.seen = &text
	return nil
}

// read are fields of every kind over one text.
type read struct {
	Strings   List[string]           `json:"strings"`
	Flats     List[flat]             `json:"flats"`
	Documents List[document]         `json:"documents"`
	Anys      List[any]              `json:"anys"`
	Raws      List[json.RawMessage]  `json:"raws"`
	Counts    List[counting]         `json:"counts"`
	Lists     Topic[[]int64]         `json:"lists"`
	Words     Topic[string]          `json:"words"`
	Map       Map[document]          `json:"map"`
	Numbers   Map[int]               `json:"numbers"`
	Said      Messages               `json:"said"`
	Value     Value[document]        `json:"value"`
	Slice     Value[[]string]        `json:"slice"`
	Any       Value[any]             `json:"any"`
	Pointer   Value[*document]       `json:"pointer"`
	Custom    Value[counting]        `json:"custom"`
	Reduced   Reduced[[]any, newest] `json:"reduced"`
}

type newest struct{}

func (newest) Name() string { return "newest/v1" }

func (newest) Reduce(a, b []any) ([]any, error) { return b, nil }

// all returns what the fields hand out, by name.
func (r *read) all() map[string]any {
	return map[string]any{
		"strings": r.Strings.Get(), "flats": r.Flats.Get(), "documents": r.Documents.Get(), "anys": r.Anys.Get(), "raws": r.Raws.Get(),
		"counts": r.Counts.Get(), "lists": r.Lists.Get(), "words": r.Words.Get(), "map": r.Map.Get(), "numbers": r.Numbers.Get(),
		"said": r.Said.Get(), "value": r.Value.Get(), "slice": r.Slice.Get(), "any": r.Any.Get(), "pointer": r.Pointer.Get(),
		"custom": r.Custom.Get(), "reduced": r.Reduced.Get(),
	}
}

// spoil changes everything that can be changed through v.
func spoil(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			spoil(v.Elem())
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			spoil(v.Index(i))
			if v.Index(i).CanSet() {
				v.Index(i).SetZero()
			}
		}
		if v.Kind() == reflect.Slice && v.Len() < v.Cap() {
			spoil(v.Slice(v.Len(), v.Cap())) // what an append writes to
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		for _, k := range v.MapKeys() {
			spoil(v.MapIndex(k))
			v.SetMapIndex(k, reflect.Zero(v.Type().Elem()))
		}
		v.SetMapIndex(reflect.ValueOf("spoilt").Convert(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoil(v.Field(i))
				if v.Field(i).CanSet() {
					v.Field(i).SetZero()
				}
			}
		}
	}
}

// element is a JSON value that lists are made of.
func element(r *rand.Rand) string {
	long := strings.Repeat("lang <&> ü ", r.IntN(40))
	return []string{
		fmt.Sprintf(`%q`, long), `null`, `12`, `9007199254740993`, `-0.5e3`, `[1,2,3]`, `[]`, `{}`, `""`, `true`,
		fmt.Sprintf(`{"title":%q,"labels":{"a":[1,{"b":null}],"c":"d"},"parts":null,"unknown":7}`, long),
		fmt.Sprintf(`{"title":"t","next":{"title":%q,"parts":[]},"pair":[[1],null],"body":"AAEC","when":"2026-01-02T03:04:05Z","Raw":[1]}`, long),
		fmt.Sprintf(`{"TITLE":"case","parts":[{"title":%q,"parts":[]}],"number":1e400}`, long),
		fmt.Sprintf(`{"name":%q,"size":9,"at":[true]}`, long),
		fmt.Sprintf(`{"id":"%d","role":"user","content":%q,"extra":{"a":1}}`, r.IntN(99), long),
		`{"id":"x","role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		`{"id":"y","role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"u":1}}]}`, `"\ud800"`, `"\u00e4\n"`,
	}[r.IntN(19)]
}

// text makes a text to read next from the one read before: mostly one that goes on where that ended.
func text(r *rand.Rand, before, kind string) string {
	one := kind
	if one == "" {
		one = element(r)
	}
	switch {
	case r.IntN(12) == 0:
		return element(r)
	case r.IntN(12) == 0:
		return `{"a":` + one + `,"b":` + element(r) + `}`
	case r.IntN(12) == 0:
		return strings.Replace(before, "a", "e", 1)
	case r.IntN(12) == 0 && len(before) > 2:
		return before[:len(before)-1] + []string{",]", ",,1]", ",1", "1]", ", \n" + one + " ]", "]]"}[r.IntN(6)]
	case strings.HasPrefix(before, "[") && len(before) > 2:
		return before[:len(before)-1] + "," + one + "]"
	}
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", 1+r.IntN(30)), ",") + "]"
}

// TestKeptIsAsDecoded: what tasks read from what others of their driver have decoded is what JSON decodes into, error for
// error, however the value came to be; and nobody who changes what he reads changes it for anybody else.
func TestKeptIsAsDecoded(t *testing.T) {
	kinds := []string{"", `"a plain string of some length"`, `{"name":"flat","size":3}`, `[1,2]`, `{"id":"m","role":"user","content":"hello","a":{"b":1}}`}
	reads := 0
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		kept, kind, raw := &sync.Map{}, kinds[seed%uint64(len(kinds))], "["
		for range 40 {
			if raw = text(r, raw, kind); r.IntN(8) == 0 {
				raw += "" // read again
			}
			values := map[string]pregel.Held{}
			for _, f := range schemaFor[read]().fields {
				values[f.name] = pregel.Hold(pregel.Value(raw))
			}
			var mine, plain read
			sc, without := newScope("g", "n"), newScope("g", "n")
			sc.decoded = kept
			schemaFor[read]().bind(&mine, sc, values)
			schemaFor[read]().bind(&plain, without, values)
			want := plain.all()
			for range 2 { // copies of a state share what they read
				require.Equal(t, want, mine.all(), "seed %d, %s", seed, raw)
			}
			require.Equal(t, without.failure(), sc.failure())
			for _, v := range mine.all() {
				spoil(reflect.ValueOf(&v).Elem())
			}
			reads++
		}
	}
	require.Equal(t, 400, reads)
}

// TestWhatIsKept: a list that grows is decoded once, and what decodes itself is decoded for each task.
func TestWhatIsKept(t *testing.T) {
	kept := &sync.Map{}
	raw := `["` + strings.Repeat("x", jsonfit.MinKept) + `"]`
	bind := func() (out read) {
		sc := newScope("g", "n")
		sc.decoded = kept
		schemaFor[read]().bind(&out, sc, pregel.HoldAll(map[string]pregel.Value{"strings": pregel.Value(raw), "counts": pregel.Value(raw), "custom": pregel.Value(raw)}))
		return out
	}
	first := bind()
	one := first.Strings.read.get()
	raw = raw[:len(raw)-1] + `,"y"]`
	second := bind()
	two := second.Strings.read.get()
	require.Len(t, two, 2)
	require.Equal(t, one[0], two[0])
	third := bind()
	require.Same(t, &two[0], &third.Strings.read.get()[0], "the list was decoded anew")
	require.Equal(t, []string{two[0]}, first.Strings.Get(), "who read before sees what was added")
	second.Counts.Get()
	second.Custom.Get()
	_, ok := kept.Load(decodedField{"g", "counts", reflect.TypeFor[[]counting]()})
	require.False(t, ok)
	_, ok = kept.Load(decodedField{"g", "custom", reflect.TypeFor[counting]()})
	require.False(t, ok)
}
