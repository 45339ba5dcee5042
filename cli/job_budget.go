package cli

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
)

func (a jobs) budgetCommand() *cobra.Command {
	var f budgetFlags
	return a.build(command{
		use: "budget JOB", short: "Show or raise what a job may spend",
		about:   `Without a flag it shows what is spent. A job that waits because its budget is spent goes on when it is raised.`,
		example: []string{"job budget report-3", "job budget report-3 --tokens 200000 --time 1h"},
		flags:   f.register,
		run: func(ctx context.Context, args []string) error {
			b, err := f.budget()
			if err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (job.View, error) {
				if b == (job.Budget{}) {
					v, err := svc.Job(ctx, args[0])
					return v.View, err
				}
				return svc.RaiseBudget(ctx, args[0], b)
			}, a.showBudget)
		},
	})
}

func (a jobs) showBudget(v job.View) {
	a.Printf("%s\n", jobLine(v))
	screen.Rows(a.Screen, limitsOf(v), func(l limit) screen.Row { return screen.Row{l.what, l.spent, l.most} }, "WHAT", "SPENT", "MOST")
	if v.Spent.Unknown {
		a.Printf("some attempts could not tell what they spent: what was set aside for them is counted\n")
	}
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

// limit is one line of a budget.
type limit struct {
	what, spent, most string
	bounded           bool
}

// limitsOf is what a job has spent of what it may spend.
func limitsOf(v job.View) []limit {
	var begun, attempts int64
	for _, s := range v.SubJobs {
		attempts += int64(s.Attempts)
		if s.Attempts > 0 {
			begun++
		}
	}
	count := func(what string, spent, most int64) limit {
		return limit{what: what, spent: humanize.Comma(spent), most: mostOf(most, humanize.Comma(most)), bounded: most > 0}
	}
	return []limit{
		count("tokens", v.Spent.Tokens, v.Budget.Tokens),
		{"usd", dollars(v.Spent.MicroUSD), mostOf(v.Budget.MicroUSD, dollars(v.Budget.MicroUSD)), v.Budget.MicroUSD > 0},
		count("writes", v.Spent.Writes, v.Budget.Writes),
		{"time", screen.Duration(v.Duration), mostOf(v.Budget.Seconds, screen.Duration(time.Duration(v.Budget.Seconds)*time.Second)), v.Budget.Seconds > 0},
		count("subjobs", begun, v.Budget.SubJobs),
		count("attempts", attempts, v.Budget.Attempts),
	}
}

func mostOf(most int64, text string) string {
	if most == 0 {
		return "no limit"
	}
	return text
}

// dollars shows millionths of a dollar, to the cent when that is exact.
func dollars(micro int64) string {
	if micro%10_000 == 0 {
		return fmt.Sprintf("%d.%02d", micro/1_000_000, micro%1_000_000/10_000)
	}
	return fmt.Sprintf("%d.%06d", micro/1_000_000, micro%1_000_000)
}

// spentShort is what a job has spent in one line: what is limited, and tokens and money when there are any.
func spentShort(v job.View) string {
	text := ""
	for _, l := range limitsOf(v) {
		switch {
		case l.bounded:
			text += fmt.Sprintf("  %s %s/%s", l.what, l.spent, l.most)
		case l.what == "tokens" && v.Spent.Tokens > 0, l.what == "usd" && v.Spent.MicroUSD > 0:
			text += fmt.Sprintf("  %s %s", l.what, l.spent)
		}
	}
	return text
}
