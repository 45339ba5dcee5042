package tape

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"superstep.dev/thread"
)

// Offset is the place after one part of a stream: in which run, at which of its events, the number of the entry
// there, and the place among the parts of that entry. A reader can be further than the history: then ahead says which entries it
// has read since, and emitted, by [taskName], how much it has of what the tasks under way emit.
type Offset struct {
	Run         string
	Event       int64
	Index, slot int
	ahead       ahead
	emitted     map[string]Emitted
}

// offsetVersion is the first element of an offset's text.
const offsetVersion = "2"

// maxOffset bounds the text of an offset, in bytes.
const maxOffset = 300 + 60*MostUnderWay

// text is the offset as readers keep it. It ends with a check, so that one of another thread is not taken.
func (o Offset) text(thread string) string {
	body := fmt.Sprintf("%s/%s/%d/%d.%d", offsetVersion, o.Run, o.Event, o.Index, o.slot)
	if o.ahead.count > 0 || len(o.emitted) > 0 {
		body += fmt.Sprintf("/%d.%d/", o.ahead.count, o.ahead.digest)
		for i, task := range slices.Sorted(maps.Keys(o.emitted)) {
			if i > 0 {
				body += ","
			}
			e := o.emitted[task]
			body += fmt.Sprintf("%s.%d.%d.%d", task, e.Attempt, e.Count, e.Digest)
		}
	}
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
	// A text that passes the check was made here, or by a program that computes the check.
	parts := strings.Split(text[:cut], "/")
	if len(parts) != 4 && len(parts) != 6 {
		return refuse("it is damaged")
	}
	var numbers numberReader
	o := Offset{Run: parts[1], Event: int64(numbers.read(parts[2], 63))}
	index, slot, _ := strings.Cut(parts[3], ".")
	o.Index, o.slot = numbers.signed(index), int(numbers.read(slot, 31))
	if len(parts) == 6 {
		o.readUntold(parts[4], parts[5], &numbers)
	}
	if numbers.failed || o.Run == "" || len(o.emitted) > MostUnderWay {
		return refuse("it is damaged")
	}
	return o, nil
}

// readUntold reads how far the offset is beyond what the history had told.
func (o *Offset) readUntold(entries, tasks string, numbers *numberReader) {
	count, digest, _ := strings.Cut(entries, ".")
	o.ahead = ahead{count: int(numbers.read(count, 31)), digest: uint32(numbers.read(digest, 32))}
	if tasks == "" {
		return
	}
	o.emitted = map[string]Emitted{}
	for task := range strings.SplitSeq(tasks, ",") {
		fields := strings.Split(task, ".")
		if len(fields) != 4 {
			numbers.failed = true
			return
		}
		o.emitted[fields[0]] = Emitted{Attempt: int(numbers.read(fields[1], 31)), Count: int(numbers.read(fields[2], 31)),
			Digest: uint32(numbers.read(fields[3], 32))}
	}
}

// numberReader reads the numbers of a text, and notes whether one was none.
type numberReader struct{ failed bool }

func (r *numberReader) read(text string, bits int) uint64 {
	n, err := strconv.ParseUint(text, 10, bits)
	r.failed = r.failed || err != nil
	return n
}

func (r *numberReader) signed(text string) int {
	n, err := strconv.Atoi(text)
	r.failed = r.failed || err != nil
	return n
}

// Behind is the offset after all that a run had streamed when its history had that many events.
func Behind(threadID, run string, events int64) string {
	return Offset{Run: run, Event: events, Index: math.MaxInt32, slot: BehindAll}.text(threadID)
}

// behind reports whether o comes after other in one run.
func (o Offset) behind(other Offset) bool {
	return cmp.Or(cmp.Compare(o.Event, other.Event), cmp.Compare(o.Index, other.Index), cmp.Compare(o.slot, other.slot)) > 0
}
