package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
)

// The output formats.
const (
	outputText = "text"
	outputJSON = "json"
)

// json reports whether the reader is a program.
func (a *app) json() bool { return a.output == outputJSON }

// wantsJSON reports whether a command line asks for JSON, as far as one can tell without parsing it.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		switch {
		case arg == "-ojson", arg == "-o=json", arg == "--output=json":
			return true
		case (arg == "-o" || arg == "--output") && i+1 < len(args) && args[i+1] == outputJSON:
			return true
		}
	}
	return false
}

// writeJSON writes v as one indented document.
func (a *app) writeJSON(v any) error {
	return encodeJSON(a.stdout, v, "  ")
}

// writeJSONLine writes v as one line.
func (a *app) writeJSONLine(v any) error {
	return encodeJSON(a.stdout, v, "")
}

func encodeJSON(w io.Writer, v any, indent string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the reader is a program or a terminal, never a web page
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("the reply cannot be shown as JSON: %w", err)
	}
	_, err := b.WriteTo(w)
	return err
}

// printf writes to the screen. A failed write is kept and reported when the command is over.
func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.stdout, format, args...) }

// checkOutput refuses an unknown -o.
func (a *app) checkOutput() error {
	if a.output != outputText && a.output != outputJSON {
		return usagef("-o %s: the formats are text and json", quoted(a.output))
	}
	return nil
}

// stickyWriter remembers the first error and writes no more after it. It may be written to concurrently.
type stickyWriter struct {
	mu  sync.Mutex
	w   io.Writer
	err error
}

// Write implements io.Writer.
func (s *stickyWriter) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.w.Write(p)
	if err != nil {
		s.err = fmt.Errorf("writing the output: %w", err)
	}
	return n, s.err
}

// fail makes err the error of the output unless there is one already.
func (s *stickyWriter) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
	}
}

// failure returns the first error.
func (s *stickyWriter) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// quoted shows what a user typed within a message, bounded.
func quoted(s string) string {
	const most = 60
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return fmt.Sprintf("%q", s)
}
