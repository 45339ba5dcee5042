package cli

import (
	"cmp"
	"context"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/job"
)

// submitFlags are the flags of job submit.
type submitFlags struct {
	leader, id, goal, goalFile, context string
	expert, synthesis, approve          string
	requester, request                  string
	maxParallel                         int
	budget                              budgetFlags
	follow                              bool
}

func (a *app) jobSubmitCommand() *cobra.Command {
	var f submitFlags
	cmd := a.build(command{
		use: "submit", short: "Give a leader a job",
		about: `The goal comes from --goal, --goal-file or standard input. With --expert nothing is planned: that expert does the whole
job. With --approve somebody decides on the plan before anything of it runs. What may be spent is unlimited unless a limit is
given; a job that has spent it waits until the budget is raised.`,
		example: []string{
			`job submit --leader research --goal "Which penguins are heaviest?" --follow`,
			`job submit --leader research --id report-3 --goal-file goal.txt --context @notes.txt --approve first`,
			`job submit --leader research --goal "Load the table" --expert loader --tokens 50000 --usd 0.50 --time 20m`,
		},
		run: func(cmd *cobra.Command, _ []string) error { return a.submit(cmd.Context(), &f) },
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.leader, "leader", "", "`NAME` of the leader (default: this program's, if it has one)")
	flags.StringVar(&f.goal, "goal", "", "`TEXT` of what is to be done; - for standard input; at most 8 KiB")
	flags.StringVar(&f.goalFile, "goal-file", "", "`FILE` with the goal")
	flags.StringVar(&f.context, "context", "", "`TEXT`, @FILE, or - of what is known already; at most 32 KiB")
	flags.StringVar(&f.id, "id", "", "`ID` of the job, at most 64 bytes (default: the leader's name and a random part)")
	flags.StringVar(&f.expert, "expert", "", "`NAME` of the expert who does the whole job, without a plan")
	flags.StringVar(&f.synthesis, "synthesis", "", "`NAME` of the expert who makes one answer of the last outputs")
	flags.StringVar(&f.approve, "approve", "", "`WHICH` plans a person decides on: first or all (default: none)")
	flags.IntVar(&f.maxParallel, "max-parallel", 0, "at most `N` attempts at once, up to 100 (default 10)")
	f.budget.register(flags)
	flags.StringVar(&f.requester, "requester", "", "`NAME` of on whose behalf it is (default: your user name)")
	flags.StringVar(&f.request, "request-id", "", "`ID` of this request, to repeat it safely (default: a new one)")
	flags.BoolVar(&f.follow, "follow", false, "show what happens until the job waits or ends")
	return cmd
}

// budgetFlags are what a job may spend.
type budgetFlags struct {
	tokens, writes, subjobs, attempts int64
	usd                               float64
	time                              time.Duration
}

func (f *budgetFlags) register(flags *pflag.FlagSet) {
	flags.Int64Var(&f.tokens, "tokens", 0, "at most `N` tokens")
	flags.Float64Var(&f.usd, "usd", 0, "at most `N` dollars")
	flags.Int64Var(&f.writes, "writes", 0, "at most `N` writes to the outside")
	flags.Int64Var(&f.subjobs, "subjobs", 0, "at most `N` subjobs begun")
	flags.Int64Var(&f.attempts, "attempts", 0, "at most `N` attempts begun")
	flags.DurationVar(&f.time, "time", 0, "at most this `TIME` at work, in whole seconds")
}

// maxUSD keeps a budget in millionths of a dollar exact.
const maxUSD = 1e9

// budget is what the flags say.
func (f *budgetFlags) budget() (job.Budget, error) {
	switch {
	case min(f.tokens, f.writes, f.subjobs, f.attempts) < 0:
		return job.Budget{}, usagef("a limit is not below 0")
	case !(f.usd >= 0 && f.usd <= maxUSD):
		return job.Budget{}, usagef("--usd %v is not between 0 and %.0f", f.usd, maxUSD)
	case f.time < 0 || f.time%time.Second != 0:
		return job.Budget{}, usagef("--time %v is not a number of whole seconds", f.time)
	}
	return job.Budget{Tokens: f.tokens, MicroUSD: int64(math.Round(f.usd * 1e6)), Writes: f.writes, SubJobs: f.subjobs,
		Attempts: f.attempts, Seconds: int64(f.time / time.Second)}, nil
}

// submit submits a job and follows it when that was asked for.
func (a *app) submit(ctx context.Context, f *submitFlags) error {
	req, err := a.submitRequest(ctx, f)
	if err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		v, err := svc.SubmitJob(ctx, req)
		switch {
		case err != nil:
			return err
		case f.follow:
			if !a.json() {
				a.printf("job  %s\n", clean(v.ID))
			}
			return a.followJob(ctx, svc, v.ID, 0)
		case a.json():
			return a.writeJSON(v)
		}
		a.printf("submitted  %s\n", clean(v.ID))
		a.next([]string{"job", "show", v.ID, "--follow"})
		return nil
	})
}

// submitRequest checks everything that can be checked without a server.
func (a *app) submitRequest(ctx context.Context, f *submitFlags) (superstep.SubmitJob, error) {
	req := superstep.SubmitJob{Leader: f.leader, RequestID: f.request, Job: job.Job{ID: f.id, Expert: f.expert,
		Requester: first(f.requester, a.userName()),
		Policy:    job.Policy{MaxParallel: f.maxParallel, Approve: f.approve, Synthesis: f.synthesis}}}
	if req.Leader == "" && len(a.leaders) == 1 {
		req.Leader = a.leaders[0].Name()
	}
	switch {
	case req.Leader == "":
		return req, usagef("--leader is missing: who is to do it?")
	case f.approve != "" && f.approve != "first" && f.approve != "all":
		return req, usagef("--approve %s is unknown; it is first or all", quoted(f.approve))
	case f.maxParallel < 0 || f.maxParallel > 100:
		return req, usagef("--max-parallel %d is not between 1 and 100", f.maxParallel)
	case f.goal != "" && f.goalFile != "":
		return req, usagef("--goal and --goal-file exclude each other")
	case f.context == "-" && (f.goal == "-" || f.goal == "" && f.goalFile == ""):
		return req, usagef("the goal and --context cannot both come from standard input")
	}
	if req.Job.ID == "" {
		req.Job.ID = a.newThread(req.Leader)
	}
	var err error
	if req.Job.Budget, err = f.budget.budget(); err == nil {
		err = cmp.Or(checkGraphName(req.Leader), checkJob(req.Job.ID))
	}
	if err != nil {
		return req, err
	}
	goal := f.goal
	switch {
	case f.goalFile != "":
		goal = "@" + f.goalFile
	case goal == "":
		goal = "-"
	}
	if req.Job.Goal, err = a.text(ctx, "the goal", goal, job.MaxGoal); err != nil {
		return req, err
	}
	if f.context != "" {
		req.Job.Context, err = a.text(ctx, "--context", f.context, job.MaxContext)
	}
	return req, err
}

// text reads a text: as it stands, from @FILE, or from standard input as "-".
func (a *app) text(ctx context.Context, name, value string, most int) (string, error) {
	raw, err := jsonFlag{name: name, max: most}.text(ctx, value, a.stdin)
	text := strings.TrimSpace(string(raw))
	switch {
	case err != nil:
		return "", err
	case len(raw) > most:
		return "", usagef("%s is over %s", name, size(most))
	case invalidUTF8(raw) >= 0:
		return "", usagef("%s is not UTF-8 at %s", name, position(raw, invalidUTF8(raw)))
	case text == "":
		return "", usagef("%s is empty", name)
	}
	return text, nil
}
