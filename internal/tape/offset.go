package tape

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/thread"
)

// Offset is the place behind one part of a stream: in which run, at which of its events, the number of what
// happened there, and the place among what that gives to stream.
type Offset struct {
	Run         string
	Event       int64
	Index, slot int
}

// offsetVersion is the first element of an offset's text.
const offsetVersion = "1"

// maxOffset bounds the text of an offset, in bytes.
const maxOffset = 300

// text is the offset as readers keep it. It ends with a check, so that one of another thread is not taken.
func (o Offset) text(thread string) string {
	body := fmt.Sprintf("%s/%s/%d/%d.%d", offsetVersion, o.Run, o.Event, o.Index, o.slot)
	return body + "/" + offsetCheck(thread, body)
}

func offsetCheck(thread, body string) string {
	sum := sha256.Sum256([]byte(thread + "\n" + body))
	return hex.EncodeToString(sum[:4])
}

// parseOffset reads the text of an offset of that thread.
func parseOffset(threadID, text string) (Offset, error) {
	refuse := func(why string) (Offset, error) {
		return Offset{}, &thread.Error{Kind: thread.ErrBadInput, Thread: threadID,
			Message: "this is no offset of a stream of thread " + strconv.Quote(threadID) + ": " + why,
			Do:      "Give the offset of a part that the stream gave, as it was, or none to begin with the newest run"}
	}
	if len(text) > maxOffset {
		return refuse(fmt.Sprintf("it has %d bytes, an offset has at most %d", len(text), maxOffset))
	}
	if version, _, _ := strings.Cut(text, "/"); version != offsetVersion {
		return refuse("its version is not " + offsetVersion)
	}
	cut := strings.LastIndexByte(text, '/')
	if offsetCheck(threadID, text[:cut]) != text[cut+1:] {
		return refuse("it is of another thread, or damaged")
	}
	// What passes the check was made here, or by somebody who knows how.
	var o Offset
	parts := strings.Split(text[:cut], "/")
	if len(parts) != 4 {
		return refuse("it is damaged")
	}
	index, slot, _ := strings.Cut(parts[3], ".")
	var errs [3]error
	o.Run = parts[1]
	o.Event, errs[0] = strconv.ParseInt(parts[2], 10, 64)
	o.Index, errs[1] = strconv.Atoi(index)
	o.slot, errs[2] = strconv.Atoi(slot)
	if errs != [3]error{} || o.Run == "" {
		return refuse("it is damaged")
	}
	return o, nil
}

// behind reports whether o comes after other in one run.
func (o Offset) behind(other Offset) bool {
	return cmp.Or(cmp.Compare(o.Event, other.Event), cmp.Compare(o.Index, other.Index), cmp.Compare(o.slot, other.slot)) > 0
}

// streamModes are the modes that can be asked for.
var streamModes = []thread.StreamMode{thread.StreamValues, thread.StreamUpdates, thread.StreamMessages, thread.StreamCustom, thread.StreamTasks, thread.StreamCheckpoints, thread.StreamDebug}

// CheckStream refuses unknown modes and offsets, and puts in the default mode. It returns the offset to begin behind, nil
// for none.
func CheckStream(r *thread.StreamRequest) (*Offset, error) {
	if len(r.Modes) == 0 {
		r.Modes = []thread.StreamMode{thread.StreamUpdates}
	}
	for _, m := range r.Modes {
		if !slices.Contains(streamModes, m) {
			return nil, &thread.Error{Kind: thread.ErrBadInput, Thread: r.Thread, Message: "unknown stream mode " + strconv.Quote(string(m)) +
				": there are values, updates, messages, custom, tasks, checkpoints and debug"}
		}
	}
	if r.From == "" {
		return nil, nil
	}
	from, err := parseOffset(r.Thread, r.From)
	return &from, err
}

// FailedStream is a stream that has nothing but an error.
func FailedStream(err error) iter.Seq2[thread.Part, error] {
	return func(yield func(thread.Part, error) bool) { yield(thread.Part{}, err) }
}
