package processes

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// longestLine bounds what is kept of a line that does not end.
const longestLine = 64 << 10

// Prefixer writes the output of several processes to one place, line by line, each with the name of its process in
// front, in columns:
//
//	devserver | …
//	worker-1  | …
//
// It is safe for concurrent use.
type Prefixer struct {
	mu     sync.Mutex
	out    io.Writer
	width  int
	colour bool
	taken  int
}

// NewPrefixer returns a prefixer for names of up to width characters. With colour each name has one of its own, as
// terminals understand it.
func NewPrefixer(out io.Writer, width int, colour bool) *Prefixer {
	return &Prefixer{out: out, width: width, colour: colour}
}

// colours are those that are read well on dark and on light.
var colours = []string{"36", "35", "32", "33", "34"}

// For returns the writer of one process. Its method Flush writes out a last line that has no end.
func (p *Prefixer) For(name string) io.Writer {
	p.mu.Lock()
	defer p.mu.Unlock()
	prefix := fmt.Sprintf("%-*s | ", p.width, name)
	if p.colour {
		prefix = "\x1b[" + colours[p.taken%len(colours)] + "m" + prefix + "\x1b[0m"
		p.taken++
	}
	return &prefixed{to: p, prefix: prefix}
}

// prefixed is the output of one process.
type prefixed struct {
	to     *Prefixer
	prefix string
	rest   []byte // of a line that has not ended
}

// Write implements io.Writer. It takes everything: that the screen is gone must not stop the log.
func (w *prefixed) Write(text []byte) (int, error) {
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	w.rest = append(w.rest, text...)
	for {
		line, rest, ended := bytes.Cut(w.rest, []byte("\n"))
		if !ended && len(w.rest) < longestLine {
			return len(text), nil
		}
		w.line(line)
		w.rest = rest
	}
}

// Flush writes out what was not ended by a newline.
func (w *prefixed) Flush() {
	w.to.mu.Lock()
	defer w.to.mu.Unlock()
	if len(w.rest) > 0 {
		w.line(w.rest)
		w.rest = nil
	}
}

func (w *prefixed) line(text []byte) { _, _ = fmt.Fprintf(w.to.out, "%s%s\n", w.prefix, text) }
