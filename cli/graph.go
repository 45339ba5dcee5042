package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/graphadapter/pregel"
)

// drawings are the values of graph --format.
var drawings = []string{superstep.DrawText, superstep.DrawMermaid, superstep.DrawDOT}

func (a *app) graphCommand() *cobra.Command {
	var format string
	cmd := a.build(command{
		use: "graph GRAPH", short: "Draw a graph", group: groupLook, args: []string{"GRAPH"},
		about: `A graph that is built into this program is drawn from it; any other one is asked from a worker that serves it.
-o json has the graph as data.`,
		example:  []string{"graph refund", "graph refund --format mermaid", "graph refund --format dot | dot -Tsvg > refund.svg"},
		complete: a.graphNames(),
		run: func(cmd *cobra.Command, args []string) error {
			return a.drawGraph(cmd.Context(), args[0], format)
		},
	})
	cmd.Flags().StringVar(&format, "format", superstep.DrawText, "`FORMAT`: "+strings.Join(drawings, ", "))
	choices(cmd, "format", drawings...)
	return cmd
}

func (a *app) drawGraph(ctx context.Context, name, format string) error {
	if !slices.Contains(drawings, format) {
		return usagef("--format %s is unknown; it is %s", quoted(format), strings.Join(drawings, ", "))
	}
	if err := checkGraphName(name); err != nil {
		return err
	}
	spec, err := a.spec(ctx, name)
	if err != nil {
		return err
	}
	if a.json() {
		return a.writeJSON(spec)
	}
	drawing, err := superstep.Draw(spec, format)
	if err != nil {
		return fmt.Errorf("graph %s cannot be drawn: %w", name, err)
	}
	a.printf("%s\n", strings.TrimRight(drawing, "\n"))
	if format == superstep.DrawText && (spec.Durability != "" || spec.Fused) {
		d := cmp.Or(superstep.Durability(spec.Durability), superstep.DurabilitySync)
		a.printf("durability %s\n", modeFact(d, spec.Fused))
	}
	return nil
}

// spec returns a graph's data from this program, else from a worker.
func (a *app) spec(ctx context.Context, name string) (*pregel.Spec, error) {
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
