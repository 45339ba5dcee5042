package superstep

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"superstep.dev/graphadapter/pregel"
)

type common struct {
	Trace List[string] `json:"trace"`
}

type Shared struct {
	common
	Owner Value[string] `json:"owner,omitzero"`
}

func TestSchemasFollowTheStruct(t *testing.T) {
	type state struct {
		Shared
		Named   Value[int64] `json:"named"`
		NoTag   Sum[int]
		Options Value[string]            `json:",omitzero"`
		Kept    Topic[int]               `json:"kept" superstep:"accumulate"`
		Loose   Ephemeral[int]           `json:"loose" superstep:"unguarded"`
		Scratch Untracked[int]           `json:"scratch" superstep:"unguarded"`
		Same    AnyValue[int]            `json:"same"`
		Best    Reduced[string, longest] `json:"best"`
		Talk    Messages                 `json:"talk"`
		ByKey   Map[bool]                `json:"by_key"`
		Left    int                      `json:"-"`
		hidden  int
	}
	s := schemaFor[state]()
	_ = state{}.hidden
	assert.Empty(t, s.problems)
	var specs []pregel.ChannelSpec
	for _, f := range s.fields {
		specs = append(specs, f.spec)
	}
	assert.Equal(t, []pregel.ChannelSpec{
		{Name: "trace", Kind: pregel.KindReduce, Reducer: "append/v1"},
		{Name: "owner", Kind: pregel.KindLast},
		{Name: "named", Kind: pregel.KindLast},
		{Name: "NoTag", Kind: pregel.KindReduce, Reducer: "sum/v1"},
		{Name: "Options", Kind: pregel.KindLast},
		{Name: "kept", Kind: pregel.KindTopic, Accumulate: true},
		{Name: "loose", Kind: pregel.KindEphemeral, Unguarded: true},
		{Name: "scratch", Kind: pregel.KindUntracked, Unguarded: true},
		{Name: "same", Kind: pregel.KindAny},
		{Name: "best", Kind: pregel.KindReduce, Reducer: "test.longest/v1"},
		{Name: "talk", Kind: pregel.KindReduce, Reducer: "messages/v1"},
		{Name: "by_key", Kind: pregel.KindReduce, Reducer: "merge/v1"},
	}, specs)

	var v state
	s.bind(&v, newScope("g", "n"), map[string]pregel.Value{"trace": pregel.Value(`["a"]`), "owner": pregel.Value(`"ann"`)})
	assert.Equal(t, []string{"a"}, v.Trace.Get(), "a field of an embedded struct")
	assert.Equal(t, "ann", v.Owner.Get())
	v.Trace.Append("b")
	writes, err := s.collect(&v, newScope("g", "n"))
	require.NoError(t, err)
	assert.Equal(t, []pregel.Write{{Channel: "trace", Value: pregel.Value(`["b"]`)}}, writes)
}

type unversioned struct{}

func (unversioned) Name() string { return "longest" }

func (unversioned) Reduce(a, _ string) (string, error) { return a, nil }

type taken struct{ unversioned }

func (taken) Name() string { return "append/v1" }

func TestSchemasSayWhatIsWrongWithTheStruct(t *testing.T) {
	tests := map[string]struct {
		state any
		want  []string
	}{
		"not a struct":     {5, []string{`int is not a struct whose fields are channels, such as superstep.Value[int64]`}},
		"a channel itself": {Value[int]{}, []string{`superstep.Value[int] is not a struct whose fields are channels, such as superstep.Value[int64]`}},
		"a plain field": {struct{ Amount int64 }{}, []string{
			`.Amount is a plain int64: declare it as superstep.Value[int64]`}},
		"a plain list": {struct{ Log []string }{}, []string{
			`.Log is a plain []string: declare it as superstep.Value[[]string], or superstep.List[string] if nodes append to it`}},
		"bytes":             {struct{ B []byte }{}, []string{`.B is a plain []uint8: declare it as superstep.Value[[]uint8]`}},
		"a channel pointer": {struct{ A *Value[int] }{}, []string{`.A is a pointer to a channel: declare it as superstep.Value[int]`}},
		"an embedded pointer": {struct{ *Shared }{}, []string{
			`.Shared is an embedded pointer: embed superstep.Shared itself, a pointer would be shared between copies of the state`}},
		"the same name twice": {struct {
			A Value[int] `json:"B"`
			B Value[int]
		}{}, []string{`.A and `, `.B both have the channel name "B": give one another json tag`}},
		"the same name in an embedded struct": {struct {
			Shared
			Owner Value[int] `json:"owner"`
		}{}, []string{`.Shared.Owner and `, `both have the channel name "owner"`}},
		"a reserved name": {struct {
			A Value[int] `json:"__start__"`
		}{}, []string{`the channel name "__start__" is reserved`}},
		"an unknown option": {struct {
			A Topic[int] `superstep:"acumulate"`
		}{}, []string{`unknown word "acumulate": there are accumulate and unguarded`}},
		"an option of others": {struct {
			A Value[int]     `superstep:"accumulate"`
			B List[int]      `superstep:"unguarded"`
			C Topic[int]     `superstep:"unguarded"`
			D Value[int]     `superstep:"unguarded"`
			E Ephemeral[int] `superstep:"accumulate"`
		}{}, []string{`.A: the tag superstep:"accumulate"`, `.B: the tag superstep:"unguarded"`, `.C: the tag`, `.D: the tag`, `.E: the tag`}},
		"a reducer without a version": {struct {
			A Reduced[string, unversioned]
		}{}, []string{`the reducer superstep.unversioned has the name "longest": it needs a version, such as "longest/v1"`}},
		"a reducer with the engine's name": {struct {
			A Reduced[string, taken]
		}{}, []string{`has the name "append/v1", which is one of the engine's own`}},
		"several at once": {struct {
			A int
			B string
		}{}, []string{".A is a plain int", ".B is a plain string"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			problems := schemaOf(reflect.TypeOf(test.state)).problems
			require.NotEmpty(t, problems)
			all := ""
			for _, p := range problems {
				all += p + "\n"
			}
			for _, want := range test.want {
				assert.Contains(t, all, want)
			}
		})
	}
}

func TestCopiesOfAStateDoNotSeeEachOthersWrites(t *testing.T) {
	s, _ := bound(t, `{"list":["a"]}`)
	s.List.Append("b")
	left, right := s, s
	left.List.Append("left")
	left.Value.Set(1)
	right.List.Append("right")
	right.Value.Set(2)
	assert.Equal(t, []string{"a", "b"}, s.List.Get())
	assert.Equal(t, []string{"a", "b", "left"}, left.List.Get())
	assert.Equal(t, []string{"a", "b", "right"}, right.List.Get())
	assert.False(t, s.Value.IsSet())
	assert.Equal(t, int64(1), left.Value.Get())
	assert.Equal(t, int64(2), right.Value.Get())
}

func TestWhatGetReturnsBelongsToTheCaller(t *testing.T) {
	s, _ := bound(t, `{"list":["a","b"],"map":{"k":1},"topic":[1],"messages":[{"id":"m","role":"user","content":"hi"}]}`)
	s.List.Get()[0] = "changed"
	_ = append(s.List.Get()[:1], "changed")
	s.Map.Get()["k"] = 99
	s.Topic.Get()[0] = 99
	s.Messages.Get()[0].Role = "changed"
	assert.Equal(t, []string{"a", "b"}, s.List.Get())
	assert.Equal(t, map[string]int{"k": 1}, s.Map.Get())
	assert.Equal(t, []int{1}, s.Topic.Get())
	assert.Equal(t, "user: hi", s.Messages.String())
}

func TestAppendedAndOverwrittenSlicesAreCopied(t *testing.T) {
	var s allChannels
	in := []string{"a"}
	s.List.Append(in...)
	in[0] = "changed"
	assert.Equal(t, []string{"a"}, s.List.Get())
	m := map[string]int{"k": 1}
	s.Map.Overwrite(m)
	m["k"] = 2
	assert.Equal(t, map[string]int{"k": 1}, s.Map.Get())
}

func TestTasksThatReadTheSameStateShareNothing(t *testing.T) {
	raw := map[string]pregel.Value{
		"order": pregel.Value(`{"id":"o","items":["a","b"]}`), "list": pregel.Value(`["a"]`), "items": pregel.Value(`["x"]`),
	}
	var states [8]allChannels
	for i := range states {
		schemaFor[allChannels]().bind(&states[i], newScope("g", "n"), raw)
	}
	var wg sync.WaitGroup
	for i := range states {
		wg.Go(func() {
			s := states[i]
			s.Order.Get().Items[0] = fmt.Sprint("changed by ", i)
			s.List.Append("b")
			s.Items.Write([]string{"y"})
			assert.Equal(t, []string{"a", "b"}, s.List.Get())
			assert.Equal(t, []string{"x", "y"}, s.Items.Get())
		})
	}
	wg.Wait()
	var fresh allChannels
	schemaFor[allChannels]().bind(&fresh, newScope("g", "n"), raw)
	assert.Equal(t, []string{"a", "b"}, fresh.Order.Get().Items)
	assert.Equal(t, `{"id":"o","items":["a","b"]}`, string(raw["order"]))
}

func TestGoroutinesOfOneNodeMayRead(t *testing.T) {
	s, sc := bound(t, `{"list":["a"],"order":{"id":"o"},"longest":"x","value":"wrong"}`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			assert.Equal(t, []string{"a"}, s.List.Get())
			assert.Equal(t, "o", s.Order.Get().ID)
			assert.Zero(t, s.Value.Get())
		})
	}
	wg.Wait()
	assert.Error(t, sc.failure())
}
