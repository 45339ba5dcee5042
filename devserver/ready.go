package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
)

const (
	readyTimeout = time.Minute           // a start takes one to three seconds; more than this is a fault
	readyPoll    = 50 * time.Millisecond // between two tries
)

// probe is one condition of readiness.
type probe struct {
	name  string
	check func(context.Context) error
}

// awaitReady returns once the server really serves: healthy, its shard owned, the
// namespace and its search attributes usable in queries, and the Web UI answering
// if there is one. The error names the condition that did not come true; when ctx
// ends it is ctx's.
func awaitReady(ctx context.Context, e endpoints, logger sdklog.Logger) error {
	c, err := client.NewLazyClient(client.Options{
		HostPort:  dialable(e.frontend).String(),
		Namespace: namespace,
		Logger:    logger,
	})
	if err != nil {
		return fmt.Errorf("connect to the server just started: %w", err)
	}
	defer c.Close()

	deadline, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %v", readyTimeout))
	defer cancel()
	for _, p := range probes(c, e) {
		if err := retry(deadline, p); err != nil {
			return err
		}
	}
	return nil
}

func probes(c client.Client, e endpoints) []probe {
	all := []probe{
		{"health", func(ctx context.Context) error {
			_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		}},
		{"namespace", func(ctx context.Context) error { return repairNamespace(ctx, c) }},
		{"search attributes", func(ctx context.Context) error { return checkVisibility(ctx, c) }},
		{"history", func(ctx context.Context) error { return checkHistory(ctx, c) }},
	}
	if e.ui.IsValid() {
		all = append(all, probe{"Web UI", func(ctx context.Context) error { return checkUI(ctx, e.ui) }})
	}
	return all
}

// retry tries p until it succeeds or ctx ends.
func retry(ctx context.Context, p probe) error {
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		err := p.check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the server (%s): %w: run with --log-level info to see why (last answer: %w)", p.name, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// checkVisibility runs a query that names every search attribute.
func checkVisibility(ctx context.Context, c client.Client) error {
	_, err := c.CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: namespace,
		Query: `SuperstepGraph = '' AND SuperstepStatus = '' AND SuperstepNodes = '' AND SuperstepQuestions = 0 AND SuperstepParent = ''` +
			` AND SuperstepApprovers = '' AND SuperstepDue < '2000-01-01T00:00:00Z' AND SuperstepRisk = ''`,
	})
	return err
}

// checkHistory asks for a run that does not exist: only the owner of its shard
// can say so.
func checkHistory(ctx context.Context, c client.Client) error {
	_, err := c.DescribeWorkflowExecution(ctx, "superstep-devserver-probe", "")
	var notFound *serviceerror.NotFound
	if errors.As(err, &notFound) {
		return nil
	}
	return err
}

func checkUI(ctx context.Context, addr netip.AddrPort) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uiURL(dialable(addr))+"/healthz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close() // the status line is all that matters
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("web UI answers %s", response.Status)
	}
	return nil
}
