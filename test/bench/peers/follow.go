package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"superstep.dev/cli"
	"superstep.dev/thread"
)

// commandLine makes this program Superstep's command line, starterLine the one that answers and follows: what cmd/superstep and
// starter are, from the same binary.
const (
	commandLine = "superstep"
	starterLine = "starter"
)

// runCommand is what a process of the command line does, if this is one.
func runCommand() {
	if len(os.Args) < 2 {
		return
	}
	run := map[string]func(){commandLine: func() { cli.Main() }, starterLine: cli.Starter}[os.Args[1]]
	if run != nil {
		os.Args = os.Args[1:]
		run() // and ends the process
	}
}

// follower is a user who types commands. Each is a process of its own, so its start is a part of what he waits.
type follower struct {
	connection []string
	used       *atomic.Int64 // processor time of the commands that have ended
}

// run runs a command, and returns what it printed last, and its exit code.
func (f *follower) run(ctx context.Context, args ...string) (last []byte, code int, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	var out, problem bytes.Buffer
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	err = cmd.Run()
	if cmd.ProcessState == nil {
		return nil, 0, err
	}
	f.used.Add(int64(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()))
	if code = cmd.ProcessState.ExitCode(); code != cli.ExitOK && code != cli.ExitWaiting {
		return nil, code, fmt.Errorf("%s %s: %w: %s", args[0], args[1], err, bytes.TrimSpace(problem.Bytes()))
	}
	lines := bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n"))
	return lines[len(lines)-1], code, nil
}

// do is how such a user does a workload in a mode.
func (f *follower) do(mode string) doer {
	return func(ctx context.Context, w *workload, id string, turn int) (time.Duration, error) {
		input, err := json.Marshal(w.inputOf(id, turn))
		if err != nil {
			return 0, err
		}
		r := request(w, mode, id)
		args := []string{commandLine, "run", w.graph, "--follow", "--thread", id, "--input", string(input), "--durability", string(r.Durability)}
		if r.Fused {
			args = append(args, "--fused")
		}
		return atOnce(0, id, func(id string) error {
			last, code, err := f.run(ctx, append(args, f.connection...)...)
			if err == nil && w.asks {
				if code != cli.ExitWaiting {
					return fmt.Errorf("it did not ask: %s", last)
				}
				last, code, err = f.run(ctx, append([]string{starterLine, "--thread", id, "--answer", "true"}, f.connection...)...)
			}
			if err != nil {
				return err
			}
			var view thread.View
			step := 0
			if err := json.Unmarshal(last, &view); err != nil {
				return fmt.Errorf("exit code %d: %s: %w", code, last, err)
			}
			if err := json.Unmarshal(view.Output["step"], &step); err != nil {
				return fmt.Errorf("exit code %d: %s: %w", code, last, err)
			}
			return wrongStep(step, w.step(turn))
		})
	}
}
