package cli

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

// colour is the escape sequence that begins a colour on a terminal; "" is the terminal's own.
type colour string

const (
	green  colour = "\x1b[32m" // over, and well
	yellow colour = "\x1b[33m" // somebody is to act, or to know
	red    colour = "\x1b[31m" // went wrong
	cyan   colour = "\x1b[36m" // under way
	grey   colour = "\x1b[90m" // over, and of no more concern

	endColour = "\x1b[0m"
)

// colours are those of the words that say how something stands: of runs, of jobs and their parts, of writes to the
// outside, and of the lines of a followed run. A word has one colour wherever a screen shows the word.
var colours = map[string]colour{
	"finished": green, "committed": green, "ok": green,
	"waiting": yellow, "waiting_event": yellow, "drained": yellow, "paused": yellow, "stopped": yellow, "unknown": yellow, "intent": yellow,
	"failed": red, "timed_out": red, "out_of_budget": red, "terminated": red, "execution_error": red,
	"running": cyan, "started": cyan, "cancelled": grey, "compensated": grey, "replaced": grey, "not_kept": grey,
}

// status gives text the colour of the word that it begins with, on a terminal: "failed, held open" is red.
func (a *app) status(text string) string { return paint(a.colours, text) }

func paint(colourful bool, text string) string {
	if !colourful {
		return text
	}
	word, _, _ := strings.Cut(strings.ToLower(text), " ")
	begin, ok := colours[strings.TrimRight(word, ",:")]
	if !ok {
		return text
	}
	return string(begin) + text + endColour
}
