package segment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// TestARecordStaysSmall although each of its deliveries is flushed: every heartbeat carries all of it.
func TestARecordStaysSmall(t *testing.T) {
	const steps = 1000
	for _, c := range []struct {
		only bool
		most int // bytes each
	}{{true, 4}, {false, 16}} {
		r := newSegmentRecord(0)
		var record []byte
		for i := range steps {
			d, encoded, err := asRead(Delivery{Key: fmt.Sprintf("%d/again", i), Digest: fmt.Sprintf("%08x", uint32(i)*2654435761),
				Outcome: pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "turn", Value: pregel.Value(fmt.Sprint(i))}}}},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.add(&d, encoded, c.only)
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
		if all, err := DecodeRecord(record); err != nil || len(all) != steps || len(record) > steps*c.most {
			t.Errorf("%d bytes hold %d deliveries, error %v; want at most %d bytes each", len(record), len(all), err, c.most)
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
			s, err := OpenSegment(c.g, r.suspended(), false, nil, Progress{})
			if err != nil {
				t.Fatal(err)
			}
			var record []byte
			result, err := s.Run(t.Context(), Host{Keep: func(context.Context) error {
				record, _ = s.Record()
				return nil
			}})
			if err == nil {
				err = result.read()
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
			_, encoded, err := asRead(d, nil)
			if err != nil {
				t.Fatal(err)
			}
			record.add(&d, encoded, true)
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
	if err := deliver(whole[:len(whole)-sealBytes]); err == nil {
		t.Error("a record without its end was delivered")
	}
}

// TestARecordThatIsFullHoldsWhatFits, whatever it was about to do when the news came that does not.
func TestARecordThatIsFullHoldsWhatFits(t *testing.T) {
	const most = 8 << 10
	for before := mostFlushes - 2; before <= mostFlushes+2; before++ {
		r := newSegmentRecord(most)
		for i := range before {
			r.add(&Delivery{}, fmt.Appendf(nil, `{"key":"%d/small"}`, i), false)
			if !r.fits() {
				t.Fatalf("%d small deliveries do not fit", i+1)
			}
		}
		r.add(&Delivery{}, fmt.Appendf(nil, `{"key":"%s"}`, randomText(2*most)), false)
		record, held := r.carry()
		all, err := DecodeRecord(record)
		if r.fits() || err != nil || len(all) != before || held != before || len(record) > most {
			t.Errorf("%d deliveries before: %d bytes hold %d, error %v, whole %t", before, len(record), len(all), err, r.fits())
		}
		r.close()
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
