package cli

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"superstep.dev/approval"
	"superstep.dev/cli/screen"
)

const groupOperate = "operate"

// rootCommand builds the commands.
func (a *app) rootCommand() *cobra.Command {
	root := a.parent("superstep")
	root.Use, root.Long = a.program, a.ownWords(a.about(texts()["superstep"]))
	r, q, c, l, o := runs{a}, answers{a}, control{a}, looks{a}, operating{a}
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"runs", "Runs and answers:", []*cobra.Command{r.runCommand(), q.inboxCommand(), q.questionCommand(), q.resumeCommand(), q.replyCommand(approval.VerdictApprove),
			q.replyCommand(approval.VerdictReject), q.replyCommand(approval.VerdictEdit), q.tokenCommand(), c.eventCommand(), c.retryCommand(), c.drainCommand(), c.pauseCommand(),
			c.unpauseCommand(), c.cancelCommand(), schedules{a}.command(), jobs{a}.command()}},
		{"look", "Look:", []*cobra.Command{l.listCommand(), l.showCommand(), l.stateCommand(), l.historyCommand(), l.checkpointCommand(), l.effectsCommand(),
			l.auditCommand(), l.streamCommand(), l.graphCommand()}},
		{"change", "Change what was:", []*cobra.Command{c.updateCommand(), r.forkCommand(), c.eraseCommand(), c.pruneCommand(), memories{a}.command()}},
		{groupOperate, "Operate:", []*cobra.Command{o.workerCommand(), o.serveCommand(), o.healthcheckCommand(), o.signingKeyCommand(), sealing{a}.command(), o.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, cmd := range group.commands {
			cmd.GroupID = group.id
			root.AddCommand(cmd)
		}
	}
	root.SetCompletionCommandGroupID(groupOperate)
	root.SetHelpCommandGroupID(groupOperate)
	return a.asRoot(root, "superstep")
}

// asRoot makes a command with its sub-commands a program: the connection's flags, how mistakes are told, and the exit codes of
// the text called name at the end of the help.
func (a *app) asRoot(root *cobra.Command, name string) *cobra.Command {
	root.SilenceErrors, root.SilenceUsage = true, true // runAs reports errors, in one line
	root.SetUsageTemplate(root.UsageTemplate() + "{{if not .HasParent}}\n" + texts()[name].Exits + "{{end}}")
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
		name: "version",
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
