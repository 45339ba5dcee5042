package cli

import (
	"strings"

	"github.com/spf13/pflag"

	"superstep.dev"
)

// commandLine returns the command of this program that can be typed as it stands: quoted for a shell, and with the
// connection flags that this command was given.
func (a *app) commandLine(args ...string) string {
	words := append([]string{a.program}, args...)
	words = append(words, a.conn.given()...)
	for i, w := range words {
		words[i] = shellQuote(w)
	}
	return strings.Join(words, " ")
}

// next prints what to type next. Programs that read JSON have the view to decide by.
func (a *app) next(args []string) {
	if len(args) > 0 && !a.json() {
		a.printf("Next: %s\n", a.commandLine(args...))
	}
}

// nextAfterLook prints what to type next after a look at a thread: not the same look again.
func (a *app) nextAfterLook(thread string, status superstep.Status, questions []superstep.Question) {
	if next := nextOf(thread, status, questions); len(next) > 0 && next[0] != "show" {
		a.next(next)
	}
}

// nextOf returns the command that takes a thread further, nil when there is nothing to do. A run in progress needs
// only to be looked at.
func nextOf(thread string, status superstep.Status, questions []superstep.Question) []string {
	switch {
	case status == superstep.StatusPaused:
		return []string{"unpause", thread}
	case len(questions) > 0:
		q := questions[0]
		if q.Approval != nil {
			return []string{"question", thread, q.ID}
		}
		return []string{"resume", thread, q.ID, "--value", sampleAnswer(q.Schema)}
	case status == superstep.StatusStopped:
		return []string{"resume", thread}
	case status.Failed(), status == superstep.StatusTerminated, status == superstep.StatusCancelled:
		return []string{"retry", thread}
	case status == superstep.StatusRunning, status == superstep.StatusWaiting, status == superstep.StatusWaitingEvent:
		return []string{"show", thread}
	default:
		return nil
	}
}

// shellQuote quotes a word for a POSIX shell when it needs that.
func shellQuote(word string) string {
	if word != "" && strings.IndexFunc(word, needsQuotes) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// needsQuotes reports whether r means something to a shell, or might.
func needsQuotes(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return false
	default:
		return !strings.ContainsRune("_@%+=:,./-", r)
	}
}

// given returns the connection flags of this command line, as words.
func (f *connectionFlags) given() []string {
	if f.set == nil {
		return nil
	}
	var words []string
	f.set.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed {
			words = append(words, "--"+flag.Name, flag.Value.String())
		}
	})
	return words
}
