package graphadapter

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter/pregel"
)

// TestAResultIsAsStored: the text that a segment kept of its outcomes holds them, and is read as encoding/json does it.
func TestAResultIsAsStored(t *testing.T) {
	whole := 0
	rapid.Check(t, func(t *rapid.T) {
		var r SegmentResult
		var deliveries []Delivery
		for range rapid.IntRange(0, 4).Draw(t, "deliveries") {
			d, encoded, err := asRead(drawAnyDelivery(t), nil)
			if err != nil {
				continue
			}
			deliveries = append(deliveries, d)
			r.encoded.put(encoded)
		}
		r.Apart, r.Expired = rapid.Bool().Draw(t, "apart"), rapid.Bool().Draw(t, "expired")
		if rapid.Bool().Draw(t, "left") {
			r.Left, r.Suspect = map[string]pregel.Value{"3/pay": pregel.Value(`{"a":1}`)}, Suspicion{Tasks: []string{"3/pay"}}
		}
		text, err := json.Marshal(r)
		var read storedResult
		if err := errors.Join(err, json.Unmarshal(text, &read)); err != nil {
			t.Fatalf("%s\nis no result: %v", text, err)
		}
		if r.encoded, r.Deliveries = (blocks{}), deliveries; !reflect.DeepEqual(SegmentResult(read), r) {
			t.Fatalf("%s\nis of\n%#v\nwant\n%#v", text, read, r)
		}
		if _, _, plain := readAllPlain(text); plain {
			whole++
		}
		isReadAsStored(t, text)
		isReadAsStored(t, drawChange(t, text))
	})
	if whole == 0 {
		t.Error("no result was read as plain")
	}
}

func isReadAsStored(t *rapid.T, text []byte) {
	var read SegmentResult
	var want storedResult
	err, wrong := json.Unmarshal(text, &read), json.Unmarshal(text, &want)
	if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(read, SegmentResult(want)) {
		t.Fatalf("%s\nis read as\n%#v (error %v)\nwant\n%#v (error %v)", text, read, err, want, wrong)
	}
}
