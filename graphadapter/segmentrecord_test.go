package graphadapter

import (
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
