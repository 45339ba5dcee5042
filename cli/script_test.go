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

	"superstep.dev"
	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
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
	View     json.RawMessage      `json:"view"`
	Progress []superstep.Progress `json:"progress"`
	// Parts are what Stream gives.
	Parts []superstep.StreamPart `json:"parts"`
	Error *scriptedError         `json:"error"`
	// Interrupt plays Ctrl-C while the call is under way.
	Interrupt bool `json:"interrupt"`
	// Refused, under "dial", means that nobody listens.
	Refused bool `json:"refused"`
}

// scriptedError is a [superstep.Error] as text.
type scriptedError struct {
	Kind, Message, Do, Thread, Question, Cause string
}

func (e *scriptedError) err() error {
	for _, exit := range exits {
		if exit.name == e.Kind {
			known := &superstep.Error{
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
func play[View any](ctx context.Context, s *script, method string, request any, on func(superstep.Progress)) (View, error) {
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

func (s *script) Start(ctx context.Context, req superstep.StartRequest) (superstep.ThreadView, error) {
	return play[superstep.ThreadView](ctx, s, "Start", req, nil)
}

func (s *script) Follow(ctx context.Context, since superstep.ThreadView, on func(superstep.Progress)) (superstep.ThreadView, error) {
	return play[superstep.ThreadView](ctx, s, "Follow", since, on)
}

func (s *script) Stream(ctx context.Context, r superstep.StreamRequest) iter.Seq2[superstep.StreamPart, error] {
	return func(yield func(superstep.StreamPart, error) bool) {
		for _, p := range s.replies["Stream"].Parts {
			if !yield(p, nil) {
				return
			}
		}
		if _, err := play[struct{}](ctx, s, "Stream", r, nil); err != nil {
			yield(superstep.StreamPart{}, err)
		}
	}
}

func (s *script) List(ctx context.Context, q superstep.ListQuery) ([]superstep.ThreadView, error) {
	return play[[]superstep.ThreadView](ctx, s, "List", q, nil)
}

func (s *script) Inbox(ctx context.Context, q superstep.InboxQuery) (superstep.InboxPage, error) {
	return play[superstep.InboxPage](ctx, s, "Inbox", q, nil)
}

func (s *script) Question(ctx context.Context, thread, id string) (superstep.QuestionView, error) {
	return play[superstep.QuestionView](ctx, s, "Question", []string{thread, id}, nil)
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

func (s *script) Show(ctx context.Context, thread string) (superstep.ThreadView, error) {
	return play[superstep.ThreadView](ctx, s, "Show", thread, nil)
}

func (s *script) StateOf(ctx context.Context, req superstep.StateRequest) (superstep.StateView, error) {
	return play[superstep.StateView](ctx, s, "StateOf", req, nil)
}

func (s *script) HistoryOf(ctx context.Context, req superstep.HistoryRequest) ([]superstep.CheckpointView, error) {
	return play[[]superstep.CheckpointView](ctx, s, "HistoryOf", req, nil)
}

func (s *script) Effects(ctx context.Context, req superstep.EffectsRequest) (superstep.EffectsView, error) {
	return play[superstep.EffectsView](ctx, s, "Effects", req, nil)
}

func (s *script) Update(ctx context.Context, req superstep.UpdateRequest) (superstep.StateView, error) {
	return play[superstep.StateView](ctx, s, "Update", req, nil)
}

func (s *script) Fork(ctx context.Context, req superstep.ForkRequest) (superstep.ThreadView, error) {
	return play[superstep.ThreadView](ctx, s, "Fork", req, nil)
}

func (s *script) DrainWith(ctx context.Context, req superstep.DrainRequest) (superstep.ThreadView, error) {
	return play[superstep.ThreadView](ctx, s, "DrainWith", req, nil)
}

func (s *script) Pause(ctx context.Context, req superstep.PauseRequest) (superstep.PauseReply, error) {
	return play[superstep.PauseReply](ctx, s, "Pause", req, nil)
}

func (s *script) Unpause(ctx context.Context, req superstep.PauseRequest) (superstep.PauseReply, error) {
	return play[superstep.PauseReply](ctx, s, "Unpause", req, nil)
}

func (s *script) SendEvent(ctx context.Context, req superstep.EventRequest) (superstep.EventReply, error) {
	return play[superstep.EventReply](ctx, s, "SendEvent", req, nil)
}

func (s *script) Resume(ctx context.Context, req superstep.ResumeRequest) (superstep.ResumeReply, error) {
	return play[superstep.ResumeReply](ctx, s, "Resume", req, nil)
}

func (s *script) RetryWith(ctx context.Context, req superstep.RetryRequest) (superstep.ThreadView, error) {
	return play[superstep.ThreadView](ctx, s, "RetryWith", req, nil)
}

func (s *script) CancelWith(ctx context.Context, req superstep.CancelRequest) (superstep.ThreadView, error) {
	return play[superstep.ThreadView](ctx, s, "CancelWith", req, nil)
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
