package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/test/bench/testbed"
	"superstep.dev/thread"
	"superstep.dev/workflows/protocol"
)

const (
	inboxRounds = 20
	barInbox    = 1000 // ms
	inboxPage   = 50
	inboxQueue  = "bench-inbox"
	// overdueAfter is how long ann has.
	overdueAfter = time.Second
	// indexPatience is how long the worker and the index may take for what was started.
	indexPatience = 20 * time.Minute
)

// inboxState is what a run has that waits.
type inboxState struct {
	Order superstep.Value[int] `json:"order"`
}

// onPostgresInbox measures the first page of what waits for people, where PostgreSQL is installed.
func onPostgresInbox(ctx context.Context, b *bench) ([]figure, error) {
	dsn, p, err := b.StartPostgres(ctx)
	if errors.Is(err, testbed.ErrNoPostgres) {
		fmt.Fprintln(b.Notes, "inbox is left out:", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	figures, err := b.inbox(ctx, dsn)
	return figures, errors.Join(err, p.Stop())
}

// inbox asks for pages while that many runs wait: each has been carried out by a worker up to its question. The worker is
// gone by then, as it would only sit there.
func (b *bench) inbox(ctx context.Context, dsn string) ([]figure, error) {
	s, err := b.Serve(ctx, "--postgres", dsn)
	if err != nil {
		return nil, err
	}
	c, err := testbed.Dial(ctx, s.Address)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	service, err := superstep.NewClient(c, superstep.ClientConfig{TaskQueue: inboxQueue})
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := b.letWait(ctx, c, service); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.Notes, "%d runs wait after %v\n", b.waiting, time.Since(began).Round(time.Second))
	var first, selected testbed.Sample
	for round := range b.repeat(inboxRounds) + 1 {
		for query, out := range map[thread.InboxQuery]*testbed.Sample{
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
				*out = append(*out, testbed.Milliseconds(time.Since(began)))
			}
		}
	}
	about := fmt.Sprintf("the first %d of %d waiting runs, on PostgreSQL", inboxPage, b.waiting)
	return []figure{
		{Name: "inbox", Compares: about, Value: first.Median(), Unit: "ms", Bar: barInbox, Rounds: first},
		{Name: "inbox of one", Compares: about + ", of those that are overdue and ask one person", Value: selected.Median(), Unit: "ms",
			Bar: barInbox, Rounds: selected},
	}, s.Process.Stop()
}

// refundGraph asks for the approval of a refund. Every tenth run asks ann, who does not answer in time: it pauses, overdue.
func refundGraph() *superstep.Graph[inboxState] {
	g := superstep.NewStateGraph[inboxState]("refund")
	g.AddNode("commit_refund", func(_ context.Context, s inboxState) (inboxState, error) { return s, nil },
		superstep.WithApproval(func(s inboxState) (approval.Action, bool) {
			order := s.Order.Get()
			action := approval.Action{Tool: "refund", Summary: fmt.Sprintf("Refund 250.00 to order %d", order), Risk: approval.RiskHigh,
				Params: json.RawMessage(`{"amount":25000}`), Approvers: []string{"group:finance"}}
			if order%10 == 0 {
				action.Approvers, action.Within, action.Silence = []string{"ann"}, overdueAfter.Milliseconds(), approval.SilencePause
			}
			return action, true
		}))
	g.AddEdge(superstep.Start, "commit_refund")
	return g.MustCompile()
}

// letWait starts runs, has a worker carry them out until they wait for people, and returns when the index has all of them.
func (b *bench) letWait(ctx context.Context, c client.Client, service *superstep.Client) error {
	w, err := superstep.NewWorker(c, superstep.WorkerConfig{Graphs: []superstep.Runnable{refundGraph()}, TaskQueue: inboxQueue})
	if err != nil {
		return err
	}
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- w.Run(serving) }()
	err = startRefunds(ctx, service, b.waiting)
	if err == nil {
		err = awaitCount(ctx, c, protocol.AttributeQuestions+" > 0", b.waiting)
	}
	if err == nil {
		err = awaitCount(ctx, c, protocol.AttributeStatus+" = '"+protocol.StatusPaused+"'", b.waiting/10)
	}
	stop()
	return errors.Join(err, <-served)
}

func startRefunds(ctx context.Context, service *superstep.Client, n int) error {
	all, starting := errgroup.WithContext(ctx)
	all.SetLimit(16)
	for i := range n {
		all.Go(func() error {
			_, err := startRequest(starting, service, thread.StartRequest{Graph: "refund", Thread: fmt.Sprintf("refund-%d", i),
				Input: fmt.Appendf(nil, `{"order":%d}`, i)})
			return err
		})
	}
	return all.Wait()
}

// awaitCount returns when the index has at least n runs that a query selects.
func awaitCount(ctx context.Context, c client.Client, query string, n int) error {
	for deadline := time.Now().Add(indexPatience); ; {
		counted, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: "default", Query: query})
		if err == nil && counted.GetCount() >= int64(n) {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("the index has %d of %d runs after %v: %s", counted.GetCount(), n, indexPatience, query), err)
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}
