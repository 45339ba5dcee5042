package screen

import (
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

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
	"running": Cyan, "started": Cyan, "cancelled": Grey, "compensated": Grey, "replaced": Grey, "not_kept": Grey,
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
