package segment

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// resultOf is a result as a segment leaves it that delivered these, with a resume point behind so many of them; 0 for none.
func resultOf(t interface{ Fatal(...any) }, all []Delivery, before int) (r Result, read []Delivery) {
	var c coder
	for i, d := range all {
		d, frame, err := c.roundTrip(d)
		if err != nil {
			t.Fatal(err)
		}
		r.frames = append(r.frames, frame...)
		if r.made++; i+1 == before {
			r.resume = &madePoint{frames: len(r.frames), point: ResumePoint{Deliveries: before, Loop: pregel.Value(`{"step":7}`)}}
		}
		read = append(read, d)
	}
	return r, read
}

// TestAResultIsReadAsItWasWritten, whole and behind its resume point, and is written with the same bytes each time.
func TestAResultIsReadAsItWasWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all []Delivery
		for range rapid.IntRange(0, 6).Draw(t, "deliveries") {
			d := drawAnyDelivery(t)
			if _, err := throughJSON(d); err != nil || d.Key == "" {
				continue
			}
			all = append(all, d)
		}
		before := rapid.IntRange(0, len(all)).Draw(t, "before")
		r, want := resultOf(t, all, before)
		r.Apart, r.Expired = rapid.Bool().Draw(t, "apart"), rapid.Bool().Draw(t, "expired")
		if rapid.Bool().Draw(t, "left") {
			r.Left, r.Suspect = map[string]pregel.Value{"3/pay": pregel.Value(`{"a":1}`), "3/b": pregel.Value(`1`)}, Suspicion{Tasks: []string{"3/pay"}}
		}
		encoded, err := r.Encode()
		again, _ := r.Encode()
		if err != nil || !bytes.Equal(encoded, again) {
			t.Fatalf("it is written as\n%q\nand\n%q (%v)", encoded, again, err)
		}
		whole, err := DecodeWhole(encoded)
		if err != nil {
			t.Fatal(err)
		}
		stored, err := DecodeResult(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if (stored.Resume != nil) != (before > 0) || before > 0 && !reflect.DeepEqual(*stored.Resume, r.resume.point) {
			t.Fatalf("it has the resume point %+v, want one behind %d", stored.Resume, before)
		}
		if behind := want[before:]; len(stored.Deliveries) != len(behind) || len(behind) > 0 && !reflect.DeepEqual(stored.Deliveries, behind) {
			t.Fatalf("behind its resume point there are\n%#v\nwant\n%#v", stored.Deliveries, behind)
		}
		r.Deliveries, r.frames, r.made, r.resume = want, nil, 0, nil
		if !reflect.DeepEqual(whole, r) {
			t.Fatalf("it is read as\n%#v\nwant\n%#v", whole, r)
		}
	})
}

// TestAResultIsSmall: everyday outcomes take a few bytes each.
func TestAResultIsSmall(t *testing.T) {
	g := countdown(500, nil)
	r := newFusedRun(t, g, graphadapter.DurabilityExit, input(`{}`))
	s, err := OpenSegment(g, r.suspended(), false, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	result, err := s.Run(t.Context(), Host{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := result.Encode()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := DecodeWhole(encoded)
	if err != nil || len(whole.Deliveries) != 500 || len(encoded) > 500*16 {
		t.Errorf("%d outcomes have %d bytes (%v)", len(whole.Deliveries), len(encoded), err)
	}
	text, err := json.Marshal(whole.Deliveries)
	if err != nil || len(encoded) > len(text)/5 {
		t.Errorf("they have %d bytes, and %d as JSON (%v)", len(encoded), len(text), err)
	}
}

// TestAResultThatDoesNotGetShorterFits: text of which little repeats is hardly shorter when it is compressed.
func TestAResultThatDoesNotGetShorterFits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var all []Delivery
	size := 0
	for size < maxOutcomeBytes-4000 {
		text := make([]byte, 2000)
		for i := range text {
			text[i] = " !#$%()*+,-./0123456789:;=?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~"[random.IntN(89)]
		}
		all = append(all, Delivery{Key: "1/a", Digest: "0", Outcome: pregel.Outcome{Command: pregel.Command{
			Update: []pregel.Write{{Channel: "a", Value: pregel.Value(`"` + string(text) + `"`)}}}}})
		size += len(text) + outcomeCost
	}
	for _, before := range []int{0, 1, len(all) / 2} {
		r, _ := resultOf(t, all, before)
		if before > 0 {
			r.resume.point.Loop = pregel.Value(`"` + strings.Repeat("x", maxResumeBytes-2) + `"`)
		}
		encoded, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if most := 2 << 20; len(encoded) > most {
			t.Errorf("a result of %d bytes of outcomes has %d, at most %d are a payload", size, len(encoded), most)
		}
	}
}
