package segment

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"superstep.dev/graphadapter/pregel"
)

// asPlain is asStored for what nearly every task comes back with, writes and targets, at a fraction of the cost: what is
// read is what was given. It reports false for anything else: another field, a value that is not JSON or that encoding
// would change, a name that encoding would escape. The text is put into room, as far as that suffices.
//
// A node may go on changing what it returned, so lists and values that are read are copies.
func asPlain(d Delivery, room []byte) (read Delivery, encoded []byte, plain bool) {
	o := &d.Outcome
	if !isBare(o) {
		return d, nil, false
	}
	p := plainText{out: room[:0], plain: true}
	o.Update, o.Goto, o.Routes = slices.Clone(o.Update), slices.Clone(o.Goto), slices.Clone(o.Routes)
	p.string(deliveryKey, d.Key)
	p.string(deliveryDigest, d.Digest)
	p.put(`,` + deliveryOutcome + `{`)
	begin := len(p.out)
	if len(o.Update) > 0 {
		p.writes(o.Update)
	}
	for _, t := range []struct {
		name    string
		targets []pregel.Target
	}{{`"goto":[`, o.Goto}, {`"routes":[`, o.Routes}} {
		if len(t.targets) == 0 {
			continue
		}
		if len(p.out) > begin {
			p.put(`,`)
		}
		p.targets(t.name, t.targets)
	}
	p.put(`}`)
	p.plain = p.plain && d.Took >= 0
	if d.Took > 0 {
		p.put(deliveryTook)
		p.out = strconv.AppendInt(p.out, d.Took, 10)
	}
	p.put(`}`)
	return d, p.out, p.plain
}

// How a plain delivery begins, and goes on.
const (
	deliveryKey    = `{"key":`
	deliveryDigest = `,"digest":`
	// deliveryOutcome is what one begins with that goes without its task: see segmentRecord.
	deliveryOutcome = `"outcome":`
	deliveryTook    = `,"took_ms":`
)

// isBare reports whether an outcome has writes and targets only. Empty lists become nil, as they are read.
func isBare(o *pregel.Outcome) bool {
	o.Update, o.Goto, o.Routes = nilIfEmpty(o.Update), nilIfEmpty(o.Goto), nilIfEmpty(o.Routes)
	return o.Parent == nil && o.Questions == nil && o.Error == nil && o.Emitted == nil && !o.Cached && o.Drain == "" &&
		!o.Again && o.Ledger == nil && !o.Yielded && o.Claim == "" && o.Kept == nil
}

func nilIfEmpty[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// plainText is JSON as encoding/json writes it, as long as plain is true.
type plainText struct {
	out   []byte
	plain bool
}

func (p *plainText) put(s string) { p.out = append(p.out, s...) }

// string puts a field with a string that stands in JSON as it is.
func (p *plainText) string(field, s string) {
	for i := range len(s) {
		if !isPlainByte(s[i]) {
			p.plain = false
			return
		}
	}
	p.put(field)
	p.out = append(append(append(p.out, '"'), s...), '"')
}

// value puts a field with a value, and returns a copy of the value.
func (p *plainText) value(field string, v pregel.Value) pregel.Value {
	if !p.plain || !isSettled(v) {
		p.plain = false
		return v
	}
	p.put(field)
	p.out = append(p.out, v...)
	return bytes.Clone(v)
}

// isPlainByte reports whether a byte of a string stands in JSON as it is.
func isPlainByte(c byte) bool {
	return c >= ' ' && c <= '~' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&'
}

func (p *plainText) writes(writes []pregel.Write) {
	p.put(`"update":[`)
	for i := range writes {
		w := &writes[i]
		p.separate(i)
		p.string(`{"channel":`, w.Channel)
		w.Value = p.value(`,"value":`, w.Value)
		if w.Overwrite {
			p.put(`,"overwrite":true`)
		}
		p.put(`}`)
	}
	p.put(`]`)
}

func (p *plainText) targets(field string, targets []pregel.Target) {
	p.put(field)
	for i := range targets {
		t := &targets[i]
		p.plain = p.plain && t.Timeouts == (pregel.Timeouts{})
		p.separate(i)
		p.string(`{"node":`, t.Node)
		if t.Send {
			p.put(`,"send":true`)
		}
		if t.Arg != nil {
			t.Arg = p.value(`,"arg":`, t.Arg)
		}
		p.put(`}`)
	}
	p.put(`]`)
}

// separate puts a comma before all but the first of a list.
func (p *plainText) separate(i int) {
	if i > 0 {
		p.put(`,`)
	}
}

// isSettled reports whether a value is JSON that encoding copies as it is: without white space between its tokens, and
// without what is escaped for HTML and JavaScript. For a value that has such characters in strings it may say no.
func isSettled(v pregel.Value) bool {
	within, escaped := false, false // a string
	for i, c := range v {
		switch {
		case c == '<' || c == '>' || c == '&':
			return false
		case c == 0xE2 && i+2 < len(v) && v[i+1] == 0x80 && v[i+2]&^1 == 0xA8: // U+2028 and U+2029
			return false
		case escaped:
			escaped = false
		case within && c == '\\':
			escaped = true
		case c == '"':
			within = !within
		case !within && c <= ' ':
			return false
		}
	}
	return json.Valid(v)
}
