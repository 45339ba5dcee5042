package assistant

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
)

// The errors that callers tell apart.
var (
	ErrExists   = errors.New("the assistant exists already")
	ErrMissing  = errors.New("there is no such assistant or version")
	ErrTooLarge = errors.New("the assistant is too large")
)

// Store reads and changes assistants. Somebody has to work on them: see [Register].
type Store struct {
	// Temporal is the client of the servers, whose task queue it is.
	Temporal             client.Client
	Namespace, TaskQueue string
	// DataConverter is that of the Temporal client.
	DataConverter converter.DataConverter
}

// at is the workflow id of an assistant. The task queue is part of it: a graph's own assistant has the same id wherever a graph of that
// name is served.
func (s *Store) at(id string) string { return "superstep.assistant/" + s.TaskQueue + "/" + id }

// explained is a refusal as callers know it.
func explained(err error) error {
	var refused *temporal.ApplicationError
	var missing *serviceerror.NotFound
	switch {
	case errors.As(err, &refused):
		for kind, known := range map[string]error{errExists: ErrExists, errGone: ErrMissing, errLarge: ErrTooLarge} {
			switch {
			case refused.Type() != kind:
			case refused.Message() == known.Error():
				return known
			default:
				return fmt.Errorf("%w: %s", known, refused.Message())
			}
		}
	case errors.As(err, &missing):
		return ErrMissing // the server names the workflow, which callers do not know
	}
	return err
}

// Create makes an assistant of version 1. With exists one that is there is returned as it is. Errors: ErrExists, ErrTooLarge.
func (s *Store) Create(ctx context.Context, a Assistant, exists bool) (Record, error) {
	if tooLarge(a) {
		return Record{}, fmt.Errorf("%w: it has more than %d bytes", ErrTooLarge, longest)
	}
	return s.create(ctx, create{Assistant: a, Exists: exists})
}

// Change makes a new version. An assistant that is not kept yet begins as first, unless that is nil: then it is an ErrMissing. Errors:
// ErrMissing, ErrTooLarge.
func (s *Store) Change(ctx context.Context, id string, c Change, first *Assistant) (Record, error) {
	if first == nil {
		return s.update(ctx, id, updateChange, c)
	}
	if tooLarge(first.With(c)) {
		return Record{}, fmt.Errorf("%w: it would have more than %d bytes", ErrTooLarge, longest)
	}
	return s.create(ctx, create{Assistant: *first, Exists: true, First: &c})
}

func (s *Store) create(ctx context.Context, c create) (r Record, err error) {
	for range 5 {
		start := s.Temporal.NewWithStartWorkflowOperation(client.StartWorkflowOptions{ID: s.at(c.Assistant.ID), TaskQueue: s.TaskQueue,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, WorkflowTaskTimeout: 5 * time.Second}, Workflow, Record{})
		var handle client.WorkflowUpdateHandle
		handle, err = s.Temporal.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{StartWorkflowOperation: start,
			UpdateOptions: client.UpdateWorkflowOptions{WorkflowID: s.at(c.Assistant.ID), UpdateName: updateCreate,
				Args: []any{c}, WaitForStage: client.WorkflowUpdateStageCompleted}})
		if err == nil {
			err = handle.Get(ctx, &r)
		}
		var refused *temporal.ApplicationError
		var aborted *serviceerror.Aborted
		if !errors.As(err, &aborted) && (!errors.As(err, &refused) || refused.Type() != errGone) {
			break // else an assistant of that id is just ending
		}
	}
	return r, explained(err)
}

// update asks an assistant to change, and tries again where it was just being continued.
func (s *Store) update(ctx context.Context, id, name string, args ...any) (r Record, err error) {
	for range 5 {
		var handle client.WorkflowUpdateHandle
		handle, err = s.Temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: s.at(id), UpdateName: name, Args: args,
			WaitForStage: client.WorkflowUpdateStageCompleted})
		if err == nil {
			err = handle.Get(ctx, &r)
		}
		var aborted *serviceerror.Aborted
		if !errors.As(err, &aborted) {
			break
		}
	}
	return r, explained(err)
}

// Latest makes a version the one that counts. Errors: ErrMissing.
func (s *Store) Latest(ctx context.Context, id string, version int) (Record, error) {
	return s.update(ctx, id, updateLatest, version)
}

// Delete deletes an assistant with its versions. Runs of it that were asked for go on. Errors: ErrMissing.
func (s *Store) Delete(ctx context.Context, id string) (Record, error) {
	return s.update(ctx, id, updateDelete)
}

// Get returns an assistant. Errors: ErrMissing.
func (s *Store) Get(ctx context.Context, id string) (r Record, err error) {
	value, err := s.Temporal.QueryWorkflow(ctx, s.at(id), "", queryRecord)
	if err == nil {
		err = value.Get(&r)
	}
	if err == nil && (r.Deleted || r.ID == "") {
		err = ErrMissing
	}
	return r, explained(err)
}

// List calls on for each assistant that the server's index has, until it returns false. The index is a moment behind.
func (s *Store) List(ctx context.Context, on func(Line) bool) error {
	var token []byte
	for {
		page, err := s.Temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: s.Namespace, PageSize: 500,
			Query: fmt.Sprintf("WorkflowType = %q AND TaskQueue = %q AND ExecutionStatus = \"Running\"", Workflow, s.TaskQueue), NextPageToken: token})
		if err != nil {
			return err
		}
		for _, e := range page.GetExecutions() {
			var l Line
			p, ok := e.GetMemo().GetFields()[memoLine]
			if ok && s.DataConverter.FromPayload(p, &l) == nil && !on(l) {
				return nil
			}
		}
		if token = page.GetNextPageToken(); len(token) == 0 {
			return nil
		}
	}
}
