package cli

import (
	"io"
	"os"

	"golang.org/x/term"
)

// showsColours reports whether what is written there is seen on a terminal, by somebody who has not asked for none.
func showsColours(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(file.Fd()))
}
