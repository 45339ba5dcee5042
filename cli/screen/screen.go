// Package screen is how the command line shows things: text for people, JSON for programs; tables, pictures and the lines of
// a run that is followed; colours and times; and what keeps secrets and control characters off a terminal. It knows no
// commands and no server.
package screen

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// The values of [Screen.Format].
const (
	FormatText = "text"
	FormatJSON = "json"
)

// Screen is where a command shows its results. It keeps the first failure of a write and writes no more after it, so that
// nobody has to look at each write: [Screen.Err] tells when the command is over. It may be written to concurrently.
type Screen struct {
	Format string
	// Colours says that the screen is a terminal that shows them.
	Colours bool
	// Verbose asks for a line for each task of a Send; otherwise a followed run counts them.
	Verbose bool
	// Now is the clock that times are shown by, in the reader's time zone.
	Now func() time.Time

	mu  sync.Mutex
	w   io.Writer
	err error
}

// New returns a screen for text.
func New(w io.Writer) *Screen {
	return &Screen{Format: FormatText, Colours: showsColours(w), Now: time.Now, w: w}
}

// JSON reports whether the reader is a program.
func (s *Screen) JSON() bool { return s.Format == FormatJSON }

// Printf writes text.
func (s *Screen) Printf(format string, args ...any) { fmt.Fprintf(s, format, args...) }

// Show shows a reply: v as one indented JSON document to a program, else what text prints.
func (s *Screen) Show(v any, text func()) { s.show(v, "  ", text) }

// ShowLine is Show for one of many: a program gets a line of JSON each.
func (s *Screen) ShowLine(v any, text func()) { s.show(v, "", text) }

func (s *Screen) show(v any, indent string, text func()) {
	if !s.JSON() {
		text()
		return
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // the reader is a program or a terminal, never a web page
	enc.SetIndent("", indent)
	if err := enc.Encode(v); err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.err = cmp.Or(s.err, fmt.Errorf("the reply cannot be shown as JSON: %w", err))
		return
	}
	s.Write(b.Bytes()) // a failure is kept
}

// Write implements io.Writer.
func (s *Screen) Write(p []byte) (int, error) {
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

// Err returns the first failure.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// showsColours reports whether what is written there is seen on a terminal, by somebody who has not asked for none.
func showsColours(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}

// The escape sequences that begin a colour on a terminal.
const (
	Green  = "\x1b[32m" // ended well
	Yellow = "\x1b[33m" // somebody should act, or know of it
	Red    = "\x1b[31m" // went wrong
	Cyan   = "\x1b[36m" // under way
	Grey   = "\x1b[90m" // ended, with nothing left to do
	// EndColour ends each of them.
	EndColour = "\x1b[0m"
)

// colours are those of the words that say how something stands: of runs, of jobs and their parts, of writes to the
// outside, and of the lines of a followed run. A word has one colour wherever a screen shows the word.
var colours = map[string]string{
	"finished": Green, "committed": Green, "ok": Green,
	"waiting": Yellow, "waiting_event": Yellow, "drained": Yellow, "paused": Yellow, "stopped": Yellow, "unknown": Yellow, "intent": Yellow,
	"failed": Red, "timed_out": Red, "out_of_budget": Red, "terminated": Red, "execution_error": Red,
	"running": Cyan, "started": Cyan, "working": Cyan, "retrying": Yellow, "cancelled": Grey, "compensated": Grey, "replaced": Grey, "not_kept": Grey,
}

// Status gives text the colour of the word that it begins with, on a terminal: "failed, held open" is red.
func (s *Screen) Status(text string) string {
	word, _, _ := strings.Cut(strings.ToLower(text), " ")
	return s.paint(colours[strings.TrimRight(word, ",:")], text)
}

func (s *Screen) paint(colour, text string) string {
	if !s.Colours || colour == "" {
		return text
	}
	return colour + text + EndColour
}
