package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
)

func (a *app) jobAnswerCommand() *cobra.Command {
	return a.build(command{
		use: "answer JOB", short: "Wait for a job and print its answer", args: []string{"JOB"},
		about:   `The answer is whole and alone on standard output. A job that failed or was stopped has none, and the command fails.`,
		example: []string{"job answer report-3", "job answer report-3 | less"},
		run: func(cmd *cobra.Command, args []string) error {
			return onJob(a, cmd.Context(), args[0], service.JobAnswer, func(answer superstep.JobAnswer) error {
				a.printf("%s\n", lines(answer.Text))
				return nil
			})
		},
	})
}

// lines is a text of several lines without what a terminal would take for more than text. Its layout is kept.
func lines(text string) string {
	var b strings.Builder
	for _, r := range strings.TrimRight(text, "\n") {
		switch {
		case harmless(r) || r == ' ' || r == '\n':
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}
