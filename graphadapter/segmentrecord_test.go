package graphadapter

import (
	"crypto/rand"
	"fmt"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// TestARecordStaysSmall although each of its deliveries is flushed: every heartbeat carries all of it.
func TestARecordStaysSmall(t *testing.T) {
	const steps, most = 1000, 16 // bytes each
	r := newSegmentRecord(0)
	defer r.close()
	var record []byte
	for i := range steps {
		_, encoded, err := asRead(Delivery{Key: fmt.Sprintf("%d/again", i), Digest: fmt.Sprintf("%08x", uint32(i)*2654435761),
			Outcome: pregel.Outcome{Command: pregel.Command{Update: []pregel.Write{{Channel: "turn", Value: pregel.Value(fmt.Sprint(i))}}}},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.add(encoded)
		record, _ = r.bytes()
		if all, err := DecodeRecord(record); i%97 == 0 && (err != nil || len(all) != i+1 || all[i].Key != fmt.Sprintf("%d/again", i)) {
			t.Fatalf("after %d deliveries %d are read, error %v", i+1, len(all), err)
		}
	}
	if all, err := DecodeRecord(record); err != nil || len(all) != steps || len(record) > steps*most {
		t.Errorf("%d bytes hold %d deliveries, error %v; want at most %d bytes each", len(record), len(all), err, most)
	}
}

// TestARecordThatIsFullHoldsWhatFits, whatever it was about to do when the news came that does not.
func TestARecordThatIsFullHoldsWhatFits(t *testing.T) {
	const most = 8 << 10
	for before := mostFlushes - 2; before <= mostFlushes+2; before++ {
		r := newSegmentRecord(most)
		for i := range before {
			r.add(fmt.Appendf(nil, `{"key":"%d/small"}`, i))
			if _, whole := r.bytes(); !whole {
				t.Fatalf("%d small deliveries do not fit", i+1)
			}
		}
		r.add(fmt.Appendf(nil, `{"key":"%s"}`, randomText(2*most)))
		record, whole := r.bytes()
		all, err := DecodeRecord(record)
		if whole || err != nil || len(all) != before || len(record) > most {
			t.Errorf("%d deliveries before: %d bytes hold %d, error %v, whole %t", before, len(record), len(all), err, whole)
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
