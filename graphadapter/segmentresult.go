package graphadapter

import (
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

// put adds the text of a delivery, which is in Deliveries already.
func (r *SegmentResult) put(encoded []byte) {
	if len(r.encoded) > 0 {
		r.encoded = append(r.encoded, ',')
	}
	r.encoded = append(r.encoded, encoded...)
}

// MarshalJSON implements json.Marshaler: what a segment encoded for its record is not encoded again.
func (r SegmentResult) MarshalJSON() ([]byte, error) {
	if r.encoded == nil {
		return json.Marshal(storedResult(r))
	}
	encoded := r.encoded
	r.Deliveries = nil
	rest, err := json.Marshal(storedResult(r))
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(someDeliveries), encoded, []byte("]"), rest[len(noDeliveries):]), nil
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
	for p.next(len(all)) {
		if len(all) == cap(all) {
			all = slices.Grow(all, max(len(all), leastDeliveries)) // append grows long lists by little
		}
		all = append(all, p.delivery())
	}
	return all, p.text, p.plain
}
