package graphadapter

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"superstep.dev/graphadapter/pregel"
)

// SegmentProgress is what one execution of a segment leaves to the next: with the record, the details of its heartbeats.
type SegmentProgress struct {
	// Tasks are the ledgers of those under way, by pregel.Task.Key, as far as the request did not bring them.
	Tasks map[string]pregel.Value `json:"tasks,omitempty"`
	// Accounted is the last execution whose end is known, or that came further than the one before: those after it were
	// lost with their worker.
	Accounted int32 `json:"accounted,omitempty"`
}

// segmentRecord are deliveries on their way into heartbeats: JSON, one after the other, compressed as they come so that a
// heartbeat costs what is new. It is safe for concurrent use.
type segmentRecord struct {
	most int // bytes that a heartbeat may carry

	mu      sync.Mutex
	pending bytes.Buffer // not compressed yet
	out     bytes.Buffer
	stored  int // bytes of out that fit a heartbeat
	full    bool
	writer  *flate.Writer
	text    bytes.Buffer // what out is of
	flushes int          // in out
}

// mostFlushes is how many flushes a record has before it is compressed anew: each costs as much as half of what an everyday
// delivery does, and every heartbeat carries all of them.
const mostFlushes = 64

var recordWriters = sync.Pool{New: func() any {
	// The fastest level finds no repetition between writes that are flushed one by one: records would be four times as long.
	w, _ := flate.NewWriter(io.Discard, flate.DefaultCompression) // the level is known
	return w
}}

func newSegmentRecord(most int) *segmentRecord { return &segmentRecord{most: most} }

// add takes in one encoded delivery.
func (r *segmentRecord) add(encoded []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.full {
		r.pending.Write(encoded)
	}
}

// bytes returns what a heartbeat carries: all deliveries, or as many of the first ones as fit; then whole is false.
func (r *segmentRecord) bytes() (record []byte, whole bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending.Len() > 0 && !r.full {
		r.compress()
	}
	return bytes.Clone(r.out.Bytes()[:r.stored]), !r.full
}

// isFull reports whether a heartbeat does not carry all deliveries.
func (r *segmentRecord) isFull() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.full
}

func (r *segmentRecord) compress() {
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
	if r.most > 0 && r.out.Len() > r.most {
		r.full = true
		return
	}
	r.stored = r.out.Len()
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

// DecodeRecord reads the deliveries of a heartbeat.
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
			return out, nil
		default:
			return nil, fmt.Errorf("superstep: the record of a segment cannot be read: %w", err)
		}
	}
}
