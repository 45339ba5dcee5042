package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
)

// streamModes are the values of --mode.
var streamModes = []superstep.StreamMode{
	superstep.StreamValues, superstep.StreamUpdates, superstep.StreamMessages, superstep.StreamCustom, superstep.StreamTasks,
	superstep.StreamCheckpoints, superstep.StreamDebug,
}

func (a *app) streamCommand() *cobra.Command {
	var (
		r     superstep.StreamRequest
		modes []string
	)
	cmd := a.build(command{
		use: "stream THREAD", short: "Show what a thread streams", group: groupLook, args: []string{"THREAD"},
		about: `One line a part, from the beginning of the thread's newest run, or behind --from; a run under way is followed until
it waits, stops or ends. The modes are LangGraph's:
  values       the output after each superstep that changed it
  updates      what each node wrote, and what it asks (the default)
  messages     chat messages and pieces of them, each with where it comes from
  custom       what nodes emit
  tasks        the start and the end of each task
  checkpoints  each checkpoint, with what it leads to
  debug        checkpoints and tasks with their time
A line "reset" says that a task is attempted again: what it emitted before is void.

Long parts are cut; -o json has them whole, a line each, with the offset behind the part. Given to --from that offset
goes on with exactly the rest, in any process: keep it to follow a thread across restarts.`,
		example: []string{"stream r-7", "stream r-7 --mode values --mode updates --subgraphs",
			"stream r-7 --mode messages -o json | jq -r '.data[0].content'"},
		run: func(cmd *cobra.Command, args []string) error {
			r.Thread = args[0]
			return a.stream(cmd.Context(), r, modes)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringSliceVar(&modes, "mode", []string{string(superstep.StreamUpdates)}, "`MODE` to show; repeat it for several")
	flags.StringVar(&r.From, "from", "", "go on behind the part of this `OFFSET`")
	flags.BoolVar(&r.Subgraphs, "subgraphs", false, "subgraphs too")
	choices(cmd, "mode", streamModes...)
	return cmd
}

// stream shows a stream, and ends the command with the code of where the thread stands then.
func (a *app) stream(ctx context.Context, r superstep.StreamRequest, modes []string) error {
	if err := checkThread(r.Thread); err != nil {
		return err
	}
	for _, m := range modes {
		mode := superstep.StreamMode(m)
		if !slices.Contains(streamModes, mode) {
			return usagef("--mode %s is unknown; it is %s", quoted(m), modeNames())
		}
		r.Modes = append(r.Modes, mode)
	}
	return a.withService(ctx, func(svc service) error {
		offset := r.From
		for part, err := range svc.Stream(ctx, r) {
			if err != nil {
				return interrupted(ctx, err, a.leftStream(r, offset))
			}
			offset = part.Offset
			if err := a.showPart(part); err != nil {
				return err
			}
		}
		view, err := svc.Show(ctx, r.Thread)
		if err != nil {
			return interrupted(ctx, err, a.leftStream(r, offset))
		}
		a.showStreamEnd(view, offset)
		return exitWith(exitOfStream(view.Status))
	})
}

// leftStream says how to go on after Ctrl-C.
func (a *app) leftStream(r superstep.StreamRequest, offset string) string {
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
func (a *app) showPart(p superstep.StreamPart) error {
	if a.json() {
		return a.writeJSONLine(p)
	}
	const width = 160
	where := ""
	if len(p.Namespace) > 0 {
		where = "[" + clean(strings.Join(p.Namespace, " ")) + "] "
	}
	a.printf("step %-3d %-11s %s%s\n", p.Step, p.Mode, where, shorten(clean(string(p.Data)), width))
	return nil
}

// showStreamEnd says where the thread stands, and the offset to go on from.
func (a *app) showStreamEnd(view superstep.ThreadView, offset string) {
	if a.json() {
		return // each part has said its offset
	}
	a.printf("%s%s\n", a.status(string(view.Status)), colon(first(view.Error, view.Problem)))
	if offset != "" {
		a.printf("offset  %s\n", clean(offset))
	}
	a.next(nextOf(view.Thread, view.Status, view.Questions))
}

// exitOfStream is the exit code of a stream that has ended. A run that is open stands still then, even if no worker is
// there to say so.
func exitOfStream(status superstep.Status) int {
	if status == superstep.StatusRunning {
		return ExitWaiting
	}
	return exitOfRun(status)
}

func modeNames() string {
	names := make([]string, len(streamModes))
	for i, m := range streamModes {
		names[i] = string(m)
	}
	end := len(names) - 1
	return fmt.Sprintf("%s or %s", strings.Join(names[:end], ", "), names[end])
}
