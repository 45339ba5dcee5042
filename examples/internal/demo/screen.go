package demo

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// indent is what the output of commands and of the run has in front.
const indent = "     "

// Screen is where a demo shows. What is written to it is complete lines, apart from Begin and the clock.
type Screen struct {
	out   io.Writer
	width int // of the terminal, 0 without one
	begun int // characters of the line that Begin began
}

// usualWidth is that of a terminal that does not say.
const usualWidth = 80

// NewScreen returns the screen that a file is.
func NewScreen(file *os.File) *Screen {
	s := &Screen{out: file}
	if !term.IsTerminal(int(file.Fd())) {
		return s
	}
	s.width = usualWidth
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 { // 0: nobody told the terminal its size
		s.width = width
	}
	return s
}

// Line writes a line. It has no error: a demo that nobody sees has nobody to tell.
func (s *Screen) Line(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// Step writes an indented line.
func (s *Screen) Step(format string, args ...any) { s.Line(indent+format, args...) }

// Begin writes the beginning of a line.
func (s *Screen) Begin(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.begun = utf8.RuneCountInString(text)
	fmt.Fprint(s.out, text)
}

// clock shows behind the beginning of a line how much time has passed, until stop. It is for terminals that have
// room for it.
func (s *Screen) clock(since time.Time) (stop func()) {
	const room = 8
	if s.width < s.begun+room {
		return func() {}
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		s.tick(since, done)
	}()
	return func() {
		close(done)
		<-gone
	}
}

// tick shows the time once a second, and takes it back in the end.
func (s *Screen) tick(since time.Time, done <-chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	shown := 0
	erase := func() { fmt.Fprint(s.out, strings.Repeat("\b \b", shown)) }
	defer func() { erase() }()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			erase()
			text := " " + spent(time.Since(since))
			shown = len(text)
			fmt.Fprint(s.out, text)
		}
	}
}

// Indented returns a writer for the output of commands.
func (s *Screen) Indented() io.Writer { return &indented{to: s} }

// Indented writes whole lines, each with the indent in front.
type indented struct {
	to   *Screen
	mu   sync.Mutex
	rest []byte
}

// Write implements io.Writer.
func (w *indented) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, text...)
	for {
		line, rest, ended := bytes.Cut(w.rest, []byte("\n"))
		if !ended {
			return len(text), nil
		}
		w.to.Step("%s", line)
		w.rest = rest
	}
}

// Flush writes a last line that has no end.
func (w *indented) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.to.Step("%s", w.rest)
		w.rest = nil
	}
}
