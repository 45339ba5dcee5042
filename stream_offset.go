package superstep

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// streamOffset is the place behind one part of a stream: in which run, at which of its events, the number of what
// happened there, and the place among what that gives to stream.
type streamOffset struct {
	run         string
	event       int64
	index, slot int
}

// offsetVersion is the first element of an offset's text.
const offsetVersion = "1"

// maxOffset bounds the text of an offset, in bytes.
const maxOffset = 300

// text is the offset as readers keep it. It ends with a check, so that one of another thread is not taken.
func (o streamOffset) text(thread string) string {
	body := fmt.Sprintf("%s/%s/%d/%d.%d", offsetVersion, o.run, o.event, o.index, o.slot)
	return body + "/" + offsetCheck(thread, body)
}

func offsetCheck(thread, body string) string {
	sum := sha256.Sum256([]byte(thread + "\n" + body))
	return hex.EncodeToString(sum[:4])
}

// parseOffset reads the text of an offset of that thread.
func parseOffset(thread, text string) (streamOffset, error) {
	refuse := func(why string) (streamOffset, error) {
		return streamOffset{}, &Error{Kind: ErrBadInput, Thread: thread,
			Message: "this is no offset of a stream of thread " + quote(thread) + ": " + why,
			Do:      "Give the offset of a part that the stream gave, as it was, or none to begin with the newest run"}
	}
	if len(text) > maxOffset {
		return refuse(fmt.Sprintf("it has %d bytes, an offset has at most %d", len(text), maxOffset))
	}
	if version, _, _ := strings.Cut(text, "/"); version != offsetVersion {
		return refuse("its version is not " + offsetVersion)
	}
	cut := strings.LastIndexByte(text, '/')
	if offsetCheck(thread, text[:cut]) != text[cut+1:] {
		return refuse("it is of another thread, or damaged")
	}
	// What passes the check was made here, or by somebody who knows how.
	var o streamOffset
	parts := strings.Split(text[:cut], "/")
	if len(parts) != 4 {
		return refuse("it is damaged")
	}
	index, slot, _ := strings.Cut(parts[3], ".")
	var errs [3]error
	o.run = parts[1]
	o.event, errs[0] = strconv.ParseInt(parts[2], 10, 64)
	o.index, errs[1] = strconv.Atoi(index)
	o.slot, errs[2] = strconv.Atoi(slot)
	if errs != [3]error{} || o.run == "" {
		return refuse("it is damaged")
	}
	return o, nil
}

// behind reports whether o comes after other in one run.
func (o streamOffset) behind(other streamOffset) bool {
	switch {
	case o.event != other.event:
		return o.event > other.event
	case o.index != other.index:
		return o.index > other.index
	}
	return o.slot > other.slot
}
