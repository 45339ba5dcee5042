package superstep

import (
	"context"
	"errors"
	"slices"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/workflows"
)

// Audit returns the record of a thread's approvals, oldest first, from all its runs that the server still has, and the
// chain that it ends in: who was asked, what was said and refused, and what was done. It is read from the runs' histories
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
		if in.Approvals != nil {
			before = in.Approvals.Chain
		}
		if id = in.Previous; before.Count == 0 {
			break
		}
	}
	slices.Reverse(pages)
	entries := slices.Concat(pages...)
	chain, err := approval.VerifyEntries(before, entries)
	return entries, chain, err
}

// auditRun reads what one run added to the audit.
func (c *Client) auditRun(ctx context.Context, g *graphadapter.Graph, last *lastRun, id string) ([]approval.Entry, workflows.GraphInput, error) {
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
	if err := c.signal(ctx, last, workflows.SignalViewed, workflows.ViewRequest{Question: question, By: by}); err != nil {
		return c.explain(err, last.graph, thread)
	}
	return nil
}

// addNotAllowed says why a gate did not allow an answer, and what to do about that.
func addNotAllowed(e *Error, refused *temporal.ApplicationError) {
	var why workflows.AnswerRefusal
	e.Kind, e.Do, e.Command = ErrAnswerRefused, "Look at it", []string{"show", e.Thread}
	if !refused.HasDetails() || refused.Details(&why) != nil {
		return
	}
	e.Question, e.Code = why.Question, why.Code
	switch why.Code {
	case approval.CodeUnsigned, approval.CodeMalformed, approval.CodeExpired, approval.CodeUsed, approval.CodeRetiredKey,
		approval.CodeWrongHash, approval.CodeWrongRun, approval.CodeWrongThread:
		e.Do = "Answer with a new token for the question as it is asked now"
	case approval.CodeUnavailable:
		e.Do = "Answer again when the workers can verify it"
	case approval.CodeNotYours, approval.CodePermission, approval.CodeSamePerson, approval.CodeAlreadyGiven, approval.CodeUnknown:
		e.Do = "Somebody else has to answer"
	}
}
