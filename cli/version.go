package cli

import (
	"cmp"
	"context"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

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
	v.Version = cmp.Or(build.Main.Version, unknown)
	if build.Main.Path == modulePath {
		v.Superstep = v.Version
	}
	for _, dep := range build.Deps {
		switch dep.Path {
		case modulePath:
			v.Superstep = dep.Version
		case "go.temporal.io/sdk":
			v.Temporal = dep.Version
		}
	}
	for _, setting := range build.Settings {
		if setting.Key == "vcs.revision" {
			v.Revision = setting.Value
		}
	}
	return v
}

// modulePath is Superstep's own module.
const modulePath = "superstep.dev"
