package pregel

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// Had says which value of a channel somebody has, who asks for the newest: a list that has only grown since is told by what is
// new in it.
type Had struct {
	Bytes int `json:"bytes"`
	// Digest is the first half of the SHA-256 of all bytes but the last, which closes a list.
	Digest string `json:"digest"`
}

// MinHad is the size of a long list, in bytes.
const MinHad = 2 << 10

// HadList is a long list that somebody has. It is never changed.
type HadList struct {
	Had   Had
	Value Held

	before Had // of a list that this one goes on behind; zero for none that is known
	sum    *valueDigest
}

// HadOf is what one has who has v; nil when that is no long list. Of one that has grown since before, which may be nil, only what is
// new is looked at.
func HadOf(v Held, before *HadList) *HadList {
	if v.Len() < MinHad || !v.isList() {
		return nil
	}
	var sum *valueDigest
	if before != nil {
		sum = before.sum
	}
	sum = digestValue(v, sum)
	now := &HadList{Value: v, sum: sum, Had: Had{Bytes: v.Len(), Digest: textOf(sum.hash.Sum(nil))}}
	if sum.grows {
		now.before = before.Had
	}
	return now
}

// textOf is the first half of a sum.
func textOf(sum []byte) string { return hex.EncodeToString(sum[:len(sum)/2]) }

// Grown is a value in terms of one that somebody has, of From bytes.
type Grown struct {
	From int `json:"from"`
	// Given says that the elements which the asker has given itself come next.
	Given bool `json:"given,omitempty"`
	// More are the elements behind those that the list had, and that were given; nil for none.
	More Value `json:"more,omitempty"`
}

// Without leaves out the elements of a list that the asker has given itself, if they come next.
func (g Grown) Without(given Value) Grown {
	if len(given) <= len(emptyList) || !isList(given) || g.More == nil {
		return g
	}
	rest, found := bytes.CutPrefix(g.More[:len(g.More)-1], given[:len(given)-1])
	switch {
	case !found:
	case len(rest) == 0:
		g.Given, g.More = true, nil
	case rest[0] == ',':
		g.Given, g.More = true, slices.Concat(emptyList[:1], rest[1:], emptyList[1:])
	}
	return g
}

// Since tells the list in terms of what somebody has; it reports false when that is another list. Who has the list before this one costs
// nothing; who has an older one costs the digest of that.
func (l *HadList) Since(h Had) (Grown, bool) {
	if l == nil || h.Bytes < MinHad || h.Bytes > l.Value.Len() {
		return Grown{}, false
	}
	text, _ := l.Value.open()
	last := h.Bytes - 1
	if last < len(text) && text[last] != ',' {
		return Grown{}, false
	}
	if h != l.Had && h != l.before {
		if sum := sha256.Sum256(text[:last]); textOf(sum[:]) != h.Digest {
			return Grown{}, false
		}
	}
	g := Grown{From: h.Bytes}
	if last < len(text) {
		g.More = slices.Concat(emptyList[:1], text[h.Bytes:], emptyList[1:])
	}
	return g, true
}

// Value is the whole value, for who has what it is told in terms of, and has given this; it reports false for who has another, or
// none.
func (g Grown) Value(has *HadList, given Value) (Held, bool) {
	if has == nil || has.Had.Bytes != g.From {
		return Held{}, false
	}
	var lists []Value
	if g.Given {
		lists = append(lists, given)
	}
	if g.More != nil {
		lists = append(lists, g.More)
	}
	for i, l := range lists {
		more, err := compact(l)
		if err != nil || !isList(more) || bytes.Equal(more, emptyList) {
			return Held{}, false
		}
		lists[i] = more
	}
	if len(lists) == 0 {
		return has.Value, true
	}
	return has.Value.with(lists), true
}
