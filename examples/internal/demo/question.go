package demo

import (
	"bufio"
	"context"
	"os"
	"strings"

	"golang.org/x/term"
)

// errNoAnswer says that whoever was asked left.
var errNoAnswer = &EndedError{Reason: "the question got no answer: the input ended; YES=1 answers it by itself", Exit: 1}

// Ask asks at the terminal, shows what an empty line means, and waits until read accepts a line. Without a terminal, and
// with YES=1, the answer is that of the empty line, which is said. The end of ctx is its cause as the error.
func Ask[A any](ctx context.Context, out *Screen, question, choices, usual string, read func(line string) (A, bool)) (A, error) {
	var none A
	if os.Getenv("YES") == "1" || !term.IsTerminal(int(os.Stdin.Fd())) || out.width == 0 {
		out.Line("   %s %s (nobody is asked: there is no terminal, or YES=1)", question, usual)
		answer, _ := read("")
		return answer, nil
	}
	lines := make(chan string)
	go func() { // ends with the process at the latest: a read cannot be taken back
		defer close(lines)
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() {
			lines <- in.Text()
		}
	}()
	for {
		out.Begin("   %s [%s] ", question, choices)
		select {
		case <-ctx.Done():
			return none, context.Cause(ctx)
		case line, more := <-lines:
			if !more {
				out.Line("")
				return none, errNoAnswer
			}
			if answer, clear := read(strings.TrimSpace(line)); clear {
				return answer, nil
			}
		}
	}
}

// YesNo reads yes or no, with yes for an empty line, and reports whether it was one of them.
func YesNo(line string) (yes, clear bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes":
		return true, true
	case "n", "no":
		return false, true
	}
	return false, false
}
