package segment

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestARecordStaysSmall although each of its deliveries is flushed: every heartbeat carries all of it.
func TestARecordStaysSmall(t *testing.T) {
	const steps = 1000
	var c coder
	for only, most := range map[bool]int{true: 4, false: 16} { // bytes each
		r := newSegmentRecord(0)
		var record []byte
		for i := range steps {
			d, frame, err := c.roundTrip(Delivery{Key: fmt.Sprintf("%d/again", i), Digest: fmt.Sprintf("%08x", uint32(i)*2654435761),
				Outcome: pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "turn", Value: pregel.Value(fmt.Sprint(i))}}}},
			})
			if err != nil {
				t.Fatal(err)
			}
			r.add(&d, frame, only)
			var held int
			record, held = r.carry()
			if i%97 > 0 {
				continue
			}
			all, err := DecodeRecord(record)
			if err != nil || len(all) != i+1 || held != i+1 || all[i].Digest != d.Digest || all[i].Key != "" && all[i].Key != d.Key {
				t.Fatalf("after %d deliveries %d of %d are read, error %v", i+1, len(all), held, err)
			}
		}
		if all, err := DecodeRecord(record); err != nil || len(all) != steps || len(record) > steps*most {
			t.Errorf("%d bytes hold %d deliveries, error %v; want at most %d bytes each", len(record), len(all), err, most)
		}
		r.close()
	}
}

// TestARecordIsReadWithItsTasks: who delivers it finds the tasks that it goes without, in a subgraph and side by side, too.
func TestARecordIsReadWithItsTasks(t *testing.T) {
	for name, c := range map[string]struct {
		g    *graphadapter.Graph
		bare int // deliveries, at least, that go without their tasks
	}{
		"one after the other": {countdown(20, nil), 19},
		"in a subgraph":       {countdownWithin(20), 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFusedRun(t, c.g, graphadapter.DurabilitySync, input(`{}`))
			s, err := OpenSegment(c.g, r.suspended(), false, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			var record []byte
			result, err := s.Run(t.Context(), Host{Keep: func(context.Context) error {
				record, _ = s.Record()
				return nil
			}})
			if err == nil {
				result, err = result.asStored()
			}
			if err != nil {
				t.Fatal(err)
			}
			all, err := DecodeRecord(record)
			if err != nil {
				t.Fatal(err)
			}
			bare := 0
			for _, d := range all {
				if d.Key == "" {
					bare++
				}
			}
			if bare < c.bare {
				t.Errorf("%d of %d deliveries go without their tasks, want %d at least", bare, len(all), c.bare)
			}
			if _, err := Redeliver(r.loop, r.ready, all, nil); err != nil || !reflect.DeepEqual(all, result.Deliveries[:len(all)]) {
				t.Errorf("delivered (%v) they are\n%+v\nand the segment's were\n%+v", err, all, result.Deliveries)
			}
		})
	}
}

// TestARecordOfOtherTasksIsNotDelivered, wherever it differs from what this engine comes to, nor one without its end.
func TestARecordOfOtherTasksIsNotDelivered(t *testing.T) {
	var c coder
	recordOf := func(change func(i int, d *Delivery)) []byte {
		g := countdown(20, nil)
		r := newFusedRun(t, g, graphadapter.DurabilitySync, input(`{}`))
		result, err := RunSegment(t.Context(), g, r.suspended(), Host{})
		if err != nil {
			t.Fatal(err)
		}
		record := newSegmentRecord(0)
		defer record.close()
		for i, d := range result.Deliveries[:15] {
			change(i, &d)
			_, frame, err := c.roundTrip(d)
			if err != nil {
				t.Fatal(err)
			}
			record.add(&d, frame, true)
		}
		text, _ := record.carry()
		return text
	}
	deliver := func(text []byte) error {
		all, err := DecodeRecord(text)
		if err == nil {
			r := newFusedRun(t, countdown(20, nil), graphadapter.DurabilitySync, input(`{}`))
			_, err = Redeliver(r.loop, r.ready, all, nil)
		}
		return err
	}
	whole := recordOf(func(int, *Delivery) {})
	if err := deliver(whole); err != nil {
		t.Errorf("the record itself: %v", err)
	}
	for _, at := range []int{0, 7, 13} {
		err := deliver(recordOf(func(i int, d *Delivery) {
			if i == at {
				d.Outcome.Update[0].Value = pregel.Value("12345")
			}
		}))
		var stray *StrayDeliveryError
		if !errors.As(err, &stray) {
			t.Errorf("another outcome %d was delivered: %v", at, err)
		}
	}
	if err := deliver(whole[:len(whole)-1]); err == nil {
		t.Error("a record without its end was delivered")
	}
}

// TestARecordThatIsFullHoldsWhatFits, whatever it was about to do when the news came that does not.
func TestARecordThatIsFullHoldsWhatFits(t *testing.T) {
	const most = 8 << 10
	var c coder
	add := func(r *segmentRecord, key, value string) {
		d, frame, err := c.roundTrip(Delivery{Key: key, Digest: "0a1b2c3d", Outcome: pregel.Outcome{Command: pregel.Command{
			Update: []pregel.Write{{Channel: "text", Value: pregel.Value(`"` + value + `"`)}}}}})
		if err != nil {
			t.Fatal(err)
		}
		r.add(&d, frame, false)
	}
	small := strings.Repeat("x", blockBytes/8)
	for before := range 18 { // around one block, and around two
		r := newSegmentRecord(most)
		for i := range before {
			if add(r, fmt.Sprintf("%d/small", i), small); !r.fits() {
				t.Fatalf("%d small deliveries do not fit", i+1)
			}
		}
		add(r, "99/large", randomText(2*most))
		record, held := r.carry()
		all, err := DecodeRecord(record)
		if r.fits() || err != nil || len(all) != before || held != before || len(record) > most {
			t.Errorf("%d deliveries before: %d bytes hold %d, error %v, whole %t", before, len(record), len(all), err, r.fits())
		}
		r.close()
		if late, _ := r.carry(); !bytes.Equal(late, record) {
			t.Errorf("%d deliveries before: a late heartbeat has %d bytes, want %d", before, len(late), len(record))
		}
	}
}

// randomText is text that compresses badly.
func randomText(n int) string {
	var b []byte
	for len(b) < n {
		b = append(b, rand.Text()...)
	}
	return string(b)
}
