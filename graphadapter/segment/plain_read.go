package segment

import (
	"bytes"
	"encoding/json"
	"strconv"

	"superstep.dev/graphadapter/pregel"
)

// storedDelivery is a Delivery as encoding/json reads it.
type storedDelivery Delivery

// UnmarshalJSON implements json.Unmarshaler. A run reads as many deliveries as its segments had tasks, nearly all of them
// as asPlain writes them: those are read without reflection.
func (d *Delivery) UnmarshalJSON(text []byte) error {
	if read, plain := readPlain(text); plain {
		*d = read
		return nil
	}
	*d = Delivery{}
	return json.Unmarshal(text, (*storedDelivery)(d))
}

// readPlain reads what asPlain writes. It reports false for any other text. The text must be JSON.
func readPlain(text []byte) (d Delivery, plain bool) {
	p := plainReader{text: text, plain: true}
	d = p.delivery()
	return d, p.plain && len(p.text) == 0
}

// plainReader is what is left of a text, as long as plain is true.
type plainReader struct {
	text      []byte
	plain     bool
	unchecked bool              // nobody knows yet that it is JSON
	names     map[string]string // those read before, which share their memory; nil shares none
}

func (p *plainReader) delivery() (d Delivery) {
	if !p.have(`{` + deliveryOutcome) {
		p.expect(deliveryKey)
		d.Key = p.string()
		p.expect(deliveryDigest)
		d.Digest = p.string()
		p.expect(`,` + deliveryOutcome)
	}
	p.expect(`{`)
	o, more := &d.Outcome, false
	if p.have(`"update":[`) {
		o.Update, more = p.writes(), true
	}
	for _, list := range []struct {
		field string
		into  *[]pregel.Target
	}{{`"goto":[`, &o.Goto}, {`"routes":[`, &o.Routes}} {
		if more && p.have(`,`+list.field) || !more && p.have(list.field) {
			*list.into, more = p.targets(), true
		}
	}
	p.expect(`}`)
	if p.have(deliveryTook) {
		d.Took = p.number()
	}
	p.expect(`}`)
	return d
}

// have takes s from the beginning of the text, if that is what stands there.
func (p *plainReader) have(s string) bool {
	if len(p.text) < len(s) || string(p.text[:len(s)]) != s {
		return false
	}
	p.text = p.text[len(s):]
	return true
}

func (p *plainReader) expect(s string) { p.plain = p.have(s) && p.plain }

// number takes a whole number above zero.
func (p *plainReader) number() int64 {
	end := 0
	for end < len(p.text) && p.text[end] >= '0' && p.text[end] <= '9' {
		end++
	}
	n, err := strconv.ParseInt(string(p.text[:end]), 10, 64)
	p.plain = p.plain && err == nil && p.text[0] != '0'
	p.text = p.text[end:]
	return n
}

// string takes a string that stands in JSON as it is.
func (p *plainReader) string() string { return string(p.quoted()) }

// name takes a string that others are equal to.
func (p *plainReader) name() string {
	text := p.quoted()
	if name, known := p.names[string(text)]; known {
		return name
	}
	name := string(text)
	if p.names != nil {
		p.names[name] = name
	}
	return name
}

func (p *plainReader) quoted() []byte {
	p.expect(`"`)
	end := 0
	for end < len(p.text) && isPlainByte(p.text[end]) {
		end++
	}
	text := p.text[:end]
	p.text = p.text[end:]
	p.expect(`"`)
	return text
}

// value takes a value up to what follows it in an object.
func (p *plainReader) value() pregel.Value {
	end := valueEnd(p.text)
	v := bytes.Clone(p.text[:end])
	p.plain = p.plain && end > 0 && (!p.unchecked || json.Valid(v))
	p.text = p.text[end:]
	return v
}

// valueEnd returns where the value ends that a text in the middle of an object begins with; 0 when there is white space
// between its tokens.
func valueEnd(text []byte) int {
	depth, within, escaped := 0, false, false // a string
	for i, c := range text {
		switch {
		case escaped:
			escaped = false
		case within:
			escaped, within = c == '\\', c != '"'
		case c == '"':
			within = true
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == '}' || c == ','):
			return i
		case c == '}' || c == ']':
			depth--
		case c <= ' ':
			return 0
		}
	}
	return 0
}

func (p *plainReader) writes() (out []pregel.Write) {
	for p.next(len(out)) {
		var w pregel.Write
		p.expect(`{"channel":`)
		w.Channel = p.name()
		p.expect(`,"value":`)
		w.Value = p.value()
		w.Overwrite = p.have(`,"overwrite":true`)
		p.expect(`}`)
		out = append(out, w)
	}
	return out
}

func (p *plainReader) targets() (out []pregel.Target) {
	for p.next(len(out)) {
		var t pregel.Target
		p.expect(`{"node":`)
		t.Node = p.name()
		t.Send = p.have(`,"send":true`)
		if p.have(`,"arg":`) {
			t.Arg = p.value()
		}
		p.expect(`}`)
		out = append(out, t)
	}
	return out
}

// next reports whether another element of a list follows those taken, and takes what stands before it.
func (p *plainReader) next(taken int) bool {
	switch {
	case !p.plain:
		return false
	case p.have(`]`):
		p.plain = taken > 0
		return false
	case taken > 0:
		p.expect(`,`)
	}
	return p.plain
}
