package segment

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// The format. A frame is one delivery, a block is frames together, and each block is read alone:
//
//	block  = packed (0 or 1), length of text, CRC-32 (4 bytes, from packed on), text, when it is packed in the DEFLATE format
//	text   = digest trailer, frame, frame, ...
//	frame  = key, digest, took, writes, goto targets, routes, rest
//	write  = channel, overwrite (0 or 1), value
//	target = node, send (0 or 1), argument, run timeout, idle timeout
//
// Numbers and lengths are varints. A string, a value and the rest have their length before them, a list has the number of its
// elements. A value is JSON text. The rest is the JSON of an outcome's other fields, empty when there are none.
//
// The digest trailer is the digest of the block's last delivery that has no key: see [segmentRecord].

// The bounds of outcomes.
const (
	// maxSegmentBytes bounds a segment's outcomes, as frames and with outcomeCost each: together they are one result.
	maxSegmentBytes = 1500 << 10
	// outcomeCost is what an outcome counts beside the bytes of its frame: whoever reads it takes as much and more.
	outcomeCost = 96
	// maxOutcomeBytes bounds one outcome, and those of tasks that were under way together, where a host does not say: see Host.MostBytes.
	// The server refuses a payload of 2 MiB; some room is left for what a codec adds.
	maxOutcomeBytes = 1900 << 10
)

// coder writes and reads frames. Its memory is used again from one frame to the next.
type coder struct {
	out           []byte // what is written
	compact, html bytes.Buffer
	left          []byte            // what is to be read
	names         map[string]string // names that were read: equal ones share their memory
	err           error             // the first one
}

var errFrame = errors.New("the text of an outcome ends too early, or goes on behind its end")

// encode returns a delivery's frame, which stands until the next call. The error says that a value is no JSON.
func (c *coder) encode(d *Delivery) ([]byte, error) {
	c.out, c.err = c.out[:0], nil
	c.putText(d.Key)
	c.putText(d.Digest)
	c.putNumber(d.Took)
	c.putNumber(int64(len(d.Outcome.Update)))
	for i := range d.Outcome.Update {
		w := &d.Outcome.Update[i]
		c.putText(w.Channel)
		c.putFlag(w.Overwrite)
		c.putValue(w.Value)
	}
	c.putTargets(d.Outcome.Goto)
	c.putTargets(d.Outcome.Routes)
	c.putRest(&d.Outcome)
	return c.out, c.err
}

func (c *coder) putNumber(n int64) { c.out = binary.AppendUvarint(c.out, uint64(n)) }

func (c *coder) putFlag(set bool) { c.out = append(c.out, flagOf(set)) }

func flagOf(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func (c *coder) putText(s string) {
	c.putNumber(int64(len(s)))
	c.out = append(c.out, s...)
}

func (c *coder) putTargets(targets []pregel.Target) {
	c.putNumber(int64(len(targets)))
	for i := range targets {
		t := &targets[i]
		c.putText(t.Node)
		c.putFlag(t.Send)
		if len(t.Arg) == 0 {
			c.putText("")
		} else {
			c.putValue(t.Arg)
		}
		c.putNumber(t.RunTimeout)
		c.putNumber(t.IdleTimeout)
	}
}

// putValue writes a value as encoding/json does within another: compact, and with <, > and & escaped. A suspended run has its
// values in that form, so tasks have the same digests whether or not their run was suspended in between.
func (c *coder) putValue(v pregel.Value) {
	if v == nil {
		v = pregel.Null
	}
	c.compact.Reset()
	c.html.Reset()
	if err := json.Compact(&c.compact, v); err != nil {
		c.err = errors.Join(c.err, err)
		return
	}
	json.HTMLEscape(&c.html, c.compact.Bytes())
	c.putJSON(c.html.Bytes())
	if c.html.Cap() > maxScratch {
		c.compact, c.html = bytes.Buffer{}, bytes.Buffer{}
	}
}

// maxScratch bounds the memory, in bytes, that is kept from one value, or frame, to the next.
const maxScratch = 64 << 10

// A value that is nested as deep as a reader goes is too deep within what is made of it: a state, a checkpoint.
const (
	// maxNested is less than how deep encoding/json reads; as many bytes are the least that has that depth.
	maxNested = 9000
	// nestsWithin is how deep values are stored within others, at most.
	nestsWithin = 104
)

func (c *coder) putJSON(text []byte) {
	if len(text) > maxNested {
		within := slices.Concat(bytes.Repeat([]byte("["), nestsWithin), text, bytes.Repeat([]byte("]"), nestsWithin))
		if !json.Valid(within) {
			c.err = errors.Join(c.err, errors.New("its values are nested too deep"))
		}
	}
	c.putNumber(int64(len(text)))
	c.out = append(c.out, text...)
}

// putRest writes what an outcome has beside its writes and targets. Nearly all have nothing.
func (c *coder) putRest(o *pregel.Outcome) {
	if o.Parent == nil && o.Questions == nil && o.Error == nil && o.Emitted == nil && !o.Cached && o.Drain == "" &&
		!o.Again && o.Ledger == nil && !o.Yielded && o.Claim == "" && o.Kept == nil && o.Spent == nil && o.Timed == nil {
		c.putText("")
		return
	}
	rest := *o
	rest.Update, rest.Goto, rest.Routes = nil, nil, nil
	text, err := json.Marshal(&rest)
	c.err = errors.Join(c.err, err)
	c.putJSON(text)
}

// roundTrip encodes a delivery, and returns it as whoever reads the frame finds it. What is read shares no memory with what
// was given: a node may go on changing what it returned. The frame stands until the next call.
func (c *coder) roundTrip(d Delivery) (read Delivery, frame []byte, err error) {
	if frame, err = c.encode(&d); err == nil {
		c.left, read = frame, Delivery{Key: d.Key, Digest: d.Digest}
		_, _ = c.bytes(), c.bytes() // those two
		c.readOutcome(&read)
		err = c.err
	}
	if c.left = nil; cap(c.out) > maxScratch {
		c.out = nil
	}
	return read, frame, err
}

// delivery reads one frame.
func (c *coder) delivery() (d Delivery) {
	d.Key, d.Digest = string(c.bytes()), string(c.bytes())
	c.readOutcome(&d)
	return d
}

func (c *coder) readOutcome(d *Delivery) {
	d.Took = c.number()
	n := c.count()
	if n > 0 {
		d.Outcome.Update = make([]pregel.Write, 0, min(n, mostAtOnce))
	}
	for ; n > 0 && c.err == nil; n-- {
		d.Outcome.Update = append(d.Outcome.Update, pregel.Write{Channel: c.name(), Overwrite: c.flag(), Value: c.value()})
	}
	to, routes := c.targets(), c.targets()
	if rest := c.bytes(); len(rest) > 0 && c.err == nil {
		update := d.Outcome.Update
		c.err = json.Unmarshal(rest, &d.Outcome)
		d.Outcome.Update = update
	}
	d.Outcome.Goto, d.Outcome.Routes = to, routes
}

// mostAtOnce bounds what memory is made for before it is read: the number of a list's elements may be wrong.
const mostAtOnce = 64

func (c *coder) targets() (out []pregel.Target) {
	for n := c.count(); n > 0 && c.err == nil; n-- {
		out = append(out, pregel.Target{Node: c.name(), Send: c.flag(), Arg: c.value(),
			Timeouts: pregel.Timeouts{RunTimeout: c.number(), IdleTimeout: c.number()}})
	}
	return out
}

func (c *coder) number() int64 {
	n, size := binary.Uvarint(c.left)
	if size <= 0 {
		c.fail()
		return 0
	}
	c.left = c.left[size:]
	return int64(n)
}

// fail ends the reading: nothing is left.
func (c *coder) fail() { c.left, c.err = nil, errFrame }

// count reads a number of bytes or of elements, each of which has a byte at least.
func (c *coder) count() int {
	n := c.number()
	if n < 0 || n > int64(len(c.left)) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *coder) bytes() []byte {
	n := c.count()
	text := c.left[:n]
	c.left = c.left[n:]
	return text
}

func (c *coder) flag() bool {
	n := c.number()
	if n&^1 != 0 {
		c.fail()
	}
	return n == 1
}

// value reads a value; one of no bytes is none.
func (c *coder) value() pregel.Value {
	text := c.bytes()
	if len(text) == 0 {
		return nil
	}
	return bytes.Clone(text)
}

func (c *coder) name() string {
	text := c.bytes()
	name, known := c.names[string(text)]
	if !known {
		if name = string(text); c.names == nil {
			c.names = map[string]string{}
		}
		c.names[name] = name
	}
	return name
}

// packers are of the fastest level: outcomes are so much alike that the next ones gain little.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(io.Discard, flate.BestSpeed) // the level is known
	return w
}}

// minPacked is how many bytes of text are packed at least. To pack fewer takes longer than to store them does: a heartbeat of twenty
// short outcomes takes a twentieth less without.
const minPacked = 2 << 10

// appendBlock appends frames as one block; of no frames there is none.
func appendBlock(out []byte, trailer string, frames []byte) []byte {
	if len(frames) == 0 {
		return out
	}
	text := slices.Concat(binary.AppendUvarint(nil, uint64(len(trailer))), []byte(trailer), frames)
	if len(text) < minPacked {
		return putBlock(out, false, text)
	}
	return putBlock(out, true, pack(text))
}

func putBlock(out []byte, packed bool, text []byte) []byte {
	out = binary.AppendUvarint(append(out, flagOf(packed)), uint64(len(text)))
	return append(binary.LittleEndian.AppendUint32(out, sumOf(packed, text)), text...)
}

// sumOf is the sum of a block's text. One that is taken for packed, or for text as it is, has another one.
func sumOf(packed bool, text []byte) uint32 {
	if packed {
		return crc32.Update(1, crc32.IEEETable, text)
	}
	return crc32.ChecksumIEEE(text)
}

func pack(text []byte) []byte {
	var out bytes.Buffer
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(&out)
	_, _ = w.Write(text) // into memory
	_ = w.Close()
	return out.Bytes()
}

// The bounds of the text of all blocks of a record, and of a result: a segment leaves when its outcomes have maxSegmentBytes, and takes
// no more than Host.MostBytes.
const (
	maxRecordText = 2 * maxOutcomeBytes
	maxResultText = graphadapter.MaxResultBytes + maxOutcomeBytes
)

// decodeBlocks reads the deliveries of blocks. The error says that they were cut off, or changed, or have more text than room.
// They are about as many as expected.
func decodeBlocks(blocks []byte, expected, room int) (all []Delivery, err error) {
	c := coder{left: blocks}
	if len(blocks) > 0 {
		all = make([]Delivery, 0, max(min(expected, maxSegmentBytes/outcomeCost), 0))
	}
	for len(c.left) > 0 {
		isPacked, size := c.flag(), c.number()
		if c.err != nil || size < 0 || size > int64(len(c.left))-crc32.Size {
			return nil, errors.New("superstep: the outcomes of a segment cannot be read: their end is missing")
		}
		sum, text, next := binary.LittleEndian.Uint32(c.left), c.left[crc32.Size:][:size], c.left[crc32.Size+size:]
		if sumOf(isPacked, text) != sum {
			return nil, errors.New("superstep: the outcomes of a segment cannot be read: they were changed")
		}
		switch {
		case isPacked:
			text, err = unpack(text, room)
		case len(text) > room:
			err = tooLong(room)
		}
		if err == nil {
			room -= len(text)
			c.left = text
			all, err = c.block(all)
		}
		if err != nil {
			return nil, fmt.Errorf("superstep: the outcomes of a segment cannot be read: %w", err)
		}
		c.left = next
	}
	return all, nil
}

// block reads the text of one block.
func (c *coder) block(all []Delivery) ([]Delivery, error) {
	trailer, bare := string(c.bytes()), -1
	for len(c.left) > 0 {
		d := c.delivery()
		if d.Key == "" {
			bare = len(all)
		}
		all = append(all, d)
	}
	switch {
	case c.err != nil:
		return nil, c.err
	case (bare < 0) != (trailer == ""):
		return nil, errors.New("the digest of its last task is missing")
	case bare >= 0:
		all[bare].Digest = trailer
	}
	return all, nil
}

func tooLong(room int) error { return fmt.Errorf("a block has more than %d bytes", room) }

var unpackers = sync.Pool{New: func() any { return flate.NewReader(nil) }}

// unpack returns the text of a block, of at most that many bytes.
func unpack(packed []byte, room int) ([]byte, error) {
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	if err := r.(flate.Resetter).Reset(bytes.NewReader(packed), nil); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.Grow(min(8*len(packed), room))
	switch n, err := out.ReadFrom(io.LimitReader(r, int64(room)+1)); {
	case err != nil:
		return nil, err
	case n > int64(room):
		return nil, tooLong(room)
	}
	return out.Bytes(), nil
}
