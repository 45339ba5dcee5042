package superstep

import (
	"context"
	"errors"
	"slices"

	"go.temporal.io/api/serviceerror"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/workflows"
	"superstep.dev/workflows/protocol"
)

// Audit returns a thread's record, oldest first, from all its runs that the server still has, and the chain that it ends in:
// see [Thread.Audit]. It is read from the runs' histories
// and held against the chain that they handed on, so what was changed since is an [*approval.BrokenError]. The first entry has
// a Seq above 1 when earlier runs are gone. It needs no worker when this process can read the graph: all its reducers are
// Superstep's own.
//
// Errors: ErrNotFound; ErrBadInput when the past cannot be read here; ErrNoServer.
func (c *Client) Audit(ctx context.Context, thread string) ([]approval.Entry, approval.Chain, error) {
	return c.auditOf(ctx, nil, thread)
}

func (c *Client) auditOf(ctx context.Context, g *graphadapter.Graph, thread string) ([]approval.Entry, approval.Chain, error) {
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

// AuditExport returns the same with the end of the chain as a worker signs it: see [Thread.AuditExport]. The entries are
// those up to that end. Without a worker, or one that has a key to sign with, Signed is "". Errors: those of Audit;
// ErrBadInput when the worker that was asked cannot sign with its key.
func (c *Client) AuditExport(ctx context.Context, thread string) (approval.Export, error) {
	return c.exportOf(ctx, nil, thread)
}

func (c *Client) exportOf(ctx context.Context, g *graphadapter.Graph, thread string) (approval.Export, error) {
	var x approval.Export
	last, err := c.theLastRun(ctx, thread)
	if err != nil {
		return x, err
	}
	var head protocol.AuditReply
	if err := c.query(ctx, last, protocol.QueryAudit, &head); err != nil && !errors.Is(err, ErrNoWorker) {
		return x, err
	}
	if head.Problem != "" {
		return x, &Error{Kind: ErrBadInput, Graph: last.graph, Thread: thread, Message: "the worker cannot sign the audit: " + head.Problem,
			Do: "Give the workers another audit key"}
	}
	if x.Entries, x.Chain, err = c.auditOf(ctx, g, thread); err != nil || head.Signed == "" {
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
func (c *Client) auditRun(ctx context.Context, g *graphadapter.Graph, last *lastRun, id string) ([]approval.Entry, protocol.GraphInput, error) {
	run, err := c.fetchRun(ctx, last, id)
	if err != nil {
		return nil, run.in, err
	}
	var audit graphadapter.Audit
	err = c.tail.ReplayEvents(last.thread, id, run.events, workflows.NewReader(g, &audit))
	return audit.Entries, run.in, err
}

// Viewed notes in a thread's audit that somebody has looked at a question which asks for an approval. It is noted once for
// each name, of which nobody checks whose it is, and for other questions not at all. Errors: ErrNotFound, ErrNoServer.
func (c *Client) Viewed(ctx context.Context, thread, question, by string) error {
	last, err := c.theLastRun(ctx, thread)
	if err != nil || !last.open {
		return err
	}
	if err := c.signal(ctx, last, protocol.SignalViewed, protocol.ViewRequest{Question: question, By: by}); err != nil {
		return c.explain(err, last.graph, thread)
	}
	return nil
}

// addCode says what to do about what a gate refuses.
func (e *Error) addCode() {
	e.Do, e.Command = "Look at it", []string{"show", e.Thread}
	switch e.Code {
	case approval.CodeUnsigned, approval.CodeMalformed, approval.CodeExpired, approval.CodeUsed, approval.CodeRetiredKey,
		approval.CodeWrongHash, approval.CodeWrongRun, approval.CodeWrongThread:
		e.Do = "Ask with a new token, for how it is asked now"
	case approval.CodeUnavailable:
		e.Do = "Ask again when the workers can verify it"
	case approval.CodeNotYours, approval.CodePermission, approval.CodeSamePerson, approval.CodeAlreadyGiven, approval.CodeUnknown:
		e.Do = "Somebody else has to do it"
	}
}
