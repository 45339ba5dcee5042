package cli

import (
	"cmp"
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

// streamModes are the values of --mode.
var streamModes = []thread.StreamMode{
	thread.StreamValues, thread.StreamUpdates, thread.StreamMessages, thread.StreamCustom, thread.StreamTasks,
	thread.StreamCheckpoints, thread.StreamDebug,
}

func (a looks) streamCommand() *cobra.Command {
	var r thread.StreamRequest
	var modes []string
	among := &choice[thread.StreamMode]{among: streamModes}
	cmd := a.build(command{
		name: "stream",
		flags: func(flags *pflag.FlagSet) {
			flags.StringSliceVar(&modes, "mode", []string{string(thread.StreamUpdates)}, "`MODE` to show; repeat it for several")
			flags.StringVar(&r.From, "from", "", "go on behind the part of this `OFFSET`")
			flags.BoolVar(&r.Subgraphs, "subgraphs", false, "subgraphs too")
		},
		run: func(ctx context.Context, args []string) error {
			r.Thread = args[0]
			for _, mode := range modes {
				if err := among.check(thread.StreamMode(mode)); err != nil {
					return usagef("--mode %w", err)
				}
				r.Modes = append(r.Modes, thread.StreamMode(mode))
			}
			return a.stream(ctx, r)
		},
	})
	completeFlag(cmd, "mode", func(*cobra.Command, []string) []cobra.Completion { return among.completions() })
	return cmd
}

// stream shows a stream, and ends the command with the code of where the thread stands then.
func (a looks) stream(ctx context.Context, r thread.StreamRequest) error {
	return a.withService(ctx, func(svc service) error {
		offset := r.From
		for part, err := range svc.Stream(ctx, r) {
			if err != nil {
				return interrupted(ctx, err, a.leftStream(r, offset))
			}
			offset = part.Offset
			a.ShowLine(part, func() { a.showPart(part) })
			if err := a.Err(); err != nil {
				return err
			}
		}
		view, err := svc.Show(ctx, r.Thread)
		if err != nil {
			return interrupted(ctx, err, a.leftStream(r, offset))
		}
		if !a.JSON() { // each part has said its offset
			a.showStreamEnd(view, offset)
		}
		return exitWith(exitOfStream(view.Status))
	})
}

// leftStream says how to go on after Ctrl-C.
func (a looks) leftStream(r thread.StreamRequest, offset string) string {
	args := []string{"stream", r.Thread}
	for _, m := range r.Modes {
		args = append(args, "--mode", string(m))
	}
	if r.Subgraphs {
		args = append(args, "--subgraphs")
	}
	if offset != "" {
		args = append(args, "--from", offset)
	}
	return "no longer following; run " + r.Thread + " goes on. Go on reading: " + a.commandLine(args...)
}

// showPart shows one part on a line.
func (a looks) showPart(p thread.Part) {
	const width = 160
	where := ""
	if len(p.Namespace) > 0 {
		where = "[" + screen.Clean(strings.Join(p.Namespace, " ")) + "] "
	}
	a.Printf("step %-3d %-11s %s%s\n", p.Step, p.Mode, where, screen.Shorten(screen.Clean(string(p.Data)), width))
}

// showStreamEnd says where the thread stands, and the offset to go on from.
func (a looks) showStreamEnd(view thread.View, offset string) {
	a.Printf("%s%s\n", a.Status(string(view.Status)), screen.Colon(cmp.Or(view.Error, view.Problem)))
	if offset != "" {
		a.Printf("offset  %s\n", screen.Clean(offset))
	}
	a.next(nextOf(view.Thread, view.Status, view.Questions)...)
}

// exitOfStream is the exit code of a stream that has ended. A run that is open stands still then, even if no worker is
// there to say so.
func exitOfStream(status thread.Status) int {
	if status == thread.StatusRunning {
		return ExitWaiting
	}
	return exitOfRun(status)
}
