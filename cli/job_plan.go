package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
)

// planFlags are the flags of job plan.
type planFlags struct {
	approve      int
	edit, replan string
	reject       string
	version      int
	given        func(flag string) bool
}

func (a jobs) planCommand() *cobra.Command {
	var f planFlags
	return a.build(command{
		name: "job plan",
		flags: func(flags *pflag.FlagSet) {
			f.given = flags.Changed
			flags.IntVar(&f.approve, "approve", 0, "let the plan of this `VERSION` run")
			flags.StringVar(&f.edit, "edit", "", "run this plan instead: `JSON`, @FILE, or -")
			flags.StringVar(&f.replan, "replan", "", "have another plan made; `TEXT` says what is wrong with this one")
			flags.StringVar(&f.reject, "reject", "", "stop the job; `TEXT` says why")
			flags.IntVar(&f.version, "version", 0, "`VERSION` of the plan that --edit, --replan and --reject are about (default: the one that waits)")
		},
		run: func(ctx context.Context, args []string) error { return a.plan(ctx, args[0], &f) },
	})
}

func (a jobs) plan(ctx context.Context, id string, f *planFlags) error {
	d, err := a.decision(ctx, f)
	if err != nil {
		return err
	}
	if d == nil {
		return call(ctx, a.app, func(svc service) (planView, error) {
			v, err := svc.Job(ctx, id)
			return planOf(v.View), err
		}, a.showPlan)
	}
	return call(ctx, a.app, func(svc service) (job.View, error) {
		if d.PlanVersion == 0 {
			v, err := svc.Job(ctx, id)
			if err != nil {
				return v.View, err
			}
			d.PlanVersion = v.PlanVersion
		}
		return svc.DecidePlan(ctx, id, *d)
	}, a.showSteered)
}

// decision is what the flags decide, nil for only to look.
func (a jobs) decision(ctx context.Context, f *planFlags) (*job.Decision, error) {
	d := &job.Decision{PlanVersion: f.version, By: a.userName()}
	decided := 0
	for _, verdict := range []string{"approve", "edit", "replan", "reject"} { // each is a flag
		if f.given(verdict) {
			decided++
			d.Verdict = verdict
		}
	}
	switch {
	case decided > 1:
		return nil, usagef("--approve, --edit, --replan and --reject exclude each other")
	case decided == 0 && f.given("version"):
		return nil, usagef("--version is of a decision: --edit, --replan or --reject")
	case decided == 0:
		return nil, nil
	case d.Verdict == "approve" && f.approve < 1, f.given("version") && f.version < 1:
		return nil, usagef("versions of a plan are counted from 1")
	case len(f.replan) > job.MaxNote || len(f.reject) > job.MaxNote:
		return nil, usagef("the text has more than %s", size(job.MaxNote))
	}
	switch d.Verdict {
	case "approve":
		d.PlanVersion = f.approve
	case "replan":
		d.Reason = f.replan
	case "reject":
		d.Reason = f.reject
	case "edit":
		return d, a.editedPlan(ctx, f.edit, d)
	}
	return d, nil
}

// editedPlan reads a plan, as this program shows it or with nothing but its subjobs.
func (a jobs) editedPlan(ctx context.Context, flag string, d *job.Decision) error {
	raw, err := a.jsonObject(ctx, "--edit", maxInput, flag)
	if err != nil {
		return err
	}
	var p planView
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return usagef("--edit is no plan: %v", err)
	}
	if len(p.SubJobs) == 0 {
		return usagef(`--edit has no subjobs: it takes {"subjobs": [{"id": "1", "goal": "…", "assigned_expert": "…"}]}`)
	}
	d.Plan = &job.Draft{SubJobs: p.SubJobs}
	if d.PlanVersion == 0 {
		d.PlanVersion = p.Version
	}
	return nil
}

// planView is a plan for people and programs: the one that waits for a decision, else the one that counts.
type planView struct {
	Job     string `json:"job,omitempty"`
	Version int    `json:"version,omitempty"`
	// Waits says that somebody is to decide on it.
	Waits   bool              `json:"waits,omitempty"`
	SubJobs []job.DraftSubJob `json:"subjobs"`
}

func planOf(v job.View) planView {
	p := planView{Job: v.ID, Version: v.PlanVersion, SubJobs: []job.DraftSubJob{}}
	if v.Proposed != nil {
		p.Waits, p.SubJobs = v.Phase == job.PhaseApproving, v.Proposed.SubJobs
		return p
	}
	for _, s := range v.SubJobs {
		if !s.Legacy {
			p.SubJobs = append(p.SubJobs, s.DraftSubJob)
		}
	}
	return p
}

func (a jobs) showPlan(p planView) {
	if len(p.SubJobs) == 0 {
		a.Printf("%s has no plan yet\n", screen.Clean(p.Job))
		return
	}
	waits := ""
	if p.Waits {
		waits = ", which waits for a decision"
	}
	a.Printf("%s  plan %d%s\n", screen.Clean(p.Job), p.Version, waits)
	screen.Rows(a.Screen, p.SubJobs, func(s job.DraftSubJob) screen.Row {
		return screen.Row{s.ID, s.Expert, screen.List(s.Dependencies), screen.Brief(s.Goal)}
	}, "SUBJOB", "EXPERT", "AFTER", "GOAL")
	if p.Waits {
		a.next("job", "plan", p.Job, "--approve", fmt.Sprint(p.Version))
	}
}

func (a jobs) budgetCommand() *cobra.Command {
	var f budgetFlags
	return a.build(command{
		name:  "job budget",
		flags: f.register,
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
	screen.Rows(a.Screen, limitsOf(v), func(l limit) screen.Row { return screen.Row{l.what, l.shown(l.spent), l.mostText()} }, "WHAT", "SPENT", "MOST")
	if v.Spent.Unknown {
		a.Printf("some attempts could not tell what they spent: what was set aside for them is counted\n")
	}
}

// budgetFlags are what a job may spend.
type budgetFlags struct {
	tokens, writes, subjobs, attempts int64
	usd                               float64
	time                              time.Duration
	given                             func(name string) bool
}

func (f *budgetFlags) register(flags *pflag.FlagSet) {
	f.given = flags.Changed
	flags.Int64Var(&f.tokens, "tokens", 0, "at most `N` tokens")
	flags.Float64Var(&f.usd, "usd", 0, "at most `N` dollars")
	flags.Int64Var(&f.writes, "writes", 0, "at most `N` writes to the outside")
	flags.Int64Var(&f.subjobs, "subjobs", 0, "at most `N` subjobs begun")
	flags.Int64Var(&f.attempts, "attempts", 0, "at most `N` attempts begun")
	flags.DurationVar(&f.time, "time", 0, "at most this `TIME` since it began, without the times that it was stopped, in whole seconds")
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
	for _, l := range []struct {
		flag string
		zero bool
	}{{"tokens", f.tokens == 0}, {"usd", f.usd == 0}, {"writes", f.writes == 0}, {"subjobs", f.subjobs == 0}, {"attempts", f.attempts == 0}, {"time", f.time == 0}} {
		if l.zero && f.given(l.flag) {
			return job.Budget{}, usagef("--%s 0 is no limit: leave it out for none", l.flag)
		}
	}
	return job.Budget{Tokens: f.tokens, MicroUSD: int64(math.Round(f.usd * 1e6)), Writes: f.writes, SubJobs: f.subjobs,
		Attempts: f.attempts, Seconds: int64(f.time / time.Second)}, nil
}

// limit is one line of a budget. A most of 0 is no limit.
type limit struct {
	what        string
	spent, most int64
	shown       func(int64) string
	// flag raises it, to a value that is typed so; "" for one that is not proposed to be raised.
	flag  string
	typed func(int64) string
}

func (l limit) mostText() string {
	if l.most == 0 {
		return "no limit"
	}
	return l.shown(l.most)
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
	digits := func(n int64) string { return fmt.Sprint(n) }
	took := func(n int64) string { return screen.Duration(time.Duration(n)) }
	seconds := func(n int64) string { return fmt.Sprintf("%ds", n/int64(time.Second)) }
	return []limit{
		{"tokens", v.Spent.Tokens, v.Budget.Tokens, humanize.Comma, "--tokens", digits},
		{"usd", v.Spent.MicroUSD, v.Budget.MicroUSD, dollars, "--usd", dollars},
		{"writes", v.Spent.Writes, v.Budget.Writes, humanize.Comma, "--writes", digits},
		{"time", int64(v.Duration), v.Budget.Seconds * int64(time.Second), took, "--time", seconds},
		{"subjobs", begun, v.Budget.SubJobs, humanize.Comma, "", nil},
		{"attempts", attempts, v.Budget.Attempts, humanize.Comma, "", nil},
	}
}

// raised are flags that double the limits that are reached.
func raised(v job.View) (flags []string) {
	for _, l := range limitsOf(v) {
		if l.flag != "" && l.most > 0 && l.spent >= l.most {
			flags = append(flags, l.flag, l.typed(2*l.most))
		}
	}
	return flags
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
		case l.most > 0:
			text += fmt.Sprintf("  %s %s/%s", l.what, l.shown(l.spent), l.shown(l.most))
		case (l.what == "tokens" || l.what == "usd") && l.spent > 0:
			text += fmt.Sprintf("  %s %s", l.what, l.shown(l.spent))
		}
	}
	return text
}
