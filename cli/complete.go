package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev/cli/screen"
	"superstep.dev/job"
	"superstep.dev/thread"
)

const (
	// completeWithin bounds how long Tab waits for a server. A shell that hangs is worse than one that suggests nothing.
	completeWithin = 2 * time.Second
	// completed is how many suggestions are asked for.
	completed = 100
)

// suggestion asks a server for the values of an argument. args are the arguments before it.
type suggestion struct {
	// behind says that the values depend on the argument before.
	behind bool
	ask    func(ctx context.Context, svc service, args []string) ([]cobra.Completion, error)
}

// suggestions are the arguments that a server knows values for, by their names in the usage line.
var suggestions = map[string]suggestion{
	"GRAPH": {ask: suggestGraphs}, "THREAD": {ask: suggestThreads}, "JOB": {ask: suggestJobs}, "QUESTION": {true, suggestQuestions},
	"CHECKPOINT": {true, suggestCheckpoints}, "NAME": {true, suggestEvents}, "SUBJOB": {true, suggestSubJobs},
	"SCHEDULE": {ask: suggestSchedules},
}

// complete suggests values for the positional arguments of these names. known are values for the first one that need no
// server.
func (a *app) complete(names, known []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var found []cobra.Completion
		switch {
		case len(args) >= len(names):
		case len(args) == 0 && len(known) > 0:
			found = known
		default:
			found = a.suggest(cmd.Context(), strings.Trim(names[len(args)], "[]"), args)
		}
		return begunWith(found, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlags suggests values for those flags of cmd that have a known set of values, or one that a server knows.
func (a *app) completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { completeChoice(cmd, f) })
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { completeChoice(cmd, f) })
	for name, argument := range map[string]string{"thread": "THREAD", "graph": "GRAPH", "from-checkpoint": "CHECKPOINT", "at": "CHECKPOINT"} {
		completeFlag(cmd, name, func(cmd *cobra.Command, args []string) []cobra.Completion {
			if of := cmd.Flags().Lookup("thread"); of != nil && of.Changed {
				args = []string{of.Value.String()}
			}
			return a.suggest(cmd.Context(), argument, args)
		})
	}
}

// completeChoice suggests the values of a flag that has few.
func completeChoice(cmd *cobra.Command, f *pflag.Flag) {
	if of, ok := f.Value.(interface{ completions() []cobra.Completion }); ok {
		completeFlag(cmd, f.Name, func(*cobra.Command, []string) []cobra.Completion { return of.completions() })
	}
}

// completeFlag suggests values for one flag, if the command has that flag.
func completeFlag(cmd *cobra.Command, name string, values func(*cobra.Command, []string) []cobra.Completion) {
	if cmd.Flag(name) == nil {
		return
	}
	// The only error is a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return begunWith(values(cmd, args), typed), cobra.ShellCompDirectiveNoFileComp
	})
}

// begunWith keeps the suggestions that begin with what was typed: not every shell drops the others.
func begunWith(found []cobra.Completion, typed string) []cobra.Completion {
	return slices.DeleteFunc(slices.Clone(found), func(c cobra.Completion) bool { return !strings.HasPrefix(c, typed) })
}

// suggest asks the server. Whatever goes wrong suggests nothing: the shell has no place for an error.
func (a *app) suggest(ctx context.Context, argument string, args []string) (found []cobra.Completion) {
	s := suggestions[argument]
	if s.ask == nil || s.behind && len(args) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	if a.withService(ctx, func(svc service) (err error) {
		found, err = s.ask(ctx, svc, args)
		return err
	}) != nil {
		return nil
	}
	return found
}

// known are suggestions of what a server knows, each with a short description. A value that a shell line cannot hold as it
// stands is left out.
func known[T any](all []T, err error, one func(T) (value, about string)) ([]cobra.Completion, error) {
	const width = 60
	var found []cobra.Completion
	for _, v := range all {
		if value, about := one(v); value != "" && screen.ShellQuote(value) == value {
			found = append(found, cobra.CompletionWithDesc(value, screen.Shorten(screen.Clean(about), width)))
		}
	}
	return found, err
}

func suggestThreads(ctx context.Context, svc service, _ []string) ([]cobra.Completion, error) {
	views, err := svc.List(ctx, thread.ListQuery{Limit: completed})
	return known(views, err, func(v thread.View) (string, string) { return v.Thread, string(v.Status) + " " + v.Graph })
}

// suggestGraphs are the graphs of the newest threads: a server has no list of graphs.
func suggestGraphs(ctx context.Context, svc service, _ []string) ([]cobra.Completion, error) {
	views, err := svc.List(ctx, thread.ListQuery{Limit: completed})
	graphs := map[string]bool{}
	for _, v := range views {
		graphs[v.Graph] = true
	}
	return known(slices.Sorted(maps.Keys(graphs)), err, func(name string) (string, string) { return name, "" })
}

func suggestQuestions(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	view, err := svc.Show(ctx, args[0])
	return known(view.Questions, err, func(q thread.Question) (string, string) { return q.ID, q.Node + " " + screen.ValueText(q.Value) })
}

func suggestEvents(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	view, err := svc.Show(ctx, args[0])
	return known(view.Waits, err, func(w thread.WaitView) (string, string) { return w.Event, w.Node })
}

func suggestCheckpoints(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	views, err := svc.History(ctx, thread.HistoryRequest{Thread: args[0], Limit: completed})
	return known(views, err, func(v thread.CheckpointView) (string, string) {
		return v.Checkpoint, fmt.Sprintf("step %d next %s", v.Step, cmp.Or(screen.List(v.Next), "none"))
	})
}

func suggestJobs(ctx context.Context, svc service, _ []string) ([]cobra.Completion, error) {
	items, err := svc.Jobs(ctx, thread.JobsQuery{Limit: completed})
	return known(items, err, func(i thread.JobItem) (string, string) {
		return i.ID, strings.ToLower(string(i.Status)) + " " + i.Goal
	})
}

func suggestSubJobs(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	view, err := svc.Job(ctx, args[0])
	return known(view.SubJobs, err, func(s job.SubJob) (string, string) { return s.ID, strings.ToLower(string(s.Status)) + " " + s.Goal })
}

func suggestSchedules(ctx context.Context, svc service, _ []string) ([]cobra.Completion, error) {
	all, err := svc.Schedules(ctx, completed)
	var out []cobra.Completion
	for _, v := range all {
		out = append(out, cobra.CompletionWithDesc(v.ID, v.Graph))
	}
	return out, err
}
