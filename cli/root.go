package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// rootAbout is what --help says first; %[1]s is the program.
const rootAbout = `Superstep runs graphs as durable runs on a Temporal server: a run survives crashes of its workers, waits for
people as long as it takes, and continues where it stopped.

A first run:
  %[1]s run refund --thread r-7 --input '{"order_id":"o-7"}' --follow
  %[1]s resume r-7 q-41c9 --value true
  %[1]s show r-7`

// rootExits is the end of the root's help.
const rootExits = `
Exit codes:
  0    done; run --follow: the run finished
  1    the run failed
  2    usage or bad input; nothing was changed
  3    the run waits for an answer or an event, stopped, or is paused
  4    not found
  5    the answer was refused: already answered, expired, or not yours
  6    no server, or no worker with that graph
  7    the run was cancelled
  8    the worker could not begin: an address that is taken, a file that cannot be written
  130  Ctrl-C; a followed run goes on
Commands that only look (show, list, state, history, effects) exit 0 when there was something to look at.
`

// workerExits is the end of a worker program's help.
const workerExits = `
Exit codes:
  0    it drained
  1    it ended by itself
  2    usage; nothing was served
  6    no server
  8    it could not begin: an address that is taken, a file that cannot be written
  130  Ctrl-C before it was ready
`

// The groups of commands in the root's help.
const (
	groupRuns    = "runs"
	groupLook    = "look"
	groupChange  = "change"
	groupOperate = "operate"
)

// rootCommand builds the commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   a.program,
		Short: "Run graphs durably",
		Long:  a.ownWords(fmt.Sprintf(rootAbout, a.program)),
		Args:  a.unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	root.AddGroup(
		&cobra.Group{ID: groupRuns, Title: "Runs and answers:"},
		&cobra.Group{ID: groupLook, Title: "Look:"},
		&cobra.Group{ID: groupChange, Title: "Change what was:"},
		&cobra.Group{ID: groupOperate, Title: "Operate:"})
	root.AddCommand(
		a.runCommand(), a.inboxCommand(), a.questionCommand(), a.resumeCommand(), a.approveCommand(),
		a.rejectCommand(), a.editCommand(), a.tokenCommand(), a.eventCommand(), a.retryCommand(), a.drainCommand(), a.pauseCommand(),
		a.unpauseCommand(), a.cancelCommand(), a.jobCommand(), a.keyCommand(),
		a.updateCommand(), a.forkCommand(),
		a.listCommand(), a.showCommand(), a.stateCommand(), a.historyCommand(), a.effectsCommand(), a.auditCommand(),
		a.streamCommand(), a.graphCommand(),
		a.workerCommand(), a.healthcheckCommand(), a.versionCommand())
	return a.asRoot(root, rootExits)
}

// asRoot makes a command with its sub-commands a program: the connection's flags, how mistakes are told, and exits at the
// end of the help.
func (a *app) asRoot(root *cobra.Command, exits string) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true // runAs reports errors, in one line
	root.SetUsageTemplate(root.UsageTemplate() + "{{if not .HasParent}}" + exits + "{{end}}")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.Flags().SortFlags = false
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVarP(&a.output, "output", "o", a.output, "`FORMAT`: text for people, json for programs")
	a.conn.register(flags)
	a.completeFlags(root)
	once(root.LocalNonPersistentFlags())
	eachCommand(root, func(cmd *cobra.Command) {
		a.completeFlags(cmd)
		once(cmd.LocalNonPersistentFlags())
	})
	if len(root.Groups()) > 0 {
		root.SetCompletionCommandGroupID(groupOperate)
		root.SetHelpCommandGroupID(groupOperate)
	}
	return root
}

// eachCommand calls do for every command below cmd.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	for _, below := range cmd.Commands() {
		do(below)
		eachCommand(below, do)
	}
}

// unknownCommand refuses words that are no command, and names the one that may have been meant.
func (a *app) unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	message := fmt.Sprintf("there is no command %s", quoted(args[0]))
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		message += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return usagef("%s", message)
}

// command describes one command; build makes the cobra command of it.
type command struct {
	use, short, about string
	group             string
	// example are command lines without the program's name.
	example []string
	// args are the names of the positional arguments; the last ones, in brackets, may be missing.
	args []string
	// complete are the possible values of the first argument; without them a server is asked.
	complete []string
	run      func(cmd *cobra.Command, args []string) error
}

func (a *app) build(c command) *cobra.Command {
	lines := make([]string, len(c.example))
	for i, line := range c.example {
		lines[i] = "  " + a.program + " " + a.ownWords(line)
	}
	return &cobra.Command{
		Use:               c.use,
		Short:             c.short,
		Long:              strings.TrimSpace(c.short + ".\n\n" + strings.ReplaceAll(c.about, " superstep ", " "+a.program+" ")),
		Example:           strings.Join(lines, "\n"),
		GroupID:           c.group,
		Args:              positional(c.args),
		ValidArgsFunction: a.complete(c.args, c.complete),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := a.checkOutput(); err != nil {
				return err
			}
			if err := c.run(cmd, args); err != nil {
				return commandError{err}
			}
			return nil
		},
	}
}

// ownWords are the words of an example in a program that has graphs of its own: the first of these stands for the
// refund graph, one of its nodes for that graph's, and a file for an input that nobody but the graph knows.
func (a *app) ownWords(example string) string {
	const graph, node = "refund", "commit_refund"
	if _, has := a.graph(graph); has || len(a.graphs) == 0 {
		return example
	}
	own := a.graphs[0]
	last := node
	if nodes := own.Adapter().Spec.Nodes; len(nodes) > 0 {
		last = nodes[len(nodes)-1].Name
	}
	return strings.NewReplacer(node, last, graph, own.Name(),
		`'{"order_id":"o-7"}'`, "@input.json", `'{"order_id":"o-8"}'`, "@input.json", "order.json", "input.json").Replace(example)
}

// positional checks the number of arguments and says which one is missing or too much.
func positional(names []string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > len(names) {
			return usagef("unexpected argument %s", quoted(args[len(names)]))
		}
		for _, name := range names[len(args):] {
			if !strings.HasPrefix(name, "[") {
				return usagef("%s is missing", name)
			}
		}
		return nil
	}
}
