package segment

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
)

// storedResult is a SegmentResult as encoding/json writes and reads it.
type storedResult struct {
	resultFields
	// Packed is the JSON of a result that has the deliveries instead, in the DEFLATE format.
	Packed []byte `json:"packed,omitempty"`
	// Mark is nil unless the deliveries are packed.
	Mark *Mark `json:"mark,omitempty"`
}

type resultFields Result

// How the JSON of a result begins, without deliveries and with them.
const (
	noDeliveries   = `{"deliveries":null`
	someDeliveries = `{"deliveries":[`
)

// packsFrom is how many bytes of outcomes are packed, where they may be: a few stay readable.
const packsFrom = 8 << 10

// MarshalJSON implements json.Marshaler: what a segment encoded for its record is not encoded again.
func (r Result) MarshalJSON() ([]byte, error) {
	stored := storedResult{resultFields: resultFields(r)}
	switch size := r.encoded.size; {
	case size == 0:
		return json.Marshal(stored)
	case r.pack && size >= packsFrom:
		packed, mark := r.packed()
		if base64.StdEncoding.EncodedLen(len(packed))+mark.size() > size {
			break // what does not get shorter may be too long for a payload
		}
		stored.Deliveries, stored.Packed, stored.Mark = nil, packed, mark
		return json.Marshal(stored)
	}
	stored.Deliveries = nil
	rest, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	text := append(make([]byte, 0, len(someDeliveries)+r.encoded.size+len(rest)), someDeliveries...)
	for _, block := range r.encoded.all {
		text = append(text, block...)
	}
	return append(append(text, ']'), rest[len(noDeliveries):]...), nil
}

// UnmarshalJSON implements json.Unmarshaler: deliveries as asPlain writes them are read without reflection.
func (r *Result) UnmarshalJSON(text []byte) error {
	var stored storedResult
	if err := stored.read(text, false); err != nil {
		return err
	}
	return r.take(stored)
}

// packed are the deliveries, and the mark among them.
func (r *Result) packed() ([]byte, *Mark) {
	if r.mark == nil {
		return r.encoded.packed(someDeliveries, `]}`), nil
	}
	packed, at := r.encoded.packedApart(someDeliveries, r.mark.text, `]}`)
	return packed, &Mark{Deliveries: r.mark.made, Loop: r.mark.loop, At: at}
}

// take makes the result the one that was stored.
func (r *Result) take(stored storedResult) (err error) {
	if stored.Packed != nil {
		if stored.Deliveries, err = unpackDeliveries(stored.Packed, false); err != nil {
			return err
		}
	}
	*r = Result(stored.resultFields)
	return nil
}

// unpackDeliveries reads packed deliveries: all of them, or those from a mark on.
func unpackDeliveries(packed []byte, marked bool) ([]Delivery, error) {
	text, err := unpack(packed)
	if err == nil && marked {
		text = slices.Concat([]byte(someDeliveries), bytes.TrimPrefix(text, []byte(",")))
	}
	var of storedResult
	if err == nil {
		err = of.read(text, true)
	}
	if err != nil {
		return nil, fmt.Errorf("superstep: the outcomes of a segment cannot be read: %w", err)
	}
	return of.Deliveries, nil
}

// read reads a result; unchecked says that nobody knows yet that the text is JSON.
func (r *storedResult) read(text []byte, unchecked bool) error {
	deliveries, rest, plain := readAllPlain(text, unchecked)
	if !plain {
		return json.Unmarshal(text, r)
	}
	err := json.Unmarshal(slices.Concat([]byte(noDeliveries), rest), r)
	r.Deliveries = deliveries
	return err
}

// read makes a result that a segment returned the one that its reader finds.
func (r *Result) read() error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, r)
}

// leastDelivery is the length of the shortest plain delivery.
const leastDelivery = len(deliveryKey + `""` + deliveryDigest + `""` + `,"outcome":{}}`)

// readAllPlain reads the deliveries that a result begins with, and returns what stands behind their list. It reports false
// when one is not plain, or there is none.
func readAllPlain(text []byte, unchecked bool) (all []Delivery, rest []byte, plain bool) {
	p := plainReader{text: text, plain: true, unchecked: unchecked, names: map[string]string{}}
	p.expect(someDeliveries)
	all = make([]Delivery, 0, min(bytes.Count(text, []byte(deliveryDigest)), len(text)/leastDelivery)) // a value may have it too
	for p.next(len(all)) {
		all = append(all, p.delivery())
	}
	return all, p.text, p.plain
}
