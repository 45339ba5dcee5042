package segment

import (
	"fmt"
	"testing"

	"superstep.dev/graphadapter/pregel"
)

// everyday are outcomes as those of an agent's loop: a counter, and a message of which the half is new each time.
func everyday(n int) (all []Delivery) {
	for i := range n {
		said := fmt.Sprintf(`[{"role":"tool","content":"looked at the order o-%d, done","id":"m-%d"}]`, i*7919%10007, i)
		all = append(all, Delivery{Key: fmt.Sprintf("%d/agent", i), Digest: fmt.Sprintf("%08x", uint32(i)*2654435761), Took: int64(i % 3),
			Outcome: pregel.Outcome{
				Command: pregel.Command{Update: []pregel.Write{{Channel: "turn", Value: pregel.Value(fmt.Sprint(i))}, {Channel: "messages", Value: pregel.Value(said)}}},
				Routes:  []pregel.Target{{Node: "agent"}},
			}})
	}
	return all
}

// BenchmarkResult encodes outcomes one by one as they come, then a result of them, and reads that.
func BenchmarkResult(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		all := everyday(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				r, _ := resultOf(b, all, 0)
				encoded, err := r.Encode()
				if err != nil {
					b.Fatal(err)
				}
				size = len(encoded)
				if read, err := DecodeResult(encoded); err != nil || len(read.Deliveries) != n {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}

// BenchmarkRecord has a heartbeat behind each of a thousand outcomes.
func BenchmarkRecord(b *testing.B) {
	all := everyday(1000)
	for _, only := range []bool{true, false} {
		b.Run(fmt.Sprint("only=", only), func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for b.Loop() {
				var c coder
				r := newSegmentRecord(0)
				for i := range all {
					d, frame, err := c.roundTrip(all[i])
					if err != nil {
						b.Fatal(err)
					}
					r.add(&d, frame, only)
					record, _ := r.carry()
					size = len(record)
				}
				r.close()
			}
			b.ReportMetric(float64(size), "bytes")
		})
	}
}
