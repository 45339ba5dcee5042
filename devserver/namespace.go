package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

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
