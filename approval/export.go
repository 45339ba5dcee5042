package approval

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxEntryLine bounds one line of an exported audit, in bytes: its texts have MaxReason bytes each, and JSON makes six
// of one at most.
const maxEntryLine = 13*6*MaxReason + 4096

// WriteEntries writes entries as JSON, one a line in their order: as [VerifyEntries] wants them back. The error is the
// writer's.
func WriteEntries(w io.Writer, entries []Entry) error {
	lines := json.NewEncoder(w)
	lines.SetEscapeHTML(false)
	for _, e := range entries {
		if err := lines.Encode(e); err != nil {
			return fmt.Errorf("write entry %d of the audit: %w", e.Seq, err)
		}
	}
	return nil
}

// ReadEntries reads what [WriteEntries] has written. An error names the line; whether the entries are as they were
// recorded says [VerifyEntries].
func ReadEntries(r io.Reader) ([]Entry, error) {
	var entries []Entry
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxEntryLine)
	for lines.Scan() {
		var e Entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("line %d is no entry of an audit: %w", len(entries)+1, err)
		}
		entries = append(entries, e)
	}
	err := lines.Err()
	if errors.Is(err, bufio.ErrTooLong) {
		err = fmt.Errorf("it has more than %d bytes", maxEntryLine)
	}
	if err != nil {
		return nil, fmt.Errorf("line %d cannot be read: %w", len(entries)+1, err)
	}
	return entries, nil
}
