package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/approval"
	"superstep.dev/thread"
)

// starting is the starter: one command that starts a run, follows it, and answers what it asks.
type starting struct{ *app }

// starterFlags are the flags of the starter.
type starterFlags struct {
	runFlags
	question, answer, reason string
	approve, reject          bool
}

func (a starting) program() *cobra.Command {
	var f starterFlags
	a.spell = a.words
	root := a.build(command{
		name: "starter",
		flags: func(flags *pflag.FlagSet) {
			f.given = flags.Changed
			f.registerFirst(flags)
			flags.StringVar(&f.answer, "answer", "", "answer the open question: `JSON`, @FILE, or - for standard input; at most 256 KiB")
			flags.BoolVar(&f.approve, "approve", false, "approve what the run asks to do")
			flags.BoolVar(&f.reject, "reject", false, "reject what the run asks to do")
			flags.StringVar(&f.question, "question", "", "`ID` of the question, or the start of it (default: the one that is open)")
			flags.StringVar(&f.reason, "reason", "", "`TEXT` for the record, with --approve and --reject")
			f.proof.register(flags, false)
		},
		run: func(ctx context.Context, args []string) error { return a.start(ctx, args[0], &f) },
	})
	root.Use = a.app.program + " [GRAPH]"
	return a.asRoot(root, "starter")
}

// words translates a command of superstep into the starter's flags. A command that the starter does not have stays superstep's.
func (a starting) words(args []string) (program string, words []string) {
	switch {
	case args[0] == "show":
		return a.app.program, []string{"--thread", args[1]}
	case args[0] == "resume" && len(args) >= 5: // THREAD QUESTION --value VALUE, and --follow, which the starter does anyway
		return a.app.program, []string{"--thread", args[1], "--question", args[2], "--answer", args[4]}
	}
	return "superstep", args
}

func (a starting) start(ctx context.Context, graph string, f *starterFlags) error {
	answers := howMany(f.given("answer"), f.approve, f.reject)
	switch {
	case answers > 1:
		return usagef("--answer, --approve and --reject exclude each other")
	case answers == 0 && (f.question != "" || f.reason != ""):
		return usagef("--question and --reason go with --answer, --approve or --reject")
	case answers > 0 && (graph != "" || f.given("input")):
		return usagef("an answer is for a run that is there: leave GRAPH and --input out")
	case graph != "":
		f.Graph, f.follow = graph, true
		return runs(a).startRun(ctx, &f.runFlags)
	case f.Thread == "" || f.given("input"):
		return usagef("GRAPH is missing, or --thread alone for the run that is there")
	}
	if err := checkArguments([]string{"THREAD", "[QUESTION]"}, []string{f.Thread, f.question}); err != nil {
		return err
	}
	if answers > 0 {
		return a.answer(ctx, f)
	}
	return a.withService(ctx, func(svc service) error {
		return a.follow(ctx, svc, thread.View{Thread: f.Thread}, false)
	})
}

// answer answers a question, and follows what the run does from then on.
func (a starting) answer(ctx context.Context, f *starterFlags) error {
	req, people := thread.ResumeRequest{Thread: f.Thread, Question: f.question}, answers(a)
	if f.given("answer") {
		return people.resume(ctx, &resumeFlags{ResumeRequest: req, proof: f.proof, value: f.answer, flag: "answer", given: f.given, follow: true})
	}
	verdict := approval.VerdictReject
	if f.approve {
		verdict = approval.VerdictApprove
	}
	return people.reply(ctx, &replyFlags{ResumeRequest: req, Reply: approval.Reply{Verdict: verdict, Reason: f.reason}, proof: f.proof, follow: true})
}
