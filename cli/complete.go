package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
)

const (
	// completeWithin bounds how long Tab waits for a server. A shell that hangs is worse than one that suggests nothing.
	completeWithin = 2 * time.Second
	// completed is how many suggestions are asked for.
	completed = 100
)

// suggestion asks a server for the values of an argument. args are the arguments before it.
type suggestion func(ctx context.Context, svc service, args []string) ([]cobra.Completion, error)

// suggestions are the arguments that a server knows values for, by their names in the usage line.
var suggestions = map[string]suggestion{
	"GRAPH": suggestGraphs, "THREAD": suggestThreads, "QUESTION": suggestQuestions, "CHECKPOINT": suggestCheckpoints,
	"NAME": suggestEvents, "JOB": suggestJobs, "SUBJOB": suggestSubJobs,
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
			found = a.suggest(cmd.Context(), suggestions[strings.Trim(names[len(args)], "[]")], args)
		}
		return begunWith(found, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlags suggests values for those flags of cmd that have a known set of values, or one that a server knows.
func (a *app) completeFlags(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { completeChoice(cmd, f) })
	cmd.PersistentFlags().VisitAll(func(f *pflag.Flag) { completeChoice(cmd, f) })
	asked := map[string]suggestion{"thread": suggestThreads, "graph": suggestGraphs, "from-checkpoint": suggestCheckpoints, "at": suggestCheckpoints}
	for name, s := range asked {
		completeFlag(cmd, name, func(cmd *cobra.Command, args []string) []cobra.Completion {
			if of := cmd.Flags().Lookup("thread"); of != nil && of.Changed {
				args = []string{of.Value.String()}
			}
			return a.suggest(cmd.Context(), s, args)
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

// begunWith keeps what goes on as it was begun: not every shell leaves out the rest.
func begunWith(found []cobra.Completion, typed string) []cobra.Completion {
	return slices.DeleteFunc(slices.Clone(found), func(c cobra.Completion) bool { return !strings.HasPrefix(c, typed) })
}

// suggest asks the server. Whatever goes wrong suggests nothing: the shell has no place for an error.
func (a *app) suggest(ctx context.Context, s suggestion, args []string) []cobra.Completion {
	if s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	var found []cobra.Completion
	if err := a.withService(ctx, func(svc service) (err error) {
		found, err = s(ctx, svc, args)
		return err
	}); err != nil {
		return nil
	}
	return found
}

// value adds a suggestion with a short description. A value that a shell line cannot hold as it stands is left out.
func value(into []cobra.Completion, text string, about ...string) []cobra.Completion {
	if text == "" || screen.ShellQuote(text) != text {
		return into
	}
	const width = 60
	return append(into, cobra.CompletionWithDesc(text, screen.Shorten(screen.Clean(strings.Join(about, "  ")), width)))
}

func suggestThreads(ctx context.Context, svc service, _ []string) ([]cobra.Completion, error) {
	views, err := svc.List(ctx, superstep.ListQuery{Limit: completed})
	var found []cobra.Completion
	for _, v := range views {
		found = value(found, v.Thread, string(v.Status), v.Graph)
	}
	return found, err
}

// suggestGraphs are the graphs of the newest threads: a server has no list of graphs.
func suggestGraphs(ctx context.Context, svc service, _ []string) ([]cobra.Completion, error) {
	views, err := svc.List(ctx, superstep.ListQuery{Limit: completed})
	var names []string
	for _, v := range views {
		names = append(names, v.Graph)
	}
	slices.Sort(names)
	var found []cobra.Completion
	for _, name := range slices.Compact(names) {
		found = value(found, name)
	}
	return found, err
}

func suggestQuestions(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	if len(args) == 0 {
		return nil, nil
	}
	view, err := svc.Show(ctx, args[0])
	var found []cobra.Completion
	for _, q := range view.Questions {
		found = value(found, q.ID, q.Node, screen.ValueText(q.Value))
	}
	return found, err
}

func suggestEvents(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	if len(args) == 0 {
		return nil, nil
	}
	view, err := svc.Show(ctx, args[0])
	var found []cobra.Completion
	for _, w := range view.Waits {
		found = value(found, w.Event, w.Node)
	}
	return found, err
}

func suggestCheckpoints(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	if len(args) == 0 {
		return nil, nil
	}
	views, err := svc.HistoryOf(ctx, superstep.HistoryRequest{Thread: args[0], Limit: completed})
	var found []cobra.Completion
	for _, v := range views {
		found = value(found, v.Checkpoint, fmt.Sprintf("step %d", v.Step), "next "+cmp.Or(screen.List(v.Next), "none"))
	}
	return found, err
}

func suggestJobs(ctx context.Context, svc service, _ []string) ([]cobra.Completion, error) {
	items, err := svc.Jobs(ctx, superstep.JobsQuery{Limit: completed})
	var found []cobra.Completion
	for _, i := range items {
		found = value(found, i.ID, strings.ToLower(string(i.Status)), i.Goal)
	}
	return found, err
}

func suggestSubJobs(ctx context.Context, svc service, args []string) ([]cobra.Completion, error) {
	if len(args) == 0 {
		return nil, nil
	}
	view, err := svc.Job(ctx, args[0])
	var found []cobra.Completion
	for _, s := range view.SubJobs {
		found = value(found, s.ID, strings.ToLower(string(s.Status)), s.Goal)
	}
	return found, err
}
