package pregel_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

func hadOf(v pregel.Value, before *pregel.HadList) *pregel.HadList {
	return pregel.HadOf(pregel.Hold(v), before)
}

// TestAValueIsToldByWhatIsNewInIt: whoever has an earlier list gets the newest one of it and what is new, which is short. Of any
// other value nothing is told in terms of it.
func TestAValueIsToldByWhatIsNewInIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := func(from, n int) string {
			items := make([]string, n)
			for i := range items {
				items[i] = fmt.Sprintf(`"a text, number %d, that is as long as texts are"`, from+i)
			}
			return strings.Join(items, ",")
		}
		had, more := rapid.IntRange(50, 300).Draw(t, "had"), rapid.IntRange(0, 20).Draw(t, "more")
		old := pregel.Value("[" + list(0, had) + "]")
		whole := pregel.Value("[" + list(0, had+more) + "]")
		has := hadOf(old, hadOf(pregel.Value("["+list(0, had-1)+"]"), nil))
		if alone := hadOf(old, nil); alone == nil || has == nil || alone.Had != has.Had {
			t.Fatalf("%d bytes are had as %v, and %v", len(old), has, alone)
		}
		h := has.Had
		before := has
		if rapid.Bool().Draw(t, "older") { // who has a list of two turns ago is told by its digest
			before = hadOf(pregel.Value("["+list(0, had-2)+"]"), nil)
		}
		g, ok := hadOf(whole, before).Since(h)
		if !ok || len(g.More) > len(whole)-len(old)+2 {
			t.Fatalf("%d elements more are told by %d bytes (%v)", more, len(g.More), ok)
		}
		if got, ok := g.Value(has, nil); !ok || got.String() != string(whole) {
			t.Fatalf("it comes to %.80s (%v)", got, ok)
		}
		mine := rapid.IntRange(0, more+1).Draw(t, "given")
		given := pregel.Value("[" + list(had, mine) + "]")
		short := g.Without(given)
		if short.Given != (mine > 0 && mine <= more) || short.Given && len(short.More) > max(len(g.More)-len(given)+1, 0) {
			t.Fatalf("%d of %d elements were given, and %d bytes become %d", mine, more, len(g.More), len(short.More))
		}
		if got, ok := short.Value(has, given); !ok || got.String() != string(whole) {
			t.Fatalf("without what was given it comes to %.80s (%v)", got, ok)
		}
		if _, ok := g.Value(hadOf(append(append(pregel.Value("["), old[1:len(old)-1]...), ",0]"...), nil), nil); ok {
			t.Fatal("it was made of another value")
		}
		at := rapid.IntRange(1, len(old)-2).Draw(t, "changed")
		changed := append(pregel.Value(nil), whole...)
		changed[at] ^= 1
		if _, ok := hadOf(changed, has).Since(h); ok {
			t.Fatal("a changed list has not only grown")
		}
		if _, ok := hadOf(pregel.Value("["+list(0, had-1)+"]"), has).Since(h); ok {
			t.Fatal("a shorter list has not grown")
		}
	})
}

// TestOnlyLongListsAreHad: other values travel whole, whatever somebody says of them.
func TestOnlyLongListsAreHad(t *testing.T) {
	long := strings.Repeat("x", pregel.MinHad)
	for _, v := range []string{`"` + long + `"`, `{"a":"` + long + `"}`, `["short"]`, "", "[", "]"} {
		if has := hadOf(pregel.Value(v), nil); has != nil {
			t.Errorf("%.20s is had as %v", v, has.Had)
		}
		for _, h := range []pregel.Had{{}, {Bytes: -1}, {Bytes: len(v), Digest: "x"}, {Bytes: 1 << 40}} {
			if g, ok := hadOf(pregel.Value(v), nil).Since(h); ok {
				t.Errorf("%.20s is %v in terms of %v", v, g, h)
			}
		}
	}
	has := hadOf(pregel.Value(`["`+long+`"]`), nil)
	for _, more := range []string{"[]", "{", `"x"`, "[1"} {
		if v, ok := (pregel.Grown{From: has.Had.Bytes, More: pregel.Value(more)}).Value(has, nil); ok {
			t.Errorf("with %s more it is %.20s", more, v)
		}
	}
}
