package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"superstep.dev"
	"superstep.dev/cli/keyuse"
	"superstep.dev/cli/screen"
)

// testApp returns a command line whose world is the script's.
func testApp(t *testing.T, s *script, stdin string) (a *app, stdout, stderr *bytes.Buffer) {
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	a = newApp(strings.NewReader(stdin), stdout, stderr, Program{})
	a.program = "superstep"
	a.env = environment{"TEMPORAL_CONFIG_FILE": t.TempDir() + "/none.toml"}
	a.Now = func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }
	a.newThread = func(graph string) string { return graph + "-x7k2mq9h" }
	a.userName = func() string { return "ann" }
	a.backend.dial, a.backend.announced, a.backend.folder, a.backend.announcedLive, a.backend.works = s.dial, nil, nil, nil, nil
	a.backend.keyUses = func(context.Context, client.Client, string, string) (keyuse.Uses, error) { return keyuse.Uses{}, nil }
	a.backend.service = func(client.Client, superstep.ClientConfig) (service, error) { return s, nil }
	return a, stdout, stderr
}

// TestScreens plays the command lines in testdata/screens. The directives:
//
//	service          the replies of the server from here on, as JSON by method; its parts are kept until replaced
//	cmd [calls] [colours] [graphs=(a,b)] [program=worker]   a command line of the whole program, under that name, or of the worker or the starter, and below it what comes from standard input; shows both outputs,
//	                             the exit code, with calls what the server was asked, and with colours what a
//	                             terminal shows, as <green>finished</>
func TestScreens(t *testing.T) {
	datadriven.Walk(t, "testdata/screens", func(t *testing.T, path string) {
		s := &script{replies: map[string]reply{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "service":
				if err := json.Unmarshal([]byte(d.Input), &s.replies); err != nil {
					d.Fatalf(t, "the script: %v", err)
				}
				return ""
			case "cmd":
				return playCommand(t, d, s)
			default:
				d.Fatalf(t, "no such directive")
				return ""
			}
		})
	})
}

// colourNames shows escape sequences as words.
var colourNames = strings.NewReplacer(screen.Green, "<green>", screen.Yellow, "<yellow>", screen.Red, "<red>",
	screen.Cyan, "<cyan>", screen.Grey, "<grey>", screen.EndColour, "</>")

// programs are the programs that are no whole command line.
var programs = map[string]func(*app) *cobra.Command{
	"worker":  func(a *app) *cobra.Command { return operating{a}.workerProgram() },
	"starter": func(a *app) *cobra.Command { return starting{a}.program() },
}

// playCommand runs one command line and returns what the user sees.
func playCommand(t *testing.T, d *datadriven.TestData, s *script) string {
	line, stdin, _ := strings.Cut(d.Input, "\n")
	args := words(t, line)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.asked, s.interrupt = nil, cancel
	a, stdout, stderr := testApp(t, s, stdin)
	for _, arg := range d.CmdArgs {
		if arg.Key == "graphs" {
			for _, name := range arg.Vals {
				a.graphs = append(a.graphs, superstep.Runnable(drawn{name}))
			}
		}
	}
	a.Colours = d.HasArg("colours")
	root := (*app).rootCommand
	if d.HasArg("program") {
		d.ScanArgs(t, "program", &a.program)
		if own, ok := programs[a.program]; ok {
			root = own
		}
	}
	code := a.runAs(ctx, root(a), args[1:])
	if len(args) > 1 && args[1] == "__complete" {
		stderr.Reset() // the library explains itself to who writes completions
	}
	checkStderr(t, d, stderr.String(), code)
	checkNext(t, d, stdout.String())
	var out strings.Builder
	out.WriteString(colourNames.Replace(stdout.String()))
	for line := range strings.Lines(stderr.String()) {
		out.WriteString("stderr: " + line)
	}
	fmt.Fprintf(&out, "exit %d\n", code)
	if d.HasArg("calls") {
		for _, call := range s.asked {
			fmt.Fprintf(&out, "call %s\n", call)
		}
	}
	return out.String()
}

// checkStderr holds every command line to at most one line of complaint, and to none when nothing is wrong.
func checkStderr(t *testing.T, d *datadriven.TestData, stderr string, code int) {
	if n := strings.Count(stderr, "\n"); n > 1 || n == 1 && code == ExitOK {
		t.Errorf("%s: %d lines on stderr, exit %d", d.Pos, n, code)
	}
}

// checkNext holds every printed command to what it promises: it can be typed. It is typed against a server that
// knows nothing; all that counts is that the command line itself is right.
func checkNext(t *testing.T, d *datadriven.TestData, stdout string) {
	for line := range strings.Lines(stdout) {
		next, ok := strings.CutPrefix(line, "Next: ")
		if !ok {
			continue
		}
		a, _, stderr := testApp(t, &script{replies: map[string]reply{}}, "")
		line := words(t, next)
		root := (*app).rootCommand
		if own, ok := programs[line[0]]; ok {
			root, a.program = own, line[0]
		}
		if code := a.runAs(t.Context(), root(a), line[1:]); code == ExitUsage {
			t.Errorf("%s: the next command %q is refused: %s", d.Pos, next, stderr)
		}
	}
}

// words splits a command line as a shell does.
func words(t *testing.T, line string) []string {
	var (
		all    []string
		word   strings.Builder
		quote  rune
		inWord bool
		plain  bool // the next character has no meaning
	)
	for _, r := range strings.TrimSpace(line) + " " {
		switch {
		case plain:
			word.WriteRune(r)
			plain = false
		case quote == 0 && r == '\\':
			plain, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, inWord = r, true
		case r == ' ':
			if inWord {
				all = append(all, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 {
		t.Fatalf("unbalanced quotes: %s", line)
	}
	return slices.Clip(all)
}
