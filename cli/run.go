package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

// durabilities are the values of --durability.
var durabilities = []superstep.Durability{superstep.DurabilitySync, superstep.DurabilityAsync, superstep.DurabilityExit}

// maxContext bounds run --context, in bytes: every task of the run carries a copy.
const maxContext = 64 << 10

// runs are the commands that start runs.
type runs struct{ *app }

// runFlags are the flags of run, and what they say of the run.
type runFlags struct {
	thread.StartRequest
	input, context, budget string
	follow                 bool
	proof                  proofFlags
	// given reports whether a flag is on the command line.
	given func(flag string) bool
}

func (a runs) runCommand() *cobra.Command {
	var f runFlags
	return a.build(command{
		name:     "run",
		complete: namesOf(a.graphs),
		flags: func(flags *pflag.FlagSet) {
			f.given = flags.Changed
			f.registerFirst(flags)
			a.registerFollow(flags, &f.follow)
			f.proof.register(flags, true)
			flags.StringVar(&f.Checkpoint, "from-checkpoint", "", "begin at `CHECKPOINT` of the thread's history, on a branch of its own")
			flags.StringVar(&f.context, "context", "", "`JSON`, @FILE, or - that every node of this run can read; at most 64 KiB")
			flags.StringSliceVar(&f.InterruptBefore, "interrupt-before", nil, "stop before these `NODES` instead of the graph's own; '*' for all, '' for none")
			flags.StringSliceVar(&f.InterruptAfter, "interrupt-after", nil, "stop behind these `NODES` instead of the graph's own; '*' for all, '' for none")
			flags.IntVar(&f.MaxConcurrency, "max-concurrency", 0, "at most `N` nodes at once (default: as many as there are)")
			flags.DurationVar(&f.StepTimeout, "step-timeout", 0, "fail the run when a step takes longer than `DURATION` (default: no bound)")
			flags.IntVar(&f.RecursionLimit, "recursion-limit", 0, "at most `N` supersteps (default 10007)")
			flags.StringVar(&f.budget, "budget", "", "what the thread may spend before it asks for more, as `LIMITS`: tokens=10000,money=2.5USD,writes=3,time=10m,supersteps=100")
			flags.BoolVar(&f.KeepOpen, "keep-open", false, "keep the run open when it has finished, for the thread's next input, until it is cancelled")
			flags.DurationVar(&f.IdleTimeout, "idle-timeout", 0, "with --keep-open: end it after `DURATION` without anything to do (default: never)")
			flags.BoolVar(&f.Fused, "fused", false, "run consecutive supersteps in one activity in sync mode too")
			flags.BoolVar(&f.Hold, "hold", false, "keep the run open when it fails, until it is retried, given new input, or cancelled")
			choiceVar(flags, &f.Durability, "durability", "", durabilities, "`WHEN` progress is stored: sync, async or exit (default: the graph's, else sync)")
		},
		run: func(ctx context.Context, args []string) error {
			f.Graph = args[0]
			return a.startRun(ctx, &f)
		},
	})
}

// registerFirst adds the flags that say which run it is.
func (f *runFlags) registerFirst(flags *pflag.FlagSet) {
	flags.StringVar(&f.Thread, "thread", "", "thread `ID`, at most 200 characters of ASCII (default: a new one, the graph's name and a random part)")
	flags.StringVar(&f.input, "input", "", "input as a `JSON` object, @FILE, or - for standard input; at most 1 MiB (default: {} without --thread)")
	flags.StringVar(&f.Requester, "requester", "", "`NAME` of on whose behalf it is, for approvals (default: your user name)")
}

// startRun starts the run and follows it when that was asked for.
func (a runs) startRun(ctx context.Context, f *runFlags) error {
	if err := f.complete(ctx, a.app); err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		if err := a.proveStart(ctx, svc, f); err != nil {
			return err
		}
		view, err := svc.Start(ctx, f.StartRequest)
		if err != nil {
			return err
		}
		if f.follow {
			return a.follow(ctx, svc, view, f.NewThread)
		}
		a.showStarted("started", view)
		return nil
	})
}

// proveStart says who goes on with a thread that is there, and proves it: it is a fork where it begins at a checkpoint, a retry of what
// failed, or lets the run go on, and a token is for one of them. New input alone needs no proof.
func (a runs) proveStart(ctx context.Context, svc service, f *runFlags) (err error) {
	op, on := approval.OpResume, ""
	switch {
	case f.NewThread || f.Input != nil && f.Budget == nil && f.Checkpoint == "":
		return nil
	case f.Checkpoint != "":
		op, on = approval.OpFork, f.Checkpoint
	case f.Input == nil && a.signs(f.proof):
		view, err := svc.Show(ctx, f.Thread)
		if err != nil {
			return err
		}
		if view.Held || view.Status.Unfinished() {
			op = approval.OpRetry
		}
	}
	f.Reason = f.proof.reason
	f.By, f.Token, err = a.prove(f.proof, f.Thread, op, on)
	return err
}

// complete completes the request, and refuses settings that no run can have.
func (f *runFlags) complete(ctx context.Context, a *app) (err error) {
	if err := f.check(); err != nil {
		return err
	}
	f.Requester = cmp.Or(f.Requester, a.userName())
	switch {
	case f.given("input"):
		f.Input, err = a.jsonObject(ctx, "--input", maxInput, f.input)
	case f.Thread == "": // otherwise the thread goes on
		f.Input = json.RawMessage("{}")
	}
	if f.given("budget") && err == nil {
		var b thread.Budget
		if b, err = thread.ParseBudget(f.budget); err != nil {
			err = usagef("--budget: %v", err)
		}
		f.Budget = &b
	}
	if f.Thread == "" {
		f.Thread, f.NewThread = a.newThread(f.Graph), true
	}
	if err == nil && f.context != "" {
		f.Context, err = a.jsonText(ctx, "--context", maxContext, f.context)
	}
	return err
}

func (f *runFlags) check() error {
	switch {
	case f.Thread != "" && checkThread(f.Thread) != nil:
		return checkThread(f.Thread)
	case f.given("durability") && f.Durability == "":
		return usagef("--durability %s is unknown; it is %s", quoted(""), screen.OneOf(durabilities))
	case f.given("recursion-limit") && f.RecursionLimit < 1:
		return usagef("--recursion-limit %d is below 1", f.RecursionLimit)
	case f.given("max-concurrency") && f.MaxConcurrency < 1:
		return usagef("--max-concurrency %d is below 1", f.MaxConcurrency)
	case f.StepTimeout < 0 || f.StepTimeout > 0 && f.StepTimeout < time.Millisecond:
		return usagef("--step-timeout %v is below 1ms", f.StepTimeout)
	case f.IdleTimeout < 0 || f.IdleTimeout > 0 && f.IdleTimeout < time.Millisecond:
		return usagef("--idle-timeout %v is below 1ms", f.IdleTimeout)
	case f.IdleTimeout > 0 && !f.KeepOpen:
		return usagef("--idle-timeout is of a run with --keep-open")
	case f.Checkpoint != "" && f.Thread == "":
		return usagef("--from-checkpoint needs the --thread whose checkpoint it is")
	case f.input == "-" && f.context == "-":
		return usagef("--input and --context cannot both come from standard input")
	}
	return cmp.Or(f.proof.check(""), checkNodes("--interrupt-before", f.InterruptBefore), checkNodes("--interrupt-after", f.InterruptAfter),
		checkCheckpoint("--from-checkpoint", f.Checkpoint))
}

// checkFork refuses a fork that is none. Only a copy may go without a checkpoint, for the newest.
func (a runs) checkFork(req thread.ForkRequest) error {
	switch {
	case req.Copy && req.As == "":
		return usagef("--copy makes a thread: name it with --as ID")
	case req.Checkpoint == "" && !req.Copy:
		return usagef("CHECKPOINT is missing; list them: %s", a.commandLine("history", req.Thread))
	}
	return nil
}

// showStarted says what became of a thread, and what to type next.
func (a *app) showStarted(what string, view thread.View) {
	a.Show(view, func() {
		a.Printf("%s  %s\n", what, screen.Clean(view.Thread))
		a.next(nextOf(view.Thread, view.Status, view.Questions)...)
	})
}

func (a runs) forkCommand() *cobra.Command {
	var (
		req    thread.ForkRequest
		proof  proofFlags
		follow bool
		given  func(flag string) bool
	)
	return a.build(command{
		name: "fork",
		flags: func(flags *pflag.FlagSet) {
			given = flags.Changed
			flags.StringVar(&req.As, "as", "", "`ID` of a new thread for the branch")
			flags.BoolVar(&req.Copy, "copy", false, "leave the new thread where THREAD stood, its questions open; nothing runs")
			proof.register(flags, true)
			a.registerFollow(flags, &follow)
		},
		run: func(ctx context.Context, args []string) error {
			req.Thread, req.Checkpoint, req.Reason = args[0], args[1], proof.reason
			err := proof.check("")
			if err == nil && given("as") {
				err = checkThread(req.As)
			}
			if err == nil {
				err = a.checkFork(req)
			}
			if err == nil {
				req.By, req.Token, err = a.prove(proof, cmp.Or(req.As, req.Thread), approval.OpFork, req.Checkpoint)
			}
			if err != nil {
				return err
			}
			return a.withService(ctx, func(svc service) error {
				view, err := svc.Fork(ctx, req)
				if err != nil {
					return err
				}
				if follow {
					return a.follow(ctx, svc, view, false)
				}
				what := "started"
				if req.Copy {
					what = "copied"
				}
				a.showStarted(what, view)
				return nil
			})
		},
	})
}
