package segment

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestAResultIsAsStored: the text that a segment kept of its outcomes holds them, and is read as encoding/json does it.
func TestAResultIsAsStored(t *testing.T) {
	whole := 0
	rapid.Check(t, func(t *rapid.T) {
		var r Result
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
		if r.encoded, r.Deliveries = (blocks{}), deliveries; !reflect.DeepEqual(Result(read.resultFields), r) {
			t.Fatalf("%s\nis of\n%#v\nwant\n%#v", text, read, r)
		}
		if _, _, plain := readAllPlain(text, false); plain {
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
	var read Result
	var want storedResult
	err, wrong := json.Unmarshal(text, &read), json.Unmarshal(text, &want)
	if (err == nil) != (wrong == nil) || err == nil && !reflect.DeepEqual(read, Result(want.resultFields)) {
		t.Fatalf("%s\nis read as\n%#v (error %v)\nwant\n%#v (error %v)", text, read, err, want, wrong)
	}
}

// TestAPackedResultIsTheSame to whoever reads it, a tenth as long, and an error when somebody has changed it.
func TestAPackedResultIsTheSame(t *testing.T) {
	g := countdown(500, nil)
	texts, read := map[bool][]byte{}, map[bool]Result{}
	for _, pack := range []bool{false, true} {
		r := newFusedRun(t, g, graphadapter.DurabilityExit, input(`{}`))
		r.req.Pack = pack
		s, err := OpenSegment(g, r.suspended(), false, nil, Progress{})
		if err != nil {
			t.Fatal(err)
		}
		result, err := s.Run(t.Context(), Host{})
		if err != nil {
			t.Fatal(err)
		}
		if texts[pack], err = json.Marshal(result); err != nil {
			t.Fatal(err)
		}
		var brought Result
		if err := json.Unmarshal(texts[pack], &brought); err != nil {
			t.Fatal(err)
		}
		for i := range brought.Deliveries {
			brought.Deliveries[i].Took = 0 // the two runs are timed apart
		}
		read[pack] = brought
		r.take(result)
		if r.loop.Status() != pregel.StatusDone {
			t.Errorf("packed %v: the run stands at %v", pack, r.loop.Status())
		}
	}
	if len(read[true].Deliveries) != 500 || !reflect.DeepEqual(read[true], read[false]) {
		t.Errorf("packed there are %d outcomes, else %d", len(read[true].Deliveries), len(read[false].Deliveries))
	}
	if len(texts[true]) > len(texts[false])/5 {
		t.Errorf("packed it has %d bytes, else %d", len(texts[true]), len(texts[false]))
	}
	var stored storedResult
	if err := json.Unmarshal(texts[true], &stored); err != nil {
		t.Fatal(err)
	}
	zeros := blocks{}
	zeros.put(make([]byte, maxUnpacked))
	for what, packed := range map[string][]byte{
		"cut":      stored.Packed[:len(stored.Packed)/2],
		"too long": zeros.packed(someDeliveries, `]}`),
		"no JSON":  new(blocks).packed(someDeliveries, `{"key":"1/a","digest":"0","outcome":{"update":[{"channel":"a","value":nothing}]}}]}`),
		"more":     new(blocks).packed(someDeliveries, `{"key":"1/a","digest":"0","outcome":{}}]}]`),
	} {
		text, err := json.Marshal(storedResult{Packed: packed})
		if err != nil {
			t.Fatal(err)
		}
		var brought Result
		if err := json.Unmarshal(text, &brought); err == nil {
			t.Errorf("%s: it was read as %+v", what, brought)
		}
	}
}

// TestAResultThatDoesNotGetShorterFits: text of which little repeats is longer packed than it was.
func TestAResultThatDoesNotGetShorterFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	r := Result{pack: true}
	for r.encoded.size < maxOutcomeBytes-4000 {
		text := make([]rune, 1000)
		for i := range text {
			text[i] = rune(0x80 + random.IntN(0x780)) // two bytes each
		}
		r.encoded.put(fmt.Appendf(nil, `{"key":"1/a","digest":"0","outcome":{"update":[{"channel":"a","value":"%s"}]}}`, string(text)))
	}
	for _, mark := range []*marked{nil, {made: 1, text: 2500, loop: pregel.Value(`"` + strings.Repeat("x", maxMarkBytes-2) + `"`)}} {
		r.mark = mark
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if most := 2 << 20; len(text) > most {
			t.Errorf("a result of %d bytes of outcomes has %d, at most %d are a payload", r.encoded.size, len(text), most)
		}
	}
}
