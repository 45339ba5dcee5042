package cli

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"superstep.dev/cli/screen"
)

// rootAbout is what --help says first; %[1]s is the program.
const rootAbout = `Superstep runs graphs as durable runs on a Temporal server: a run survives crashes of its workers, waits for
people as long as it takes, and continues where it stopped.

A first run:
  %[1]s run refund --thread r-7 --input '{"order_id":"o-7"}' --follow
  %[1]s resume r-7 q-41c9 --value true
  %[1]s show r-7`

// runExits are the exit codes about runs.
const runExits = `
  1    the run failed
  2    usage or bad input; nothing was changed
  3    the run waits for an answer or an event, stopped, or is paused
  4    not found
  5    the answer was refused: already answered, expired, or not yours
  6    no server, or no worker with that graph
  7    the run was cancelled
`

// rootExits is the end of the root's help.
const rootExits = `
Exit codes:
  0    done; run --follow: the run finished` + runExits + `  8    the worker could not begin: an address that is taken, a file that cannot be written
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

const groupOperate = "operate"

// rootCommand builds the commands.
func (a *app) rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   a.program,
		Short: "Run graphs durably",
		Long:  a.ownWords(fmt.Sprintf(rootAbout, a.program)),
		Args:  unknownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SuggestionsMinimumDistance = 2
	r, q, c, l, o := runs{a}, answers{a}, control{a}, looks{a}, operating{a}
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"runs", "Runs and answers:", []*cobra.Command{r.runCommand(), q.inboxCommand(), q.questionCommand(), q.resumeCommand(), q.approveCommand(),
			q.rejectCommand(), q.editCommand(), q.tokenCommand(), c.eventCommand(), c.retryCommand(), c.drainCommand(), c.pauseCommand(),
			c.unpauseCommand(), c.cancelCommand(), jobs{a}.command()}},
		{"look", "Look:", []*cobra.Command{l.listCommand(), l.showCommand(), l.stateCommand(), l.historyCommand(), l.effectsCommand(),
			l.auditCommand(), l.streamCommand(), l.graphCommand()}},
		{"change", "Change what was:", []*cobra.Command{c.updateCommand(), r.forkCommand()}},
		{groupOperate, "Operate:", []*cobra.Command{o.workerCommand(), o.healthcheckCommand(), o.keyCommand(), o.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
			root.AddCommand(cmd)
		}
	}
	root.SetCompletionCommandGroupID(groupOperate)
	root.SetHelpCommandGroupID(groupOperate)
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
	formats := []string{screen.FormatText, screen.FormatJSON}
	flags.VarP(&choice[string]{&a.Format, formats, a.Format}, "output", "o", "`FORMAT`: text for people, json for programs")
	a.conn.register(flags)
	a.completeFlags(root)
	once(root.LocalNonPersistentFlags())
	eachCommand(root, func(cmd *cobra.Command) {
		a.completeFlags(cmd)
		once(cmd.LocalNonPersistentFlags())
	})
	return root
}

// eachCommand calls do for every command below cmd.
func eachCommand(cmd *cobra.Command, do func(*cobra.Command)) {
	for _, below := range cmd.Commands() {
		do(below)
		eachCommand(below, do)
	}
}

// versionView is what version shows: what one needs to know to reproduce a problem.
type versionView struct {
	Program   string `json:"program"`
	Version   string `json:"version"`
	Superstep string `json:"superstep"`
	Temporal  string `json:"temporal_sdk"`
	Go        string `json:"go"`
	Revision  string `json:"revision,omitempty"`
}

func (a operating) versionCommand() *cobra.Command {
	return a.build(command{
		use: "version", short: "Show the versions this program was built from",
		example: []string{"version", "version -o json"},
		run: func(context.Context, []string) error {
			build, _ := debug.ReadBuildInfo()
			v := versionOf(a.program, build)
			a.Show(v, func() {
				a.Printf("%s %s  superstep %s  temporal sdk %s  %s\n", v.Program, v.Version, v.Superstep, v.Temporal, v.Go)
			})
			return nil
		},
	})
}

// versionOf reads the versions from a program's build information, which is nil for one built without modules.
func versionOf(program string, build *debug.BuildInfo) versionView {
	const unknown = "(unknown)"
	v := versionView{Program: program, Version: unknown, Superstep: unknown, Temporal: unknown, Go: runtime.Version()}
	if build == nil {
		return v
	}
	built := map[string]string{build.Main.Path: build.Main.Version}
	for _, dep := range build.Deps {
		built[dep.Path] = dep.Version
	}
	v.Version, v.Superstep = cmp.Or(build.Main.Version, unknown), cmp.Or(built[modulePath], unknown)
	v.Temporal = cmp.Or(built["go.temporal.io/sdk"], unknown)
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}

// modulePath is Superstep's own module.
const modulePath = "superstep.dev"
