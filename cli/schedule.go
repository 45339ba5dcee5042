package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

// schedules are the commands about runs that begin by the calendar.
type schedules struct{ *app }

func (a schedules) command() *cobra.Command {
	cmd := a.parent("schedule")
	cmd.AddCommand(a.createCommand(), a.listCommand(), a.pauseCommand(), a.unpauseCommand(), a.triggerCommand(), a.deleteCommand())
	return cmd
}

// scheduleFlags are the flags of schedule create.
type scheduleFlags struct {
	thread.ScheduleRequest
	input, context, until string
}

func (a schedules) createCommand() *cobra.Command {
	var f scheduleFlags
	return a.build(command{
		name: "schedule create",
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&f.Cron, "cron", "", "`FIELDS`: minute, hour, day of the month, month and day of the week, for instance '0 3 * * mon-fri'")
			flags.DurationVar(&f.Every, "every", 0, "`TIME` between runs, from 1s on, in whole seconds")
			flags.StringVar(&f.TimeZone, "timezone", "", "`ZONE` of --cron, for instance Europe/Berlin (default: UTC)")
			flags.StringVar(&f.until, "until", "", "`TIME` at which it ends, for instance 2027-01-31T09:00:00Z (default: never)")
			flags.StringVar(&f.input, "input", "", "input of each run as a `JSON` object, @FILE, or - for standard input (default: {})")
			flags.StringVar(&f.context, "context", "", "`JSON`, @FILE, or - that every node of the runs can read; at most 64 KiB")
			flags.StringVar(&f.Run.Thread, "thread", "", "what the `ID`s of the threads begin with, before SCHEDULE (default: SCHEDULE alone)")
			flags.StringVar(&f.Run.Requester, "requester", "", "`NAME` of on whose behalf the runs are, for approvals (default: your user name)")
			choiceVar(flags, &f.Run.Durability, "durability", "", durabilities, "`WHEN` progress is stored: sync, async or exit (default: the graph's, else sync)")
			choiceVar(flags, &f.Overlap, "overlap", thread.OverlapSkip, thread.Overlaps, "`WHAT` becomes of a run that comes due while one is open: skip, wait or allow")
			flags.DurationVar(&f.CatchUp, "catch-up", 0, "begin a run at most `TIME` late, after the server was away, from 10s on (default 10m)")
			flags.BoolVar(&f.Paused, "paused", false, "begin nothing before schedule unpause")
		},
		run: func(ctx context.Context, args []string) error {
			f.ID, f.Run.Graph = args[0], args[1]
			if err := f.complete(ctx, a.app); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (thread.ScheduleView, error) { return svc.CreateSchedule(ctx, f.ScheduleRequest) },
				func(v thread.ScheduleView) {
					a.Printf("scheduled  %s  graph %s  %s\n", screen.Clean(v.ID), screen.Clean(v.Graph), cmp.Or(a.nextTime(v), "paused"))
					a.next("schedule", "trigger", v.ID)
				})
		},
	})
}

// complete reads what flags name, and refuses what no schedule has.
func (f *scheduleFlags) complete(ctx context.Context, a *app) (err error) {
	switch {
	case f.Cron == "" && f.Every == 0:
		return usagef("say when: --cron FIELDS or --every TIME")
	case f.Every < 0 || f.Every > 0 && f.Every < time.Second:
		return usagef("--every %v is below 1s", f.Every)
	case f.Every%time.Second != 0:
		return usagef("--every %v is not a number of whole seconds", f.Every)
	case f.CatchUp < 0 || f.CatchUp > 0 && f.CatchUp < 10*time.Second:
		return usagef("--catch-up %v is below 10s", f.CatchUp)
	case f.TimeZone != "" && f.Cron == "":
		return usagef("--timezone is that of --cron")
	case f.Run.Thread != "" && checkThread(f.Run.Thread) != nil:
		return checkThread(f.Run.Thread)
	case f.input == "-" && f.context == "-":
		return usagef("--input and --context cannot both come from standard input")
	}
	f.By, f.Run.Requester = a.userName(), cmp.Or(f.Run.Requester, a.userName())
	if f.until != "" {
		if f.Until, err = time.Parse(time.RFC3339, f.until); err != nil {
			return usagef("--until %s is no time such as 2027-01-31T09:00:00Z", quoted(f.until))
		}
		if !f.Until.After(a.Now()) {
			return usagef("--until %s has passed", f.until)
		}
	}
	f.Run.Input = json.RawMessage("{}")
	if f.input != "" {
		f.Run.Input, err = a.jsonObject(ctx, "--input", maxInput, f.input)
	}
	if err == nil && f.context != "" {
		f.Run.Context, err = a.jsonText(ctx, "--context", maxContext, f.context)
	}
	return err
}

// nextTime is when a schedule comes due next, "" for never.
func (a schedules) nextTime(v thread.ScheduleView) string {
	if v.Paused || len(v.Next) == 0 {
		return ""
	}
	return "next " + a.Distance(v.Next[0])
}

// when is what a schedule goes by.
func when(v thread.ScheduleView) string {
	text := v.Cron
	if v.Cron != "" && v.TimeZone != "" {
		text += " " + v.TimeZone
	}
	if v.Every != "" {
		text = strings.TrimPrefix(text+" and every "+v.Every, " and ")
	}
	return text
}

func (a schedules) listCommand() *cobra.Command {
	limit := usualListed
	return a.build(command{
		name: "schedule list",
		flags: func(flags *pflag.FlagSet) {
			flags.IntVar(&limit, "limit", usualListed, fmt.Sprintf("at most `N` schedules, up to %d", mostListed))
		},
		run: func(ctx context.Context, _ []string) error {
			if err := checkBetween("--limit", limit, 1, mostListed); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) ([]thread.ScheduleView, error) {
				all, err := svc.Schedules(ctx, limit)
				return listed(all), err
			}, func(all []thread.ScheduleView) { a.showList(all, limit) })
		},
	})
}

func (a schedules) showList(all []thread.ScheduleView, limit int) {
	if len(all) == 0 {
		a.Printf("no schedules\n")
		return
	}
	screen.Rows(a.Screen, all, func(v thread.ScheduleView) screen.Row {
		next, last := "paused", ""
		if !v.Paused {
			next = "never"
			if len(v.Next) > 0 {
				next = a.Distance(v.Next[0])
			}
		}
		if v.Last != nil {
			last = v.Last.Thread
		}
		return screen.Row{v.ID, v.Graph, when(v), next, last, screen.Shorten(screen.Clean(v.Note), screen.CellWidth)}
	}, "SCHEDULE", "GRAPH", "WHEN", "NEXT", "LAST THREAD", "NOTE")
	for _, v := range all {
		a.showUnbegun(v)
	}
	if len(all) == limit {
		a.Printf("%d shown; there may be more: --limit\n", limit)
	}
}

// showUnbegun says how often a schedule came due and began no run, and why.
func (a schedules) showUnbegun(v thread.ScheduleView) {
	if v.Skipped > 0 {
		a.Printf("%s skipped %d times that came due: a run of before was still open\n", screen.Clean(v.ID), v.Skipped)
	}
	if v.Missed > 0 {
		a.Printf("%s missed %d times that came due: the server could begin no run in time\n", screen.Clean(v.ID), v.Missed)
	}
}

func (a schedules) pauseCommand() *cobra.Command {
	return a.pausing("schedule pause", service.PauseSchedule, func(v thread.ScheduleView) {
		a.Printf("paused  %s\n", screen.Clean(v.ID))
		a.next("schedule", "unpause", v.ID)
	})
}

func (a schedules) unpauseCommand() *cobra.Command {
	return a.pausing("schedule unpause", service.UnpauseSchedule, func(v thread.ScheduleView) {
		a.Printf("goes on  %s  %s\n", screen.Clean(v.ID), a.nextTime(v))
	})
}

// pausing makes a command that pauses a schedule or lets it go on.
func (a schedules) pausing(name string, do func(service, context.Context, thread.SchedulePause) (thread.ScheduleView, error),
	show func(thread.ScheduleView)) *cobra.Command {
	var r thread.SchedulePause
	return a.build(command{
		name:  name,
		flags: func(flags *pflag.FlagSet) { flags.StringVar(&r.Reason, "reason", "", "`WHY`, at most 1000 bytes") },
		run: func(ctx context.Context, args []string) error {
			r.ID, r.By = args[0], a.userName()
			if err := checkLength("--reason", r.Reason, maxReason); err != nil {
				return err
			}
			return call(ctx, a.app, func(svc service) (thread.ScheduleView, error) { return do(svc, ctx, r) }, show)
		},
	})
}

func (a schedules) triggerCommand() *cobra.Command {
	return a.build(command{
		name: "schedule trigger",
		run: func(ctx context.Context, args []string) error {
			return call(ctx, a.app, func(svc service) (thread.ScheduleView, error) { return svc.TriggerSchedule(ctx, args[0]) }, func(v thread.ScheduleView) {
				a.Printf("begun  %s\n", screen.Clean(v.Last.Thread))
				a.next("show", v.Last.Thread)
			})
		},
	})
}

// deletedSchedule says which schedule is no more.
type deletedSchedule struct {
	ID      string `json:"schedule"`
	Deleted bool   `json:"deleted"`
}

func (a schedules) deleteCommand() *cobra.Command {
	return a.build(command{
		name: "schedule delete",
		run: func(ctx context.Context, args []string) error {
			return call(ctx, a.app, func(svc service) (deletedSchedule, error) {
				return deletedSchedule{args[0], true}, svc.DeleteSchedule(ctx, args[0])
			},
				func(d deletedSchedule) { a.Printf("deleted  %s\n", screen.Clean(d.ID)) })
		},
	})
}
