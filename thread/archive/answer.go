package archive

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"superstep.dev/thread"
)

// answer answers a call as the server would of which the threads were archived, and refuses what changes something. An archive has no
// search attributes to list by, and no workers to ask.
func (a *Archive) answer(request, reply any) error {
	answer, err := a.answerTo(request)
	if err != nil {
		return err
	}
	proto.Merge(reply.(proto.Message), answer)
	return nil
}

func (a *Archive) answerTo(request any) (proto.Message, error) {
	switch r := request.(type) {
	case *workflowservice.GetSystemInfoRequest:
		return &workflowservice.GetSystemInfoResponse{}, nil
	case *operatorservice.ListSearchAttributesRequest:
		return &operatorservice.ListSearchAttributesResponse{}, nil
	case *workflowservice.DescribeWorkflowExecutionRequest:
		run, err := a.run(r.GetExecution())
		return run.describedOr(), err
	case *workflowservice.GetWorkflowExecutionHistoryRequest:
		return a.history(r)
	case *workflowservice.GetWorkflowExecutionHistoryReverseRequest:
		return a.backward(r)
	case *workflowservice.ListWorkflowExecutionsRequest:
		return a.list(r.GetQuery())
	case *workflowservice.QueryWorkflowRequest, *workflowservice.DescribeTaskQueueRequest:
		return nil, &thread.Error{Kind: thread.ErrNoWorker, Message: "what is archived has no workers to ask",
			Do: "Where its graph has reducers of its own, read it with the program that has the graph"}
	case *workflowservice.DescribeNamespaceRequest:
		return nil, serviceerror.NewUnimplemented("an archive has no namespace: nothing in it expires")
	}
	return nil, serviceerror.NewPermissionDenied("it is archived, and "+errReadOnly.Error(), "")
}

func (k kept) describedOr() *workflowservice.DescribeWorkflowExecutionResponse {
	if k.Run == nil {
		return nil
	}
	return k.Described
}

func (k kept) started() time.Time {
	return k.Described.GetWorkflowExecutionInfo().GetStartTime().AsTime()
}

// run is a run, the newest of its thread when none is named.
func (a *Archive) run(of *commonpb.WorkflowExecution) (kept, error) {
	runs, err := a.runs(of.GetWorkflowId())
	if err != nil {
		return kept{}, err
	}
	for _, r := range slices.Backward(runs) {
		if of.GetRunId() == "" || of.GetRunId() == r.ID {
			return r, nil
		}
	}
	return kept{}, serviceerror.NewNotFound(fmt.Sprintf("archive %q has no such run", a.place))
}

// history is a page of a run's events, all of them when no size is asked for. All runs are closed, so nothing is waited for.
func (a *Archive) history(r *workflowservice.GetWorkflowExecutionHistoryRequest) (proto.Message, error) {
	events, err := a.events(r.GetExecution())
	if err != nil {
		return nil, err
	}
	if r.GetHistoryEventFilterType() == enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT {
		return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: events[max(len(events)-1, 0):]}}, nil
	}
	events, next := page(events, r.GetNextPageToken(), r.GetMaximumPageSize())
	return &workflowservice.GetWorkflowExecutionHistoryResponse{History: &historypb.History{Events: events}, NextPageToken: next}, nil
}

func (a *Archive) backward(r *workflowservice.GetWorkflowExecutionHistoryReverseRequest) (proto.Message, error) {
	events, err := a.events(r.GetExecution())
	slices.Reverse(events)
	events, next := page(events, r.GetNextPageToken(), r.GetMaximumPageSize())
	return &workflowservice.GetWorkflowExecutionHistoryReverseResponse{History: &historypb.History{Events: events}, NextPageToken: next}, err
}

func (a *Archive) events(of *commonpb.WorkflowExecution) (all []*historypb.HistoryEvent, err error) {
	run, err := a.run(of)
	if err == nil {
		err = run.file.Events(run.Run, func(event *historypb.HistoryEvent) error {
			all = append(all, event)
			return nil
		})
	}
	return all, err
}

// page is a page of events, and the token of the next one: how many came before it.
func page(events []*historypb.HistoryEvent, token []byte, most int32) ([]*historypb.HistoryEvent, []byte) {
	from := 0
	if len(token) == 8 {
		from = int(min(binary.BigEndian.Uint64(token), uint64(len(events))))
	}
	events = events[from:]
	if most <= 0 || len(events) <= int(most) {
		return events, nil
	}
	return events[:most], binary.BigEndian.AppendUint64(nil, uint64(from+int(most)))
}

// ofKind finds the kind of workflow in a query of the server's index.
var ofKind = regexp.MustCompile(`^WorkflowType = '([^']*)'`)

// list lists runs of one kind that were not continued, the newest first, which is what lists of threads and jobs ask for.
func (a *Archive) list(query string) (proto.Message, error) {
	kind := ofKind.FindStringSubmatch(query)
	if kind == nil || !strings.HasSuffix(query, "ExecutionStatus != 'ContinuedAsNew'") {
		return nil, serviceerror.NewInvalidArgument("an archive lists threads and jobs, and nothing else")
	}
	runs, err := a.runs("")
	var all []*workflowpb.WorkflowExecutionInfo
	for _, r := range slices.Backward(runs) {
		info := r.Described.GetWorkflowExecutionInfo()
		if info.GetType().GetName() == kind[1] && !r.continued() {
			all = append(all, info)
		}
	}
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: all}, err
}
