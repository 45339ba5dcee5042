package cli

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
)

// durabilities are the values of --durability.
var durabilities = []string{
	string(superstep.DurabilitySync), string(superstep.DurabilityAsync), string(superstep.DurabilityExit),
}

// runFlags are the flags of run.
type runFlags struct {
	thread, input, durability string
	recursionLimit            int
	follow                    bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := a.build(command{
		use: "run GRAPH", short: "Start a run of a graph", group: groupRuns, args: []string{"GRAPH"},
		about: `The run belongs to a thread: a name for a conversation, an order, a document. A thread whose run is over starts
again from where it ended. With --follow every finished step is shown until the run waits or ends.`,
		example: []string{
			`run refund --thread r-7 --input '{"order_id":"o-7"}' --follow`,
			`run refund --input @order.json`,
			`run refund --input - -o json < order.json`,
		},
		complete: a.graphNames(),
		run: func(cmd *cobra.Command, args []string) error {
			return a.startRun(cmd.Context(), args[0], &f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.thread, "thread", "", "thread `ID`, at most 200 bytes (default: the graph's name and a random part)")
	flags.StringVar(&f.input, "input", "{}", "input as a `JSON` object, @FILE, or - for standard input; at most 1 MiB")
	flags.StringVar(&f.durability, "durability", durabilities[0], "`WHEN` progress is stored: sync, async or exit")
	flags.IntVar(&f.recursionLimit, "recursion-limit", 0, "at most `N` supersteps (default 10007)")
	flags.BoolVar(&f.follow, "follow", false, "show the run until it waits or ends")
	return cmd
}

// startRun starts the run and follows it when that was asked for.
func (a *app) startRun(ctx context.Context, graph string, f *runFlags) error {
	req, err := a.startRequest(ctx, graph, f)
	if err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		view, err := svc.Start(ctx, req)
		if err != nil {
			return err
		}
		if f.follow {
			return a.follow(ctx, svc, view, f.thread == "")
		}
		return a.showStarted(view)
	})
}

// startRequest checks everything that can be checked without a server.
func (a *app) startRequest(ctx context.Context, graph string, f *runFlags) (superstep.StartRequest, error) {
	req := superstep.StartRequest{
		Graph: graph, Thread: f.thread, Durability: superstep.Durability(f.durability), RecursionLimit: f.recursionLimit,
	}
	if err := checkGraphName(graph); err != nil {
		return req, err
	}
	if req.Thread == "" {
		req.Thread = a.newThread(graph)
	}
	if err := checkThread(req.Thread); err != nil {
		return req, err
	}
	if !slices.Contains(durabilities, f.durability) {
		return req, usagef("--durability %s is unknown; it is %s", quoted(f.durability), strings.Join(durabilities, ", "))
	}
	if f.recursionLimit < 0 {
		return req, usagef("--recursion-limit %d is below 1", f.recursionLimit)
	}
	input, err := jsonFlag{name: "--input", max: maxInput, object: true}.read(ctx, f.input, a.stdin)
	req.Input = input
	return req, err
}

func (a *app) showStarted(view superstep.ThreadView) error {
	if a.json() {
		return a.writeJSON(view)
	}
	a.printf("started  %s\n", clean(view.Thread))
	a.next(nextOf(view.Thread, view.Status, view.Questions))
	return nil
}
