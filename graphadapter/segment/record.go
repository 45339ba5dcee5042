package segment

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// SegmentProgress is what one execution of a segment leaves to the next: with the record, the details of its heartbeats.
type Progress struct {
	// Tasks are the ledgers of those under way, by pregel.Task.Key, as far as the request did not bring them.
	Tasks map[string]pregel.Value `json:"tasks,omitempty"`
	// Losses are the executions since the last whose end is known, or that came further.
	graphadapter.Losses
}

// segmentRecord are deliveries on their way into heartbeats: JSON, one after the other, compressed as they come so that a
// heartbeat costs what is new. It is safe for concurrent use.
//
// A delivery of the only task that was handed out goes without the task's name and digest, which is most of what an
// everyday one would take: whoever delivers the ones before knows the task. The digest of the last of those follows behind
// all of them. It sums up the others, as they are of the root graph.
type segmentRecord struct {
	most int // bytes that a heartbeat may carry

	mu      sync.Mutex
	pending bytes.Buffer // not compressed yet
	out     bytes.Buffer
	stored  int // bytes of out that fit a heartbeat
	full    bool
	held    extent // what is in stored
	added   extent // that, and what is pending
	carried int    // bytes, by all heartbeats
	writer  *flate.Writer
	text    bytes.Buffer // what out is of
	flushes int          // in out
}

// extent is how much of a segment is somewhere.
type extent struct {
	deliveries int
	digest     string // of the last delivery that goes without its task, "" for none
}

// mostFlushes is how many flushes a record has before it is compressed anew: each takes some ten bytes, more than a small
// delivery does, and every heartbeat carries all of them.
const mostFlushes = 64

var recordWriters = sync.Pool{New: func() any {
	// The fastest level finds no repetition between writes that are flushed one by one: records would be four times as long.
	w, _ := flate.NewWriter(io.Discard, flate.DefaultCompression) // the level is known
	return w
}}

func newSegmentRecord(most int) *segmentRecord { return &segmentRecord{most: most} }

// add takes in one delivery, and how it is encoded. only says that its task was the root graph's, and the only one that was
// handed out.
func (r *segmentRecord) add(d *Delivery, encoded []byte, only bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return
	}
	r.added.deliveries++
	if outcome := onlyOutcome(d, encoded); only && outcome != nil {
		r.added.digest = d.Digest
		r.pending.WriteByte('{')
		encoded = outcome
	}
	r.pending.Write(encoded)
}

// onlyOutcome is what an encoded delivery has behind its task's name and digest; nil for one that keeps them. One with a
// ledger does: it is read by itself, to tell what was done outside.
func onlyOutcome(d *Delivery, encoded []byte) []byte {
	at := len(deliveryKey) + len(d.Key) + len(deliveryDigest) + len(d.Digest) + 4*len(`"`) + len(`,`)
	if d.Outcome.Ledger != nil || at > len(encoded) || !bytes.HasPrefix(encoded[at:], []byte(deliveryOutcome)) {
		return nil
	}
	return encoded[at:]
}

// carry returns what the next heartbeat carries, and how many deliveries: all, or as many of the first ones as fit.
func (r *segmentRecord) carry() (record []byte, deliveries int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compress()
	record = make([]byte, 0, r.stored+sealBytes)
	record = appendSeal(append(record, r.out.Bytes()[:r.stored]...), r.held.digest)
	r.carried += len(record)
	return record, r.held.deliveries
}

// fits finds out whether the next heartbeat carries all deliveries.
func (r *segmentRecord) fits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compress()
	return !r.full
}

// sealBytes is how long what appendSeal appends is at most.
const sealBytes = len(`{"digest":""}`) + digestBytes + 5

// appendSeal ends a record with the digest of the last delivery that goes without: as a delivery with nothing else, in the
// last block of the compressed text, which is not compressed (RFC 1951, 3.2.4).
func appendSeal(record []byte, digest string) []byte {
	if digest == "" {
		return record
	}
	seal := fmt.Appendf(nil, `{"digest":%q}`, digest)
	record = append(record, 1)
	record = binary.LittleEndian.AppendUint16(record, uint16(len(seal)))
	record = binary.LittleEndian.AppendUint16(record, ^uint16(len(seal)))
	return append(record, seal...)
}

// isSpent reports whether another segment does better: a heartbeat does not carry all deliveries, or they have carried much.
func (r *segmentRecord) isSpent() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full || r.carried > maxCarried
}

func (r *segmentRecord) compress() {
	if r.pending.Len() == 0 || r.full {
		return
	}
	if r.writer == nil {
		r.writer = recordWriters.Get().(*flate.Writer)
		r.writer.Reset(&r.out)
	}
	if r.flushes == mostFlushes {
		r.out.Reset()
		r.writer.Reset(&r.out)
		_, _ = r.writer.Write(r.text.Bytes()) // into memory, as all that follows
		_ = r.writer.Flush()
		r.stored, r.flushes = r.out.Len(), 1 // that is what fits if the news does not
	}
	_, _ = r.writer.Write(r.pending.Bytes())
	_ = r.writer.Flush()
	r.flushes++
	_, _ = r.pending.WriteTo(&r.text)
	if r.most > 0 && r.out.Len()+sealBytes > r.most {
		r.full = true
		return
	}
	r.stored, r.held = r.out.Len(), r.added
}

// close gives the compressor back.
func (r *segmentRecord) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.writer != nil {
		recordWriters.Put(r.writer)
		r.writer = nil
	}
	r.full = true
}

// DecodeRecord reads the deliveries of a heartbeat. Those that go without their tasks have an empty Key, and all but the last
// of them an empty Digest, until [Redeliver] has found their tasks. The error says that it is no record, or one that was cut
// off.
func DecodeRecord(record []byte) ([]Delivery, error) {
	if len(record) == 0 {
		return nil, nil
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(record)))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // a record is flushed, never ended
		return nil, fmt.Errorf("superstep: the record of a segment cannot be read: %w", err)
	}
	var out []Delivery
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var d Delivery
		switch err := decoder.Decode(&d); {
		case err == nil:
			out = append(out, d)
		case errors.Is(err, io.EOF):
			return unseal(out)
		default:
			return nil, fmt.Errorf("superstep: the record of a segment cannot be read: %w", err)
		}
	}
}

// unseal gives the last delivery that goes without a digest the one that follows all of them.
func unseal(all []Delivery) ([]Delivery, error) {
	isBare := func(d Delivery) bool { return d.Key == "" }
	if !slices.ContainsFunc(all, isBare) {
		return all, nil
	}
	last := len(all) - 1
	seal, all := all[last], all[:last]
	for i := range slices.Backward(all) {
		if seal.Key == "" && seal.Digest != "" && isBare(all[i]) {
			all[i].Digest = seal.Digest
			return all, nil
		}
	}
	return nil, errors.New("superstep: the record of a segment cannot be read: its end is missing")
}
