package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"superstep.dev"
)

// durabilities are the values of --durability.
var durabilities = []string{
	string(superstep.DurabilitySync), string(superstep.DurabilityAsync), string(superstep.DurabilityExit),
}

// maxContext bounds run --context, in bytes: every task of the run carries a copy.
const maxContext = 64 << 10

// runFlags are the flags of run.
type runFlags struct {
	thread, input, durability string
	context, checkpoint       string
	requester                 string
	before, after             []string
	fused                     bool
	recursionLimit            int
	maxConcurrency            int
	stepTimeout               time.Duration
	follow, keepOpen, hold    bool
	idle                      time.Duration
	// given reports whether a flag is on the command line.
	given func(flag string) bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := a.build(command{
		use: "run GRAPH", short: "Start a run of a graph, or go on with one", group: groupRuns, args: []string{"GRAPH"},
		about: `The run belongs to a thread: a name for a conversation, an order, a document. A thread whose run is over starts
again from where it ended; input abandons what it was about to do. Without --input a thread that is there goes on where
it stands: behind a breakpoint, after an update, after a failure. With --follow every finished step is shown until the
run waits or ends.`,
		example: []string{
			`run refund --thread r-7 --input '{"order_id":"o-7"}' --follow`,
			`run refund --input @order.json`,
			`run refund --input - -o json < order.json`,
			`run refund --thread r-7 --follow`,
			`run refund --thread r-8 --input @order.json --interrupt-before commit_refund --context '{"tenant":"north"}'`,
			`run refund --thread r-7 --from-checkpoint c-51aa --input '{"order_id":"o-8"}'`,
		},
		complete: a.graphNames(),
		run: func(cmd *cobra.Command, args []string) error {
			f.given = cmd.Flags().Changed
			return a.startRun(cmd.Context(), args[0], &f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.thread, "thread", "", "thread `ID`, at most 200 characters of ASCII (default: a new one, the graph's name and a random part)")
	flags.StringVar(&f.input, "input", "", "input as a `JSON` object, @FILE, or - for standard input; at most 1 MiB (default: {} without --thread)")
	flags.StringVar(&f.requester, "requester", "", "`NAME` of on whose behalf it is, for approvals (default: your user name)")
	flags.BoolVar(&f.follow, "follow", false, "show the run until it waits or ends")
	flags.StringVar(&f.checkpoint, "from-checkpoint", "", "begin at `CHECKPOINT` of the thread's history, on a branch of its own")
	flags.StringVar(&f.context, "context", "", "`JSON`, @FILE, or - that every node of this run can read; at most 64 KiB")
	flags.StringSliceVar(&f.before, "interrupt-before", nil, "stop before these `NODES` instead of the graph's own; '*' for all, '' for none")
	flags.StringSliceVar(&f.after, "interrupt-after", nil, "stop behind these `NODES` instead of the graph's own; '*' for all, '' for none")
	flags.IntVar(&f.maxConcurrency, "max-concurrency", 0, "at most `N` nodes at once (default: as many as there are)")
	flags.DurationVar(&f.stepTimeout, "step-timeout", 0, "fail the run when a step takes longer than `DURATION` (default: no bound)")
	flags.IntVar(&f.recursionLimit, "recursion-limit", 0, "at most `N` supersteps (default 10007)")
	flags.BoolVar(&f.keepOpen, "keep-open", false, "keep the run open when it has finished, for the thread's next input, until it is cancelled")
	flags.DurationVar(&f.idle, "idle-timeout", 0, "with --keep-open: end it after `DURATION` without anything to do (default: never)")
	flags.BoolVar(&f.fused, "fused", false, "run consecutive supersteps in one activity in sync mode too")
	flags.BoolVar(&f.hold, "hold", false, "keep the run open when it fails, until it is retried, given new input, or cancelled")
	flags.StringVar(&f.durability, "durability", "", "`WHEN` progress is stored: sync, async or exit (default: the graph's, else sync)")
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
		Graph: graph, Thread: f.thread, Checkpoint: f.checkpoint,
		Durability: superstep.Durability(f.durability), Fused: f.fused, RecursionLimit: f.recursionLimit,
		MaxConcurrency: f.maxConcurrency, StepTimeout: f.stepTimeout, InterruptBefore: f.before, InterruptAfter: f.after,
		Requester: first(f.requester, a.userName()), KeepOpen: f.keepOpen, IdleTimeout: f.idle, Hold: f.hold,
	}
	if err := checkGraphName(graph); err != nil {
		return req, err
	}
	if req.Thread == "" {
		req.Thread, req.NewThread = a.newThread(graph), true
	}
	if err := checkThread(req.Thread); err != nil {
		return req, err
	}
	if err := f.check(); err != nil {
		return req, err
	}
	var err error
	if req.Input, err = a.runInput(ctx, f); err != nil {
		return req, err
	}
	if f.context != "" {
		req.Context, err = jsonFlag{name: "--context", max: maxContext}.read(ctx, f.context, a.stdin)
	}
	return req, err
}

// runInput is the input, none when a thread is to go on.
func (a *app) runInput(ctx context.Context, f *runFlags) (json.RawMessage, error) {
	switch {
	case f.given("input"):
		return jsonFlag{name: "--input", max: maxInput, object: true}.read(ctx, f.input, a.stdin)
	case f.thread == "":
		return json.RawMessage("{}"), nil
	default:
		return nil, nil
	}
}

// check refuses settings of a run that no run can have.
func (f *runFlags) check() error {
	switch {
	case f.given("durability") && !slices.Contains(durabilities, f.durability):
		return usagef("--durability %s is unknown; it is %s", quoted(f.durability), strings.Join(durabilities, ", "))
	case f.given("recursion-limit") && f.recursionLimit < 1:
		return usagef("--recursion-limit %d is below 1", f.recursionLimit)
	case f.given("max-concurrency") && f.maxConcurrency < 1:
		return usagef("--max-concurrency %d is below 1", f.maxConcurrency)
	case f.stepTimeout < 0 || f.stepTimeout > 0 && f.stepTimeout < time.Millisecond:
		return usagef("--step-timeout %v is below 1ms", f.stepTimeout)
	case f.idle < 0 || f.idle > 0 && f.idle < time.Millisecond:
		return usagef("--idle-timeout %v is below 1ms", f.idle)
	case f.idle > 0 && !f.keepOpen:
		return usagef("--idle-timeout is of a run with --keep-open")
	case f.checkpoint != "" && f.thread == "":
		return usagef("--from-checkpoint needs the --thread whose checkpoint it is")
	case f.input == "-" && f.context == "-":
		return usagef("--input and --context cannot both come from standard input")
	}
	return cmp.Or(checkNodes("--interrupt-before", f.before), checkNodes("--interrupt-after", f.after),
		checkCheckpoint("--from-checkpoint", f.checkpoint))
}

// maxNodes bounds the nodes that a flag names.
const maxNodes = 1000

func checkNodes(flag string, nodes []string) error {
	if len(nodes) > maxNodes {
		return usagef("%s names %d nodes; at most %d are allowed", flag, len(nodes), maxNodes)
	}
	for _, node := range nodes {
		if node == "" || len(node) > maxThreadID || strings.ContainsFunc(node, notPrintable) {
			return usagef("%s %s cannot be a node's name", flag, quoted(node))
		}
	}
	return nil
}

func (a *app) showStarted(view superstep.ThreadView) error {
	if a.json() {
		return a.writeJSON(view)
	}
	a.printf("started  %s\n", clean(view.Thread))
	a.next(nextOf(view.Thread, view.Status, view.Questions))
	return nil
}
