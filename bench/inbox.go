package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/workflows"
)

const (
	inboxRounds = 20
	barInbox    = 1000 // ms
	inboxPage   = 50
	// indexPatience is how long the server may take to index what was started.
	indexPatience = 5 * time.Minute
)

// onPostgresInbox measures the first page of what waits for people, where PostgreSQL is installed.
func onPostgresInbox(ctx context.Context, b *bench) ([]figure, error) {
	dsn, p, err := b.startPostgres(ctx)
	if errors.Is(err, errNoPostgres) {
		fmt.Fprintln(b.notes, "inbox is left out:", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	figures, err := b.inbox(ctx, dsn)
	return figures, errors.Join(err, p.Stop())
}

// inbox asks for pages while that many runs wait. What the index holds of a run is all that counts, so the runs are started
// with that, and no worker: nobody would have the time to let each of them get to its question.
func (b *bench) inbox(ctx context.Context, dsn string) ([]figure, error) {
	s, err := b.serve(ctx, "--postgres", dsn)
	if err != nil {
		return nil, err
	}
	c, err := dial(ctx, s.address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if err := startWaiting(ctx, c, b.waiting); err != nil {
		return nil, err
	}
	service, err := superstep.NewClient(c, superstep.ClientConfig{})
	if err != nil {
		return nil, err
	}
	var first, selected sample
	for round := range b.repeat(inboxRounds) + 1 {
		for query, out := range map[superstep.InboxQuery]*sample{
			{Limit: inboxPage}: &first, {Limit: inboxPage, Approver: "ann", Overdue: true}: &selected,
		} {
			began := time.Now()
			page, err := service.Inbox(ctx, query)
			if err != nil {
				return nil, err
			}
			if len(page.Questions) != inboxPage {
				return nil, fmt.Errorf("the page has %d questions, not %d", len(page.Questions), inboxPage)
			}
			if round > 0 {
				*out = append(*out, milliseconds(time.Since(began)))
			}
		}
	}
	about := fmt.Sprintf("the first %d of %d waiting runs, on PostgreSQL", inboxPage, b.waiting)
	return []figure{
		{Name: "inbox", Compares: about, Value: first.median(), Unit: "ms", Bar: barInbox, Rounds: first},
		{Name: "inbox of one", Compares: about + ", of those that are overdue and ask one person", Value: selected.median(), Unit: "ms",
			Bar: barInbox, Rounds: selected},
	}, s.process.Stop()
}

// startWaiting starts runs that look to the index as if they waited, and returns when it has all of them. Every tenth is
// overdue and asks ann.
func startWaiting(ctx context.Context, c client.Client, n int) error {
	all, starting := errgroup.WithContext(ctx)
	all.SetLimit(16)
	for i := range n {
		all.Go(func() error {
			who, due := "group:finance", time.Now().Add(time.Hour)
			if i%10 == 0 {
				who, due = "ann", time.Now().Add(-time.Hour)
			}
			id := fmt.Sprintf("waits-%d", i)
			note := workflows.QuestionsNote{Questions: []workflows.QuestionNote{{ID: "q-" + id, Node: "commit_refund",
				Asks: "Refund 250.00 to order " + id, Risk: approval.RiskHigh, Due: due, Silence: approval.SilenceDeny, Approvers: []string{who}, Need: 1}}}
			_, err := c.ExecuteWorkflow(starting, client.StartWorkflowOptions{ID: id, TaskQueue: "bench-nobody",
				Memo: map[string]any{workflows.MemoGraph: "refund", workflows.MemoQuestions: note},
				TypedSearchAttributes: temporal.NewSearchAttributes(
					temporal.NewSearchAttributeKeyKeyword(workflows.AttributeGraph).ValueSet("refund"),
					temporal.NewSearchAttributeKeyKeyword(workflows.AttributeStatus).ValueSet(workflows.StatusWaiting),
					temporal.NewSearchAttributeKeyInt64(workflows.AttributeQuestions).ValueSet(1),
					temporal.NewSearchAttributeKeyKeywordList(workflows.AttributeApprovers).ValueSet([]string{who}),
					temporal.NewSearchAttributeKeyTime(workflows.AttributeDue).ValueSet(due),
					temporal.NewSearchAttributeKeyKeyword(workflows.AttributeRisk).ValueSet(string(approval.RiskHigh))),
			}, workflows.GraphWorkflow, workflows.GraphInput{Graph: "refund"})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	for deadline := time.Now().Add(indexPatience); ; {
		counted, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
			Namespace: "default", Query: workflows.AttributeQuestions + " > 0"})
		if err == nil && counted.GetCount() >= int64(n) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the index has %d of %d runs after %v: %w", counted.GetCount(), n, indexPatience, err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
