package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/term"
)

// errNoAnswer says that whoever was asked left.
var errNoAnswer = errors.New("the question got no answer: the input ended; YES=1 answers it with yes")

// askPerson asks for yes or no, with yes for an empty line, and waits as long as it takes. Without a terminal, and with
// YES=1, it answers itself. The end of ctx is its cause as the error.
func askPerson(ctx context.Context, out *screen, question string) (yes bool, err error) {
	if os.Getenv("YES") == "1" || !term.IsTerminal(int(os.Stdin.Fd())) || out.width == 0 {
		out.line("   %s yes (nobody is asked: there is no terminal, or YES=1)", question)
		return true, nil
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
		out.begin("   %s [Y/n] ", question)
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case line, more := <-lines:
			if !more {
				out.line("")
				return false, errNoAnswer
			}
			if yes, clear := readAnswer(line); clear {
				return yes, nil
			}
		}
	}
}

// readAnswer reads yes or no, and reports whether it was one of them.
func readAnswer(line string) (yes, clear bool) {
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "", "y", "yes":
		return true, true
	case "n", "no":
		return false, true
	}
	return false, false
}
