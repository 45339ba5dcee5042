package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"superstep.dev"
	"superstep.dev/cli/screen"
	"superstep.dev/graphadapter/pregel"
)

// drawings are the values of graph --format.
var drawings = []string{superstep.DrawText, superstep.DrawMermaid, superstep.DrawDOT}

func (a looks) graphCommand() *cobra.Command {
	var format string
	return a.build(command{
		use: "graph GRAPH", short: "Draw a graph",
		about: `A graph that is built into this program is drawn from it; any other one is asked from a worker that serves it.
-o json has the graph as data.`,
		example:  []string{"graph refund", "graph refund --format mermaid", "graph refund --format dot | dot -Tsvg > refund.svg"},
		complete: namesOf(a.graphs),
		flags: func(flags *pflag.FlagSet) {
			choiceVar(flags, &format, "format", superstep.DrawText, drawings, "`FORMAT`: "+screen.List(drawings))
		},
		run: func(ctx context.Context, args []string) error {
			spec, err := a.spec(ctx, args[0])
			if err != nil {
				return err
			}
			drawing, err := superstep.Draw(spec, format)
			if err != nil {
				return fmt.Errorf("graph %s cannot be drawn: %w", args[0], err)
			}
			a.Show(spec, func() {
				a.Printf("%s\n", strings.TrimRight(drawing, "\n"))
				if format == superstep.DrawText && (spec.Durability != "" || spec.Fused) {
					d := cmp.Or(superstep.Durability(spec.Durability), superstep.DurabilitySync)
					a.Printf("durability %s\n", modeFact(d, spec.Fused))
				}
			})
			return nil
		},
	})
}

// spec returns a graph's data from this program, else from a worker.
func (a looks) spec(ctx context.Context, name string) (*pregel.Spec, error) {
	if g, ok := a.graph(name); ok {
		return g.Adapter().Spec, nil
	}
	var spec *pregel.Spec
	err := a.withService(ctx, func(svc service) (err error) {
		spec, err = svc.GraphSpec(ctx, name)
		return err
	})
	return spec, err
}
