package pregel

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// version is a list with what it must come to.
type version struct {
	held   Held
	pieces []Value
	sum    *valueDigest
}

func (v version) want() Value { return joinLists(v.pieces...) }

// check compares a version with the text of all its pieces, in any order of what may be asked of it first.
func (v version) check(t *rapid.T) {
	want := v.want()
	asks := []func(){
		func() {
			if got := v.held.Value(); string(got) != string(want) {
				t.Fatalf("%d pieces are %.80q, want %.80q", len(v.pieces), got, want)
			}
		},
		func() {
			if text, err := json.Marshal(map[string]Held{"v": v.held}); err != nil || string(text) != `{"v":`+string(want)+`}` {
				t.Fatalf("as JSON it is %.80q, %v", text, err)
			}
		},
		func() {
			if v.held.Len() != len(want) {
				t.Fatalf("it has %d bytes, want %d", v.held.Len(), len(want))
			}
		},
		func() {
			if v.sum.sum != sha256.Sum256(want) {
				t.Fatal("its digest is not that of its text")
			}
		},
		func() {
			plain, own := cell{value: Hold(want)}, cell{value: v.held, sum: v.sum}
			if !bytes.Equal(plain.appendIdentity(nil), own.appendIdentity(nil)) {
				t.Fatal("a checkpoint with it has another digest than one with its text")
			}
		},
	}
	for _, at := range rapid.Permutation([]int{0, 1, 2, 3, 4}).Draw(t, "asked in this order") {
		asks[at]()
	}
}

// TestAListIsAllThatWasAppended: whichever versions are appended to, and in whichever order their texts are asked for, each is
// what its pieces come to and stays that, with the digest of its text; and one is told in terms of another only if it goes on
// where that ends.
func TestAListIsAllThatWasAppended(t *testing.T) {
	piece := rapid.Custom(func(t *rapid.T) Value {
		items := make([]string, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range items {
			items[i] = fmt.Sprintf("%q", strings.Repeat(rapid.StringOf(rapid.RuneFrom([]rune(`a],["\`))).Draw(t, "item"), rapid.IntRange(0, 99).Draw(t, "times")))
		}
		space := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "space")
		return Value("[" + space + strings.Join(items, ",") + space + "]")
	})
	rapid.Check(t, func(t *rapid.T) {
		versions := []version{{held: Hold(emptyList), pieces: []Value{emptyList}, sum: digestValue(Hold(emptyList), nil)}}
		for range rapid.IntRange(1, 30).Draw(t, "appends") {
			from := versions[len(versions)-1]
			if rapid.IntRange(0, 4).Draw(t, "older") == 0 {
				from = rapid.SampledFrom(versions).Draw(t, "from")
			}
			if rapid.IntRange(0, 3).Draw(t, "look") == 0 {
				from.check(t)
			}
			more := rapid.SliceOfN(piece, 1, 3).Draw(t, "more")
			next := version{held: from.held.with(more), pieces: append(from.pieces[:len(from.pieces):len(from.pieces)], more...)}
			if again := from.held.with(more); string(again.Value()) != string(next.want()) {
				t.Fatalf("appended once more it is %.80q", again)
			}
			next.sum = digestValue(next.held, rapid.SampledFrom(versions).Draw(t, "digested after").sum)
			versions = append(versions, next)
			before := rapid.SampledFrom(versions).Draw(t, "in terms of")
			news, ok := next.held.Beyond(before.held)
			switch same := string(next.want()) == string(before.want()); {
			case ok && (news == nil) != same:
				t.Fatalf("it has %q more, and is the same: %t", news, same)
			case ok && !same && string(joinLists(before.want(), news)) != string(next.want()):
				t.Fatalf("with %.80q more it is another list", news)
			case !ok && (same || len(from.want()) > len(emptyList) && string(from.want()) == string(before.want()) && string(next.want()) != string(from.want())):
				t.Fatal("it is not told in terms of the list that it was made of")
			}
		}
		for _, v := range versions {
			v.check(t)
		}
	})
}

// TestListsGrowSideBySide: tasks of one superstep see the same list, and each what it adds to that itself.
func TestListsGrowSideBySide(t *testing.T) {
	item := func(i int) []Value { return []Value{Value(fmt.Sprintf(`["item %d"]`, i))} }
	base := Hold(Value(`["` + strings.Repeat("x", 4*maxPlain) + `"]`))
	for i := range 20 {
		base = base.with(item(i))
	}
	want := string(base.Value())
	lists := make([]Held, 8)
	var all sync.WaitGroup
	for i := range lists {
		all.Go(func() {
			list := base
			for range 200 {
				list = list.with(item(i))
			}
			lists[i] = list
			_ = base.Value()
		})
	}
	all.Wait()
	for i, list := range lists {
		if string(list.Value()) != want[:len(want)-1]+strings.Repeat(fmt.Sprintf(`,"item %d"`, i), 200)+"]" {
			t.Errorf("list %d is not the base and what was added to it", i)
		}
	}
	if string(base.Value()) != want {
		t.Error("the list that they began with is another one")
	}
}

// TestTheSameListTwiceIsOne: a workflow that does what its activity did has the same memory, also when the list was moved; another
// list has not, and both stay what they are.
func TestTheSameListTwiceIsOne(t *testing.T) {
	item := func(c string) []Value { return []Value{Value(`["` + strings.Repeat(c, 4*maxPlain) + `"]`)} }
	first := Hold(Value("[]")).with(item("a"))
	second := first
	for _, c := range []string{"b", "c", "d"} {
		first = first.with(item(c))
	}
	for _, c := range []string{"b", "c", "d"} {
		second = second.with(item(c))
	}
	if !first.sameMemory(second) || string(first.Value()) != string(second.Value()) {
		t.Error("the same items were appended twice, into two places")
	}
	other, longer := first.with(item("e")), first.with(item("ee"))
	if other.sameMemory(longer) || string(other.Value()) == string(longer.Value()) {
		t.Error("two lists are taken for one")
	}
}

func (h Held) sameMemory(other Held) bool { return &h.text[0] == &other.text[0] }

// TestToAppendCopiesWhatIsAppended: in the memory that it has, and a list that has none left is moved as often as its size
// grows by a quarter.
func TestToAppendCopiesWhatIsAppended(t *testing.T) {
	list, moved := Hold(Value(`["`+strings.Repeat("x", 1<<20)+`"]`)), 0
	for range 5000 {
		next := list.with([]Value{Value(`["` + strings.Repeat("y", 100) + `"]`)})
		if &next.text[0] != &list.text[0] {
			moved++
		}
		list = next
	}
	if moved > 6 {
		t.Errorf("the list was copied %d times", moved)
	}
}

// FuzzEachMember: the members of a text that is an object are what a decoder finds.
func FuzzEachMember(f *testing.F) {
	for _, text := range []string{`{}`, ` { "a" : 1 , "b":[{"c":"]"}] } `, `{"a\"":"\\","\u00e4":"\\\"}","a":null}`, `{"a":-1.5e3,"a":true}`, `{"":{}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var want map[string]Value
		if json.Unmarshal(text, &want) != nil || want == nil {
			return
		}
		got := map[string]Value{}
		EachMember(text, func(name string, v Value) { got[name] = v })
		if len(got) != len(want) {
			t.Fatalf("%q has %d members, want %d", text, len(got), len(want))
		}
		for name, v := range want {
			if string(got[name]) != string(v) {
				t.Errorf("%q: %q is %q, want %q", text, name, got[name], v)
			}
		}
	})
}
