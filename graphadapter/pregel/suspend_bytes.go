package pregel

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Bytes are the suspended run for [ReadSuspended], in any process: how many long values there are, then the text and each of them, behind
// its size. Nobody looks at what is in a long value, so it takes as long as to copy them. Its size is about [Suspended.Size].
func (s Suspended) Bytes() []byte {
	out := make([]byte, 0, s.Size()+binary.MaxVarintLen64*(2+len(s.long)))
	out = binary.AppendUvarint(out, uint64(len(s.long)))
	out = append(binary.AppendUvarint(out, uint64(len(s.text))), s.text...)
	for i := range s.long {
		v := s.long[i]
		open, last := v.open()
		out = append(append(binary.AppendUvarint(out, uint64(v.Len())), open...), last)
	}
	return out
}

// ReadSuspended reads what [Suspended.Bytes] wrote. The long values stay where they are in data, which nobody may change any more; who
// hands data over answers for them, for only their sizes are looked at. Data that is cut off, or goes on behind the last value, is an error.
func ReadSuspended(data []byte) (Suspended, error) {
	count, n := binary.Uvarint(data)
	if n <= 0 || count > uint64(len(data)) {
		return Suspended{}, errCutOff
	}
	text, rest, ok := cutSized(data[n:])
	s := Suspended{text: text}
	for range count {
		var v Value
		if v, rest, ok = cutSized(rest); !ok {
			return Suspended{}, errCutOff
		}
		s.long = append(s.long, Hold(v))
	}
	if !ok {
		return Suspended{}, errCutOff
	}
	if len(rest) > 0 {
		return Suspended{}, fmt.Errorf("%d bytes stand behind a suspended run", len(rest))
	}
	return s, nil
}

// errCutOff is of bytes that are not all of a suspended run.
var errCutOff = errors.New("a suspended run is cut off")

// cutSized cuts off what stands behind its size. It reports false when there is less.
func cutSized(data []byte) (part Value, rest []byte, ok bool) {
	size, n := binary.Uvarint(data)
	if n <= 0 || size > uint64(len(data)-n) {
		return nil, nil, false
	}
	end := n + int(size)
	return data[n:end:end], data[end:], true
}
