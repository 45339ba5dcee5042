package approval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxEntryLine bounds one line of an exported audit, in bytes: its texts have MaxReason bytes each, and JSON makes six
// of one at most.
const maxEntryLine = 24*6*MaxReason + 4096

// signedHead is the last line of an export.
type signedHead struct {
	Signed string `json:"signed_head"`
}

// WriteExport writes an audit as JSON: its entries, one a line in their order, and behind them the signed head, if there is
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

// trailing refuses what stands behind a line's value.
func trailing(d *json.Decoder) error {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more than one value")
	}
	return nil
}
