package remote

import (
	"context"
	"errors"
	"slices"

	"go.temporal.io/api/serviceerror"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/thread"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// AuditOf implements runtime.Runtime.
func (c *reader) AuditOf(ctx context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error) {
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return nil, approval.Chain{}, err
	}
	g = c.graphOr(g, last)
	var pages [][]approval.Entry
	var before approval.Chain
	for id := last.runID; id != ""; {
		entries, in, err := c.auditRun(ctx, g, last, id)
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) && len(pages) > 0 {
			break
		}
		if err != nil {
			return nil, approval.Chain{}, c.explainReplay(err, last)
		}
		pages, before = append(pages, entries), approval.Chain{}
		before = in.Life.Chain
		if id = in.Previous; before.Count == 0 {
			break
		}
	}
	slices.Reverse(pages)
	entries := slices.Concat(pages...)
	chain, err := approval.VerifyEntries(before, entries)
	return entries, chain, err
}

// ExportOf implements runtime.Runtime.
func (c *reader) ExportOf(ctx context.Context, g *graphadapter.Graph, threadID string) (approval.Export, error) {
	var x approval.Export
	last, err := c.theLastRun(ctx, threadID)
	if err != nil {
		return x, err
	}
	var head protocol.AuditReply
	if err := c.query(ctx, last, protocol.QueryAudit, &head); err != nil && !errors.Is(err, thread.ErrNoWorker) {
		return x, err
	}
	if head.Problem != "" {
		return x, &thread.Error{Kind: thread.ErrBadInput, Graph: last.graph, Thread: threadID, Message: "the worker cannot sign the audit: " + head.Problem,
			Do: "Give the workers another audit key"}
	}
	if x.Entries, x.Chain, err = c.AuditOf(ctx, g, threadID); err != nil || head.Signed == "" {
		return x, err
	}
	x.Signed = head.Signed
	// More may have happened since it was signed, and another run may have begun.
	kept := slices.IndexFunc(x.Entries, func(e approval.Entry) bool { return e.Seq > head.Chain.Count })
	if kept >= 0 {
		x.Entries = x.Entries[:kept]
		x.Chain = head.Chain
	}
	return x, x.Chain.Ends(head.Chain)
}

// auditRun reads what one run added to the audit.
func (c *reader) auditRun(ctx context.Context, g *graphadapter.Graph, last *lastRun, id string) ([]approval.Entry, protocol.GraphInput, error) {
	run, err := c.fetchRun(ctx, last, id)
	if err != nil {
		return nil, run.in, err
	}
	var audit graphadapter.Audit
	err = c.tail.ReplayEvents(last.thread, id, run.events, workflows.NewReader(g, &audit))
	return audit.Entries, run.in, err
}
