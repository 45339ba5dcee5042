package workflows

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	"superstep.dev/graphadapter"
	"superstep.dev/workflows/protocol"
)

// Desk is a workflow that ends at once and lives on for its query: a closed workflow can be asked as long as it is
// retained, which costs no event, and any worker of its task queue answers for itself.
func (g *Graphs) Desk(ctx workflow.Context) error {
	return workflow.SetQueryHandlerWithOptions(ctx, protocol.QueryAdmit, g.admit,
		workflow.QueryHandlerOptions{Description: "Whether this worker serves a graph and takes an input or updates."})
}

func (g *Graphs) admit(req protocol.AdmitRequest) (protocol.AdmitReply, error) {
	reply := protocol.AdmitReply{Serves: g.names(), Notices: g.cfg.Notices}
	for _, l := range g.cfg.Leaders {
		reply.Leaders = append(reply.Leaders, l.Name)
		if l.Name == req.Leader {
			reply.Known, reply.Experts = true, l.Experts
		}
	}
	if slices.Sort(reply.Leaders); req.Leader != "" {
		return reply, nil
	}
	graph, ok := g.byName[req.Graph]
	reply.Known = ok
	if !ok {
		return reply, nil
	}
	reply.Governs = g.cfg.Governs != nil && g.cfg.Governs()
	if req.Control != nil && reply.Governs && g.cfg.May != nil {
		ruling := g.cfg.May(*req.Control)
		reply.Ruling = &ruling
	}
	if req.WithSpec {
		reply.Spec = graph.Spec
	}
	if print, err := graphadapter.Fingerprint(graph.Spec); err == nil {
		reply.Print = print
	}
	if req.Input != nil && graph.CheckInput != nil {
		if err := graph.CheckInput(req.Input); err != nil {
			reply.Problem = err.Error()
		}
	}
	if err := graph.CheckUpdates(req.Within, req.Edits); err != nil {
		reply.Problem = err.Error()
	}
	return reply, nil
}
