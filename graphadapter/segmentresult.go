package graphadapter

import (
	"bytes"
	"encoding/json"
	"slices"
)

// storedResult is a SegmentResult as encoding/json writes and reads it.
type storedResult SegmentResult

// How the JSON of a result begins, without deliveries and with them.
const (
	noDeliveries   = `{"deliveries":null`
	someDeliveries = `{"deliveries":[`
)

// MarshalJSON implements json.Marshaler: what a segment encoded for its record is not encoded again.
func (r SegmentResult) MarshalJSON() ([]byte, error) {
	if r.encoded.size == 0 {
		return json.Marshal(storedResult(r))
	}
	rest, err := json.Marshal(storedResult{Apart: r.Apart, Expired: r.Expired, Suspect: r.Suspect, Left: r.Left})
	if err != nil {
		return nil, err
	}
	rest = rest[len(noDeliveries):]
	text := make([]byte, 0, len(someDeliveries)+r.encoded.size+len("]")+len(rest))
	text = append(text, someDeliveries...)
	for _, block := range r.encoded.all {
		text = append(text, block...)
	}
	return append(append(text, ']'), rest...), nil
}

// leastDelivery is the length of the shortest plain delivery.
const leastDelivery = len(deliveryKey + `""` + deliveryDigest + `""` + `,"outcome":{}}`)

// read makes a result that a segment returned the one that its reader finds.
func (r *SegmentResult) read() error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, r)
}

// blocks is a text that grows without being copied: the outcomes of a thousand tasks.
type blocks struct {
	all  [][]byte
	size int
}

// leastBlock is how many bytes a block of a text has at least.
const leastBlock = 8 << 10

// put adds an element to a list.
func (b *blocks) put(encoded []byte) {
	last := len(b.all) - 1
	if need := len(encoded) + 1; last < 0 || cap(b.all[last])-len(b.all[last]) < need {
		b.all = append(b.all, make([]byte, 0, max(need, leastBlock)))
		last++
	}
	if b.size > 0 {
		b.all[last] = append(b.all[last], ',')
		b.size++
	}
	b.all[last] = append(b.all[last], encoded...)
	b.size += len(encoded)
}

// UnmarshalJSON implements json.Unmarshaler: deliveries as asPlain writes them are read without reflection.
func (r *SegmentResult) UnmarshalJSON(text []byte) error {
	*r = SegmentResult{}
	deliveries, rest, plain := readAllPlain(text)
	if !plain {
		return json.Unmarshal(text, (*storedResult)(r))
	}
	err := json.Unmarshal(slices.Concat([]byte(noDeliveries), rest), (*storedResult)(r))
	r.Deliveries = deliveries
	return err
}

// readAllPlain reads the deliveries that a result begins with, and returns what stands behind their list. It reports false
// when one is not plain, or there is none.
func readAllPlain(text []byte) (all []Delivery, rest []byte, plain bool) {
	p := plainReader{text: text, plain: true, names: map[string]string{}}
	p.expect(someDeliveries)
	all = make([]Delivery, 0, min(bytes.Count(text, []byte(deliveryDigest)), len(text)/leastDelivery)) // a value may have it too
	for p.next(len(all)) {
		all = append(all, p.delivery())
	}
	return all, p.text, p.plain
}
