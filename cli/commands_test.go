package cli

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"superstep.dev/approval"
	"superstep.dev/approval/token"
	"superstep.dev/thread"
	"superstep.dev/thread/secret"

	"superstep.dev"
)

// bare is a command line that nobody sees.
func bare(program string, graphs ...superstep.Runnable) *app {
	a := newApp(nil, io.Discard, io.Discard, Program{Graphs: graphs})
	a.program = program
	return a
}

// TestExamples types every example of the help: none may be refused.
func TestExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"order.json", "answer.json", "values.json", "goal.txt", "notes.txt"} {
		require.NoError(t, os.WriteFile(name, []byte("{}"), 0o600))
	}
	require.NoError(t, os.WriteFile("plan.json", []byte(`{"subjobs": [{"id": "1", "goal": "load", "assigned_expert": "loader"}]}`), 0o600))
	private, _, err := token.Generate(approval.Owner{Person: "ann"}, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("ann.key", private, 0o600))
	head, keys, err := token.Generate(approval.Owner{Worker: "w"}, "")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("worker.pem", keys, 0o600))
	worker, err := token.ParseSigner(head)
	require.NoError(t, err)
	signed, err := worker.SignHead(approval.Head{Thread: "r-7"})
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, approval.WriteExport(&file, approval.Export{Signed: signed}))
	require.NoError(t, os.WriteFile("audit.jsonl", file.Bytes(), 0o600))
	require.NoError(t, os.WriteFile("draft.json", []byte("{}"), 0o600))
	ring := secret.Ring{}
	for month := range time.Month(2) {
		at := time.Date(2026, month+1, 1, 0, 0, 0, 0, time.UTC)
		ring, _, err = ring.Rotate(fmt.Sprintf("prod-%d", month+1), at, at)
		require.NoError(t, err)
	}
	require.NoError(t, os.WriteFile("prod.keys", ring.Text(), 0o600))
	require.NoError(t, os.WriteFile("clients.keys", []byte("1f3a90c2 ann sha256:"+strings.Repeat("0", 64)+" 2026-03-01T12:00:00Z\n"), 0o600))
	eachCommand(bare("superstep").rootCommand(), func(cmd *cobra.Command) {
		if cmd.Name() == "worker" || cmd.Name() == "serve" || cmd.Name() == "healthcheck" {
			return // they listen and dial; they have tests of their own
		}
		require.NotEmpty(t, cmd.Example, cmd.Name())
		for line := range strings.Lines(cmd.Example) {
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " < ")
			args := words(t, line)
			require.Equal(t, "superstep", args[0])
			a, _, stderr := testApp(t, &script{}, "{}")
			a.env.(environment)[envStore] = "store.db"
			require.NotEqual(t, ExitUsage, a.run(t.Context(), args[1:]), "%s: %s", line, stderr)
		}
	})
}

func TestEveryCommandTeaches(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		require.NotEmpty(t, cmd.Short, cmd.CommandPath())
		require.NotEmpty(t, cmd.Long, cmd.CommandPath())
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(bare("superstep").rootCommand())
}

// TestEveryTextIsOfACommand: a text under a wrong name, or a field of another name, would be shown by nobody.
func TestEveryTextIsOfACommand(t *testing.T) {
	decoder := yaml.NewDecoder(bytes.NewReader(commandTexts))
	decoder.KnownFields(true)
	var all map[string]text
	require.NoError(t, decoder.Decode(&all))
	root := bare("superstep").rootCommand()
	for name, text := range all {
		if name == "superstep" || name == "starter" {
			continue // programs
		}
		cmd, left, err := root.Find(strings.Fields(name))
		if name != "reply" {
			require.NoError(t, err, name)
			require.Empty(t, left, name)
			require.Equal(t, text.Short, cmd.Short, name)
		}
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		a, stdout, _ := testApp(t, &script{}, "")
		require.Equal(t, ExitOK, a.run(t.Context(), []string{"completion", shell}))
		require.Contains(t, stdout.String(), "superstep")
	}
	a, stdout, _ := testApp(t, &script{}, "")
	a.graphs = []superstep.Runnable{drawn{"refund"}, drawn{"report"}}
	require.Equal(t, ExitOK, a.run(t.Context(), []string{"__complete", "run", "ref"}))
	require.Contains(t, stdout.String(), "refund\n")
	require.NotContains(t, stdout.String(), "report")
}

// TestHelpSpeaksOfTheProgramsOwnGraph: a program with graphs of its own shows no command line that it would refuse.
func TestHelpSpeaksOfTheProgramsOwnGraph(t *testing.T) {
	a := bare("reports", drawn{"report"})
	root := a.rootCommand()
	var names []string
	for _, cmd := range root.Commands() {
		names = append(names, cmd.Name())
	}
	for _, cmd := range append(root.Commands(), root) {
		require.NotContains(t, cmd.Long+cmd.Example, "refund", cmd.Name())
		require.NotContains(t, cmd.Long+cmd.Example, "{program}", cmd.Name())
		require.NotRegexp(t, `superstep (`+strings.Join(names, "|")+`)\b`, cmd.Long+cmd.Example, cmd.Name())
	}
	run, _, err := root.Find([]string{"run"})
	require.NoError(t, err)
	require.Contains(t, run.Example, "reports run report --thread r-8 --input @input.json --interrupt-before work")
}

// TestAHintCanBeTyped: only a program that has the graph is told to start a worker of its own.
func TestAHintCanBeTyped(t *testing.T) {
	noWorker := &thread.Error{Kind: thread.ErrNoWorker, Graph: "report", Message: "no worker answers on task queue \"q\"",
		Do: "Start one that serves the graph \"report\"", Command: []string{"worker"}}
	for _, c := range []struct {
		graphs []superstep.Runnable
		says   string
	}{
		{nil, "no worker answers on task queue \"q\". Start one that serves the graph \"report\"\n"},
		{[]superstep.Runnable{drawn{"refund"}}, "no worker answers on task queue \"q\". Start one that serves the graph \"report\"\n"},
		{[]superstep.Runnable{drawn{"report"}}, "no worker answers on task queue \"q\". Start one that serves the graph \"report\": superstep worker\n"},
	} {
		a, _, stderr := testApp(t, &script{}, "")
		a.graphs = c.graphs
		require.Equal(t, ExitUnreachable, a.report(noWorker))
		require.Equal(t, c.says, stderr.String())
	}
}

func TestDrawing(t *testing.T) {
	for _, format := range drawings {
		a, stdout, stderr := testApp(t, &script{}, "")
		a.graphs = []superstep.Runnable{drawn{"refund"}}
		require.Equal(t, ExitOK, a.run(t.Context(), []string{"graph", "refund", "--format", format}), stderr)
		require.Contains(t, stdout.String(), "work")
		require.False(t, strings.HasSuffix(stdout.String(), "\n\n"))
	}
}

func TestLostOutput(t *testing.T) {
	var stderr bytes.Buffer
	a := newApp(strings.NewReader(""), failing{}, &stderr, Program{})
	require.Equal(t, ExitFailed, a.run(t.Context(), []string{"version"}))
	require.Equal(t, "writing the output: broken\n", stderr.String())
}

func TestVersion(t *testing.T) {
	build := &debug.BuildInfo{
		Main: debug.Module{Path: "example.com/app", Version: "v1.2.3"},
		Deps: []*debug.Module{
			{Path: "superstep.dev", Version: "v0.4.0"}, {Path: "go.temporal.io/sdk", Version: "v1.50.0"},
		},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}},
	}
	v := versionOf("app", build)
	require.Equal(t, []string{"app", "v1.2.3", "v0.4.0", "v1.50.0", "abc"},
		[]string{v.Program, v.Version, v.Superstep, v.Temporal, v.Revision})
	build.Main.Path = modulePath
	require.Equal(t, "v1.2.3", versionOf("superstep", build).Version)
	require.Equal(t, "(unknown)", versionOf("app", nil).Superstep)
}

func TestProgramName(t *testing.T) {
	for arg0, want := range map[string]string{
		"superstep": "superstep", "/usr/local/bin/superstep": "superstep", "./bin/app": "./bin/app", "bin/app": "bin/app",
	} {
		require.Equal(t, want, programName(arg0))
	}
}
