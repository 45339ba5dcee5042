package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"

	"go.temporal.io/sdk/client"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/thread"
)

// script is a service that replies what a test wrote down, by method name, and notes what it was asked.
type script struct {
	replies map[string]reply

	mu    sync.Mutex
	asked []string
	// interrupt plays Ctrl-C.
	interrupt func()
}

// reply is what one method does.
type reply struct {
	View     json.RawMessage   `json:"view"`
	Progress []thread.Progress `json:"progress"`
	// Parts are what Stream gives.
	Parts []thread.Part  `json:"parts"`
	Error *scriptedError `json:"error"`
	// Interrupt plays Ctrl-C while the call is under way.
	Interrupt bool `json:"interrupt"`
	// Refused, under "dial", means that nobody listens.
	Refused bool `json:"refused"`
}

// scriptedError is a [thread.Error] as text.
type scriptedError struct {
	Kind, Message, Do, Thread, Question, Cause string
}

func (e *scriptedError) err() error {
	for _, exit := range exits {
		if exit.name == e.Kind {
			known := &thread.Error{
				Kind: exit.kind, Message: e.Message, Do: e.Do, Thread: e.Thread, Question: e.Question,
			}
			if e.Cause != "" {
				known.Cause = errors.New(e.Cause)
			}
			return known
		}
	}
	return errors.New(e.Message)
}

// play replies to one call.
func play[View any](ctx context.Context, s *script, method string, request any, on func(thread.Progress)) (View, error) {
	var view View
	text, err := given(request)
	if err != nil {
		return view, err
	}
	s.mu.Lock()
	s.asked = append(s.asked, method+" "+text)
	s.mu.Unlock()
	r, ok := s.replies[method]
	if !ok {
		return view, fmt.Errorf("the script has no %s", method)
	}
	for _, p := range r.Progress {
		on(p)
	}
	if r.Interrupt {
		s.interrupt()
		<-ctx.Done()
		return view, fmt.Errorf("rpc: %w", ctx.Err())
	}
	if r.Error != nil {
		return view, r.Error.err()
	}
	if r.View == nil {
		return view, nil
	}
	return view, json.Unmarshal(r.View, &view)
}

// given is a request as JSON, without the fields that say nothing.
func given(request any) (string, error) {
	said := request
	if v := reflect.ValueOf(request); v.Kind() == reflect.Struct {
		fields := map[string]any{}
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				fields[v.Type().Field(i).Name] = v.Field(i).Interface()
			}
		}
		said = fields
	}
	text, err := json.Marshal(said)
	return string(text), err
}

func (s *script) Start(ctx context.Context, req thread.StartRequest) (thread.View, error) {
	return play[thread.View](ctx, s, "Start", req, nil)
}

func (s *script) Follow(ctx context.Context, since thread.View, on func(thread.Progress)) (thread.View, error) {
	return play[thread.View](ctx, s, "Follow", since, on)
}

func (s *script) Stream(ctx context.Context, r thread.StreamRequest) iter.Seq2[thread.Part, error] {
	return func(yield func(thread.Part, error) bool) {
		for _, p := range s.replies["Stream"].Parts {
			if !yield(p, nil) {
				return
			}
		}
		if _, err := play[struct{}](ctx, s, "Stream", r, nil); err != nil {
			yield(thread.Part{}, err)
		}
	}
}

func (s *script) List(ctx context.Context, q thread.ListQuery) ([]thread.View, error) {
	return play[[]thread.View](ctx, s, "List", q, nil)
}

func (s *script) Inbox(ctx context.Context, q thread.InboxQuery) (thread.InboxPage, error) {
	return play[thread.InboxPage](ctx, s, "Inbox", q, nil)
}

func (s *script) Question(ctx context.Context, threadID, id string) (thread.QuestionView, error) {
	return play[thread.QuestionView](ctx, s, "Question", []string{threadID, id}, nil)
}

func (s *script) Viewed(ctx context.Context, thread, question, by string) error {
	_, err := play[struct{}](ctx, s, "Viewed", []string{thread, question, by}, nil)
	return err
}

func (s *script) Audit(ctx context.Context, thread string) ([]approval.Entry, approval.Chain, error) {
	view, err := play[auditView](ctx, s, "Audit", thread, nil)
	return view.Entries, view.Chain, err
}

func (s *script) AuditExport(ctx context.Context, thread string) (approval.Export, error) {
	return play[approval.Export](ctx, s, "AuditExport", thread, nil)
}

func (s *script) CreateSchedule(ctx context.Context, req thread.ScheduleRequest) (thread.ScheduleView, error) {
	return play[thread.ScheduleView](ctx, s, "CreateSchedule", req, nil)
}

func (s *script) Schedules(ctx context.Context, limit int) ([]thread.ScheduleView, error) {
	return play[[]thread.ScheduleView](ctx, s, "Schedules", limit, nil)
}

func (s *script) PauseSchedule(ctx context.Context, req thread.SchedulePause) (thread.ScheduleView, error) {
	return play[thread.ScheduleView](ctx, s, "PauseSchedule", req, nil)
}

func (s *script) UnpauseSchedule(ctx context.Context, req thread.SchedulePause) (thread.ScheduleView, error) {
	return play[thread.ScheduleView](ctx, s, "UnpauseSchedule", req, nil)
}

func (s *script) TriggerSchedule(ctx context.Context, id string) (thread.ScheduleView, error) {
	return play[thread.ScheduleView](ctx, s, "TriggerSchedule", id, nil)
}

func (s *script) DeleteSchedule(ctx context.Context, id string) error {
	_, err := play[struct{}](ctx, s, "DeleteSchedule", id, nil)
	return err
}

func (s *script) Show(ctx context.Context, threadID string) (thread.View, error) {
	return play[thread.View](ctx, s, "Show", threadID, nil)
}

func (s *script) State(ctx context.Context, req thread.StateRequest) (thread.StateView, error) {
	return play[thread.StateView](ctx, s, "StateOf", req, nil)
}

func (s *script) History(ctx context.Context, req thread.HistoryRequest) ([]thread.CheckpointView, error) {
	return play[[]thread.CheckpointView](ctx, s, "HistoryOf", req, nil)
}

func (s *script) Erase(ctx context.Context, req thread.EraseRequest) (thread.Erasure, error) {
	req.Removed = nil
	if req.KeepAudit != nil {
		if err := req.KeepAudit(req.Thread, func() (approval.Export, error) { return s.AuditExport(ctx, req.Thread) }); err != nil {
			return thread.Erasure{}, err
		}
		req.KeepAudit = nil
	}
	return play[thread.Erasure](ctx, s, "Erase", req, nil)
}

func (s *script) Prune(ctx context.Context, req thread.PruneRequest) (thread.Pruning, error) {
	done := req.Done
	req.Done, req.Removed = nil, nil
	report, err := play[thread.Pruning](ctx, s, "Prune", req, nil)
	for _, p := range append(report.Failed, report.Threads...) {
		done(p)
	}
	if err == nil && len(report.Failed) > 0 {
		err = &thread.Error{Kind: thread.ErrStorage, Message: "1 of 2 threads were not pruned, the first: " + report.Failed[0].Error}
	}
	return report, err
}

func (s *script) Checkpoint(ctx context.Context, req thread.CheckpointRequest) (thread.CheckpointRecord, error) {
	return play[thread.CheckpointRecord](ctx, s, "Checkpoint", req, nil)
}

func (s *script) Effects(ctx context.Context, req thread.EffectsRequest) (thread.EffectsView, error) {
	return play[thread.EffectsView](ctx, s, "Effects", req, nil)
}

func (s *script) Update(ctx context.Context, req thread.UpdateRequest) (thread.StateView, error) {
	return play[thread.StateView](ctx, s, "Update", req, nil)
}

func (s *script) Fork(ctx context.Context, req thread.ForkRequest) (thread.View, error) {
	return play[thread.View](ctx, s, "Fork", req, nil)
}

func (s *script) Drain(ctx context.Context, req thread.DrainRequest) (thread.View, error) {
	return play[thread.View](ctx, s, "DrainWith", req, nil)
}

func (s *script) Pause(ctx context.Context, req thread.PauseRequest) (thread.PauseReply, error) {
	return play[thread.PauseReply](ctx, s, "Pause", req, nil)
}

func (s *script) Unpause(ctx context.Context, req thread.PauseRequest) (thread.PauseReply, error) {
	return play[thread.PauseReply](ctx, s, "Unpause", req, nil)
}

func (s *script) SendEvent(ctx context.Context, req thread.EventRequest) (thread.EventReply, error) {
	return play[thread.EventReply](ctx, s, "SendEvent", req, nil)
}

func (s *script) Resume(ctx context.Context, req thread.ResumeRequest) (thread.ResumeReply, error) {
	return play[thread.ResumeReply](ctx, s, "Resume", req, nil)
}

func (s *script) Retry(ctx context.Context, req thread.RetryRequest) (thread.View, error) {
	return play[thread.View](ctx, s, "RetryWith", req, nil)
}

func (s *script) Cancel(ctx context.Context, req thread.CancelRequest) (thread.View, error) {
	return play[thread.View](ctx, s, "CancelWith", req, nil)
}

func (s *script) GraphSpec(ctx context.Context, name string) (*pregel.Spec, error) {
	return play[*pregel.Spec](ctx, s, "GraphSpec", name, nil)
}

// dial plays the connection.
func (s *script) dial(_ context.Context, opts client.Options) (client.Client, error) {
	if s.replies["dial"].Refused {
		return nil, dialError(opts, errors.New("connection refused"))
	}
	return closable{}, nil
}

// closable is a connection that nothing is sent over.
type closable struct{ client.Client }

func (closable) Close() {}

func (closable) CheckHealth(context.Context, *client.CheckHealthRequest) (*client.CheckHealthResponse, error) {
	return &client.CheckHealthResponse{}, nil
}

// drawn is a compiled-in graph.
type drawn struct{ name string }

func (d drawn) Name() string { return d.name }

func (d drawn) Adapter() *graphadapter.Graph {
	return &graphadapter.Graph{Spec: &pregel.Spec{
		Version: pregel.SpecVersion, Name: d.name,
		Nodes: []pregel.NodeSpec{{Name: "work"}},
		Edges: []pregel.Edge{{From: pregel.Start, To: "work"}, {From: "work", To: pregel.End}},
	}}
}

// environment is an environment of a test's own: nothing of the machine's.
type environment map[string]string

func (e environment) Environ() []string {
	var all []string
	for k, v := range e {
		all = append(all, k+"="+v)
	}
	return all
}

func (e environment) LookupEnv(name string) (string, bool) {
	v, ok := e[name]
	return v, ok
}
