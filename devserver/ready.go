package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"google.golang.org/protobuf/types/known/durationpb"
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
func awaitReady(ctx context.Context, e endpoints, told announcements, logger sdklog.Logger) error {
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
	for _, p := range probes(c, e, told) {
		if err := retry(deadline, p); err != nil {
			return err
		}
	}
	return nil
}

func probes(c client.Client, e endpoints, told announcements) []probe {
	all := []probe{
		{"health", func(ctx context.Context) error {
			_, err := c.CheckHealth(ctx, &client.CheckHealthRequest{})
			return err
		}},
		{"namespace", func(ctx context.Context) error { return repairNamespace(ctx, c) }},
		{"announcements", func(ctx context.Context) error { return told.announce(ctx, c) }},
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

// readyFile is the file that tells scripts that the server is ready. The empty
// path stands for none.
type readyFile string

// remove takes the file away, whoever left it.
func (r readyFile) remove() error {
	if r == "" {
		return nil
	}
	if err := os.Remove(string(r)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the ready file: choose another --ready-file: %w", err)
	}
	return nil
}

// prepare takes a file that was left behind away and finds out whether there can
// be one: better now than when the server has started.
func (r readyFile) prepare() error {
	if err := r.remove(); err != nil || r == "" {
		return err
	}
	temp, err := r.temp("")
	if err != nil {
		return err
	}
	if err := os.Remove(temp); err != nil {
		return r.failed(err)
	}
	return nil
}

// write makes the file appear whole: its content is addr and nothing else, not
// even a newline.
func (r readyFile) write(addr string) error {
	if r == "" {
		return nil
	}
	temp, err := r.temp(addr)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, string(r)); err != nil {
		return errors.Join(r.failed(err), os.Remove(temp))
	}
	return nil
}

// temp writes a file beside it.
func (r readyFile) temp(content string) (name string, err error) {
	temp, err := os.CreateTemp(filepath.Dir(string(r)), filepath.Base(string(r))+".*")
	if err != nil {
		return "", r.failed(err)
	}
	_, err = temp.WriteString(content)
	if err = errors.Join(err, temp.Close()); err != nil {
		return "", errors.Join(r.failed(err), os.Remove(temp.Name()))
	}
	return temp.Name(), nil
}

func (r readyFile) failed(err error) error {
	return fmt.Errorf("write the ready file: choose a --ready-file in a directory that exists and is writable: %w", err)
}

const (
	namespace = "default"

	// retention is how long a run stays readable after it has ended. SQLite's
	// default of one day would take a thread away over the weekend.
	retention = 30 * 24 * time.Hour
)

// searchAttributes are those that Superstep's runs write. This module cannot
// import them from there.
func searchAttributes() map[string]enumspb.IndexedValueType {
	return map[string]enumspb.IndexedValueType{
		"SuperstepGraph":     enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"SuperstepStatus":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"SuperstepNodes":     enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
		"SuperstepQuestions": enumspb.INDEXED_VALUE_TYPE_INT,
		"SuperstepParent":    enumspb.INDEXED_VALUE_TYPE_KEYWORD,
		"SuperstepApprovers": enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST,
		"SuperstepDue":       enumspb.INDEXED_VALUE_TYPE_DATETIME,
		"SuperstepRisk":      enumspb.INDEXED_VALUE_TYPE_KEYWORD,
	}
}

// repairNamespace brings a namespace that something else created (Temporal's CLI,
// an earlier Superstep) to what Superstep expects: at least 30 days of retention,
// and all search attributes. It only ever adds.
func repairNamespace(ctx context.Context, c client.Client) error {
	if err := raiseRetention(ctx, c); err != nil {
		return err
	}
	return addSearchAttributes(ctx, c)
}

func raiseRetention(ctx context.Context, c client.Client) error {
	described, err := c.WorkflowService().DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("describe namespace %s: %w", namespace, err)
	}
	if described.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration() >= retention {
		return nil
	}
	_, err = c.WorkflowService().UpdateNamespace(ctx, &workflowservice.UpdateNamespaceRequest{
		Namespace: namespace,
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(retention)},
	})
	if err != nil {
		return fmt.Errorf("raise the retention of namespace %s to %v: %w", namespace, retention, err)
	}
	return nil
}

func addSearchAttributes(ctx context.Context, c client.Client) error {
	listed, err := c.OperatorService().ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return fmt.Errorf("list the search attributes of namespace %s: %w", namespace, err)
	}
	missing := searchAttributes()
	for _, name := range slices.Sorted(maps.Keys(searchAttributes())) {
		have, found := listed.GetCustomAttributes()[name]
		if !found {
			continue
		}
		if want := missing[name]; have != want {
			return fmt.Errorf("search attribute %s is of type %s in this database and must be %s: choose another database", name, have, want)
		}
		delete(missing, name)
	}
	if len(missing) == 0 {
		return nil
	}
	_, err = c.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
		Namespace:        namespace,
		SearchAttributes: missing,
	})
	if err != nil {
		return fmt.Errorf("add search attributes to namespace %s: %w", namespace, err)
	}
	return awaitSearchAttributes(ctx, c, slices.Sorted(maps.Keys(missing)))
}

// awaitSearchAttributes returns when the server takes these attributes, which it
// keeps a list of that is not renewed at once.
func awaitSearchAttributes(ctx context.Context, c client.Client, names []string) error {
	query := strings.Join(names, " IS NULL AND ") + " IS NULL"
	var refused *serviceerror.InvalidArgument
	for {
		_, err := c.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{Namespace: namespace, Query: query})
		if !errors.As(err, &refused) {
			return err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the search attributes of namespace %s: %w", namespace, err)
		}
	}
}
