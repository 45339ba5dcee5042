// Package keyuse finds the open runs that need a key: those of which something that the server stores is encrypted with it. It needs
// no key for that, as each payload names the one that encrypted it.
package keyuse

import (
	"context"
	"errors"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"superstep.dev/thread/secret"
)

// MostNamed bounds how many runs [OpenRuns] names.
const MostNamed = 20

// Uses are the open runs that need a key.
type Uses struct {
	// Looked counts the open runs that were looked at.
	Looked int `json:"looked_at"`
	// Runs counts those that need the key, and Threads has the ids of the first of them.
	Runs    int      `json:"runs"`
	Threads []string `json:"threads,omitempty"`
}

// OpenRuns looks at all open runs of a namespace. It reads each run's history as far as the first payload of the key.
func OpenRuns(ctx context.Context, c client.Client, namespace, key string) (uses Uses, err error) {
	var token []byte
	for {
		page, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: namespace, Query: "ExecutionStatus = 'Running'", NextPageToken: token,
		})
		if err != nil {
			return uses, fmt.Errorf("list the open runs: %w", err)
		}
		for _, run := range page.GetExecutions() {
			needs, err := needsKey(ctx, c, namespace, key, run)
			if err != nil {
				return uses, fmt.Errorf("read the run of %s: %w", run.GetExecution().GetWorkflowId(), err)
			}
			uses.Looked++
			if !needs {
				continue
			}
			if uses.Runs++; len(uses.Threads) < MostNamed {
				uses.Threads = append(uses.Threads, run.GetExecution().GetWorkflowId())
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return uses, nil
		}
	}
}

func needsKey(ctx context.Context, c client.Client, namespace, key string, run *workflowpb.WorkflowExecutionInfo) (bool, error) {
	if found, err := mentions(ctx, run, key); found || err != nil {
		return found, err
	}
	var token []byte
	for {
		page, err := c.WorkflowService().GetWorkflowExecutionHistory(ctx, &workflowservice.GetWorkflowExecutionHistoryRequest{
			Namespace: namespace, Execution: run.GetExecution(), NextPageToken: token,
			HistoryEventFilterType: enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT,
		})
		var gone *serviceerror.NotFound
		if errors.As(err, &gone) {
			return false, nil // it ended, and was removed, meanwhile
		}
		if err != nil {
			return false, err
		}
		if found, err := mentions(ctx, page.GetHistory(), key); found || err != nil {
			return found, err
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return false, nil
		}
	}
}

// errFound ends a visit.
var errFound = errors.New("found")

// mentions reports whether a payload within m is encrypted with a key.
func mentions(ctx context.Context, m proto.Message, key string) (bool, error) {
	err := proxy.VisitPayloads(ctx, m, proxy.VisitPayloadsOptions{
		Visitor: func(_ *proxy.VisitPayloadsContext, all []*commonpb.Payload) ([]*commonpb.Payload, error) {
			for _, p := range all {
				if string(p.GetMetadata()[converter.MetadataEncoding]) == secret.Encoding && string(p.GetMetadata()[secret.MetadataKey]) == key {
					return nil, errFound
				}
			}
			return all, nil
		},
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}
