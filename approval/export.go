package approval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Head is the end of a thread's audit at a moment. Whoever has the entries can chain other ones; only who holds a worker's
// key can sign where they end.
type Head struct {
	Thread string
	Chain
	// At is when it was signed; whole seconds.
	At time.Time
	// KeyID is the key that signed it, and Worker whose it is: both are what [HeadKeys] knows, not what the head says.
	KeyID, Worker string
}

// HeadSigner signs the ends of audits with a worker's key. superstep.dev/approval/token has one.
type HeadSigner interface {
	// SignHead returns the head, signed; a zero At means now. It asks nobody: it is called where a run is read.
	SignHead(h Head) (string, error)
}

// HeadKeys verify signed heads. superstep.dev/approval/token has such keys.
type HeadKeys interface {
	// VerifyHead returns what a head says that a worker's key signed, while it was active. The error is a [*TokenError], or
	// one that says why the keys cannot be read.
	VerifyHead(signed string) (Head, error)
}

// Export is an audit as it is kept elsewhere.
type Export struct {
	Entries []Entry
	// Chain is where they end. It is not written: it follows from the entries, and Signed proves it.
	Chain Chain
	// Signed is a [Head] as a worker signed it, "" when none did.
	Signed string
}

// Verify proves an export: the entries follow each other from the first to the one that the signed head says is the last,
// and are all of its thread. from is the first entry that is expected: 1, or more when earlier runs were gone when it was
// exported. Nothing outside of the arguments is asked.
//
// The error is a [*BrokenError] when entries were changed, moved, added or left out; an [*UnsignedError] without a signed
// head; that of the keys when the head is not what one of them signed.
func (x Export) Verify(keys HeadKeys, from int) (Head, error) {
	if x.Signed == "" {
		return Head{}, &UnsignedError{}
	}
	head, err := keys.VerifyHead(x.Signed)
	if err != nil {
		return Head{}, err
	}
	var before Chain
	if len(x.Entries) > 0 {
		before = Chain{Count: x.Entries[0].Seq - 1, Head: x.Entries[0].Before}
	}
	if first := before.Count + 1; first != from && (len(x.Entries) > 0 || head.Count > 0) {
		return head, &BrokenError{Seq: min(first, from), Reason: fmt.Sprintf("it begins at %d, and %d is the first that is expected", first, from)}
	}
	for _, e := range x.Entries {
		if e.Thread != head.Thread {
			return head, &BrokenError{Seq: e.Seq, Reason: "it is of the thread " + quote(e.Thread) + ", and the signed head of " + quote(head.Thread)}
		}
	}
	end, err := VerifyEntries(before, x.Entries)
	if err != nil {
		return head, err
	}
	return head, end.Ends(head.Chain)
}

// UnsignedError says that an export has no signed head: nobody can tell whether it is what was recorded.
type UnsignedError struct{}

// Error implements error.
func (*UnsignedError) Error() string {
	return "the export has no signed head, so nobody can tell whether it was cut or made anew: export it again while a worker with an " +
		"audit key runs"
}

// maxEntryLine bounds one line of an exported audit, in bytes: its texts have MaxReason bytes each, and JSON makes six
// of one at most.
const maxEntryLine = 24*6*MaxReason + 4096

// signedHead is the last line of an export.
type signedHead struct {
	Signed string `json:"signed_head"`
}

// WriteExport writes an audit as JSON: its entries, one a line in their order, and after them the signed head, if there is
// one. The error is the writer's.
func WriteExport(w io.Writer, x Export) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, e := range x.Entries {
		if err := lines.Encode(e); err != nil {
			return fmt.Errorf("write entry %d of the audit: %w", e.Seq, err)
		}
	}
	if x.Signed == "" {
		return nil
	}
	if err := lines.Encode(signedHead{x.Signed}); err != nil {
		return fmt.Errorf("write the signed head of the audit: %w", err)
	}
	return nil
}

// ReadExport reads what [WriteExport] has written, strictly: a field that no entry has is an error, because no hash would
// cover it. An error names the line; whether the audit is what was recorded says [Export.Verify].
func ReadExport(r io.Reader) (Export, error) {
	var x Export
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEntryLine)
	n := 0
	for lines.Scan() {
		n++
		if x.Signed != "" {
			return Export{}, fmt.Errorf("line %d stands behind the signed head, which is the last", n)
		}
		if err := x.readLine(lines.Bytes()); err != nil {
			return Export{}, fmt.Errorf("line %d is no entry of an audit: %w", n, err)
		}
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("it has more than %d bytes", maxEntryLine)
	}
	if err != nil {
		return Export{}, fmt.Errorf("line %d cannot be read: %w", n+1, err)
	}
	if len(x.Entries) > 0 {
		last := x.Entries[len(x.Entries)-1]
		x.Chain = Chain{Count: last.Seq, Head: last.Hash}
	}
	return x, nil
}

func (x *Export) readLine(line []byte) error {
	strict := json.NewDecoder(bytes.NewReader(line))
	strict.DisallowUnknownFields()
	if bytes.HasPrefix(line, []byte(`{"signed_head"`)) {
		var head signedHead
		if err := strict.Decode(&head); err != nil {
			return err
		}
		x.Signed = head.Signed
		return trailing(strict)
	}
	var e Entry
	if err := strict.Decode(&e); err != nil {
		return err
	}
	x.Entries = append(x.Entries, e)
	return trailing(strict)
}

// trailing refuses a second value in a line.
func trailing(d *json.Decoder) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	return nil
}
