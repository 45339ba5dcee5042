package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/internal/tracing"
	"superstep.dev/serve/assistant"
	"superstep.dev/serve/record"
	"superstep.dev/thread"
)

func itoa(n int) string { return strconv.Itoa(n) }

// runRequest is a request for a run.
type runRequest struct {
	// run is the id that the run is to have, "" for a new one.
	run               string
	AssistantID       string          `json:"assistant_id"`
	Input             json.RawMessage `json:"input" says:"null"`
	Command           *command        `json:"command" says:"null"`
	Checkpoint        *checkpointRef  `json:"checkpoint"`
	CheckpointID      string          `json:"checkpoint_id" says:"null"`
	Config            config          `json:"config"`
	Context           object          `json:"context"`
	Metadata          object          `json:"metadata"`
	StreamMode        list            `json:"stream_mode"`
	StreamSubgraphs   bool            `json:"stream_subgraphs"`
	StreamResumable   bool            `json:"stream_resumable"`
	InterruptBefore   breakpoints     `json:"interrupt_before"`
	InterruptAfter    breakpoints     `json:"interrupt_after"`
	MultitaskStrategy string          `json:"multitask_strategy" says:"word"`
	OnDisconnect      string          `json:"on_disconnect" says:"null"`
	OnCompletion      string          `json:"on_completion" says:"word"`
	IfNotExists       string          `json:"if_not_exists" says:"word"`
	AfterSeconds      float64         `json:"after_seconds"`
	Webhook           string          `json:"webhook" says:"word"`
	Durability        string          `json:"durability" says:"word"`
	// CheckpointDuring is what clients said before there was a durability: false is exit.
	CheckpointDuring *bool `json:"checkpoint_during"`
	// FeedbackKeys are for LangSmith, and nothing here.
	FeedbackKeys []string `json:"feedback_keys"`
	// ofCommand says that a command asks for the run.
	ofCommand bool
}

type config struct {
	Configurable   object   `json:"configurable"`
	RecursionLimit *int     `json:"recursion_limit,omitempty"`
	Tags           []string `json:"tags"`
	Metadata       object   `json:"metadata" says:"null"`
}

// command answers questions, writes and routes.
type command struct {
	Resume json.RawMessage `json:"resume" says:"null"`
	Update json.RawMessage `json:"update" says:"null"`
	Goto   json.RawMessage `json:"goto" says:"null"`
}

// checkpointRef names a checkpoint; without an id it is the newest.
type checkpointRef struct {
	ThreadID     string `json:"thread_id"`
	CheckpointID string `json:"checkpoint_id"`
	Namespace    string `json:"checkpoint_ns"`
	// Map are the checkpoints of the graphs around a subgraph's, by their namespaces. The namespace says it all.
	Map object `json:"checkpoint_map"`
}

// at is the checkpoint that a run is to begin at, "" for the newest. Clients also name it in the configuration, as programs do that
// invoke a graph of their own; that counts where nothing else names one.
func (r *runRequest) at() string {
	var ref checkpointRef
	if r.Checkpoint != nil {
		ref = *r.Checkpoint
	}
	return cmp.Or(ref.CheckpointID, r.CheckpointID, r.Config.Configurable.text("checkpoint_id"))
}

var (
	modes      = []string{"values", "updates", "messages", "messages-tuple", "tasks", "checkpoints", "debug", "custom", "events"}
	strategies = []string{"", record.Enqueue, record.Reject, record.Interrupt, record.Rollback}
)

// check refuses what is no request.
func (r *runRequest) check() error {
	if r.AssistantID == "" {
		return refuse(http.StatusUnprocessableEntity, "assistant_id is missing")
	}
	if err := checkModes(r.StreamMode); err != nil {
		return err
	}
	for _, one := range []struct {
		name, value string
		allowed     []string
	}{
		{"multitask_strategy", r.MultitaskStrategy, strategies},
		{"on_disconnect", r.OnDisconnect, []string{"", "cancel", "continue"}},
		{"on_completion", r.OnCompletion, []string{"", "delete", "keep", "complete", "continue"}},
		{"if_not_exists", r.IfNotExists, []string{"", "create", "reject"}},
		{"durability", r.Durability, []string{"", "sync", "async", "exit"}},
	} {
		if !slices.Contains(one.allowed, one.value) {
			return refuse(http.StatusUnprocessableEntity, "%s %q is none of %s", one.name, one.value, strings.Trim(strings.Join(one.allowed, ", "), ", "))
		}
	}
	if r.AfterSeconds > 366*86400 {
		return refuse(http.StatusUnprocessableEntity, "after_seconds %v is more than a year", r.AfterSeconds)
	}
	if at := r.at(); at != "" && uuid.Validate(at) != nil && !strings.HasPrefix(at, checkpointBegin) {
		return refuse(http.StatusUnprocessableEntity, "checkpoint_id %q is no UUID", at)
	}
	if n := len(raw(r.Metadata)) + len(raw(r.Config.Metadata)); n > record.MostMetadata {
		return refuse(http.StatusUnprocessableEntity, "the metadata has %d bytes, at most %d can be kept", n, record.MostMetadata)
	}
	for name := range r.Config.Configurable {
		if len(r.Context) > 0 && !isReserved(name) {
			return refuse(http.StatusBadRequest, "config.configurable and context are the same thing: give one of them")
		}
	}
	return checkWebhook(r.Webhook)
}

// checkModes refuses modes of a stream that there are not.
func checkModes(asked list) error {
	for _, m := range asked {
		if !slices.Contains(modes, m) {
			return refuse(http.StatusUnprocessableEntity, "stream_mode %q is none of %s", m, strings.Join(modes, ", "))
		}
	}
	return nil
}

func checkWebhook(address string) error {
	if address == "" {
		return nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return refuse(http.StatusUnprocessableEntity, "the webhook is no http or https address")
	}
	return nil
}

// given reports whether a member of a body was given and is not null.
func given(v json.RawMessage) bool { return len(v) > 0 && string(v) != "null" }

// checkpointOf is the thread's id of a checkpoint. That of a copy is known by its record alone.
func (s *Server) checkpointOf(ctx context.Context, threadID, id string) (string, error) {
	if in := checkpointIn(threadID, id); in != id || uuid.Validate(id) != nil {
		return in, nil
	}
	t, err := s.records.Get(ctx, threadID)
	if errors.Is(err, record.ErrMissing) {
		return id, nil
	}
	return checkpointIn(t.Names(), id), err
}

// run is the request as a run of a thread.
func (s *Server) run(ctx context.Context, there record.Thread, a assistant.Assistant, spec *pregel.Spec, r *runRequest) (record.Run, error) {
	threadID, id := there.ID, r.run
	if id == "" {
		made, err := uuid.NewV7()
		if err != nil {
			return record.Run{}, err
		}
		id = made.String()
	}
	run := record.Run{ID: id, Assistant: a.ID, Metadata: r.Metadata, Strategy: r.MultitaskStrategy, Webhook: r.Webhook,
		Delay: time.Duration(max(0, r.AfterSeconds) * float64(time.Second)), Resumable: r.StreamResumable, Command: r.ofCommand}
	if run.Strategy == "" {
		run.Strategy = record.Enqueue
	}
	run.Kwargs = r.kwargs(threadID, run.ID, a)
	checkpoint, err := s.checkpointOf(ctx, threadID, r.at())
	if err != nil {
		return run, err
	}
	start := thread.StartRequest{ID: run.ID, Graph: spec.Name, Thread: threadID, Checkpoint: checkpoint,
		Durability:      r.durability(),
		InterruptBefore: s.stops(threadID, spec, r.InterruptBefore), InterruptAfter: s.stops(threadID, spec, r.InterruptAfter), Trace: tracing.Carried(ctx)}
	if start.Context, err = s.contextFor(ctx, spec.Name, r.contextOver(a, there)); err != nil {
		return run, err
	}
	switch {
	case r.Command != nil:
		err = r.Command.into(&start, spec)
	case given(r.Input):
		start.Input, err = cut(r.Input, inputOf(spec), channelsOf(spec, nil))
	}
	limit, said := limitOf(a, r)
	if said && limit < 1 { // as clients know it: the run is there, and has failed
		run.Refused = &record.Failure{Type: "ValueError", Message: fmt.Sprintf("the recursion limit is %d: recursion_limit has to be at least 1", limit)}
	}
	start.RecursionLimit = max(0, limit)
	run.Start = start
	var none *noMessage
	if errors.As(err, &none) {
		run.Refused, err = &record.Failure{Type: none.kind, Message: none.says}, nil
	}
	return run, err
}

// kwargs is what a run was asked for, as clients know it: config.configurable is always there, and says which run it is.
func (r *runRequest) kwargs(threadID, runID string, a assistant.Assistant) json.RawMessage {
	of := contextFields(a, r)
	configurable := maps.Clone(of)
	maps.Copy(configurable, r.Config.Configurable)
	maps.Copy(configurable, object{"run_id": raw(runID), "thread_id": raw(threadID), "graph_id": raw(a.Graph), "assistant_id": raw(a.ID)})
	settings := object{"configurable": raw(configurable)}
	if limit, said := limitOf(a, r); said {
		settings["recursion_limit"] = raw(limit)
	}
	if r.Config.Tags != nil {
		settings["tags"] = raw(r.Config.Tags)
	}
	if r.Config.Metadata != nil {
		settings["metadata"] = raw(r.Config.Metadata)
	}
	out := map[string]any{"input": r.Input, "command": nil, "config": settings, "context": of, "webhook": nil, "feedback_keys": r.FeedbackKeys,
		"stream_mode": r.modes(), "subgraphs": r.StreamSubgraphs, "resumable": r.StreamResumable, "durability": cmp.Or(r.durability(), graphadapter.DurabilityAsync),
		"interrupt_before": r.InterruptBefore, "interrupt_after": r.InterruptAfter}
	if c := r.Command; c != nil {
		said := object{}
		for name, v := range map[string]json.RawMessage{"resume": c.Resume, "update": c.Update, "goto": c.Goto} {
			if given(v) {
				said[name] = v
			}
		}
		out["command"] = said
	}
	if r.Webhook != "" {
		out["webhook"] = r.Webhook
	}
	return raw(out)
}

// stops leaves of breakpoints those that a graph has nodes for. Clients send the same ones to all graphs.
func (s *Server) stops(threadID string, spec *pregel.Spec, at breakpoints) []string {
	return slices.DeleteFunc(slices.Clone([]string(at)), func(node string) bool {
		unknown := node != "*" && !slices.ContainsFunc(spec.Nodes, func(n pregel.NodeSpec) bool { return n.Name == node })
		if unknown {
			s.log.Warnw("a breakpoint is left out, as the graph has no such node", "thread", threadID, "graph", spec.Name, "node", node)
		}
		return unknown
	})
}

// durability is when the run's progress is stored, "" for the default.
func (r *runRequest) durability() graphadapter.Durability {
	if r.Durability == "" && r.CheckpointDuring != nil && !*r.CheckpointDuring {
		return graphadapter.DurabilityExit
	}
	return graphadapter.Durability(r.Durability)
}

func (r *runRequest) modes() []string {
	if len(r.StreamMode) == 0 {
		return []string{"values"}
	}
	return r.StreamMode
}

// reserved begins the names in a configuration that are the server's own.
var reserved = []string{"thread_id", "checkpoint_", "__", "langgraph_", "run_id", "graph_id", "assistant_id", "user_id"}

func isReserved(name string) bool {
	return slices.ContainsFunc(reserved, func(begin string) bool { return strings.HasPrefix(name, begin) })
}

// limitOf is how many supersteps the run may take, if somebody says it: the run itself, or the assistant.
func limitOf(a assistant.Assistant, r *runRequest) (limit int, said bool) {
	at := r.Config.RecursionLimit
	if at == nil && json.Unmarshal(a.Config["recursion_limit"], &at) != nil || at == nil {
		return 0, false // it says none, or no number
	}
	return *at, true
}

// ownContext is what a request says of the run's context, under either name.
func (r *runRequest) ownContext() object {
	if len(r.Context) > 0 {
		return r.Context
	}
	return r.Config.Configurable
}

// contextFields are the run's context: the assistant's, and over it, field by field, the run's.
func contextFields(a assistant.Assistant, r *runRequest) object {
	out := object{}
	for _, from := range []object{a.Context, r.ownContext()} {
		for name, v := range from {
			if !isReserved(name) {
				out[name] = v
			}
		}
	}
	return out
}

// contextOver is the context that the request gives a run of a thread, nil for none. A request that goes on with a run of the same
// assistant and brings none leaves that one its context.
func (r *runRequest) contextOver(a assistant.Assistant, there record.Thread) json.RawMessage {
	goesOn := !given(r.Input) && there.Assistant == a.ID
	own := assistant.Assistant{}
	if of := contextFields(own, r); goesOn && len(of) == 0 {
		return nil
	}
	if of := contextFields(a, r); len(of) > 0 {
		return raw(of)
	}
	return nil
}

// contextFor leaves of a run's context what the graph takes: clients put settings of all kinds beside it, which a graph with a context
// of known fields refuses.
func (s *Server) contextFor(ctx context.Context, graph string, given json.RawMessage) (json.RawMessage, error) {
	if isEmpty(given) {
		return given, nil
	}
	known, err := s.contextSchema(ctx, graph)
	if err != nil {
		return nil, err
	}
	return fitting(given, known), nil
}

// fitting leaves of an object the members that a schema has, where the schema has no others.
func fitting(v, schema json.RawMessage) json.RawMessage {
	var known struct {
		Properties object          `json:"properties"`
		Additional json.RawMessage `json:"additionalProperties"`
	}
	if json.Unmarshal(schema, &known) != nil || len(known.Properties) == 0 || given(known.Additional) && string(known.Additional) != "false" {
		return v
	}
	kept, err := cut(v, sortedKeys(known.Properties), nil)
	if err != nil {
		return v
	}
	return kept
}

// into makes a command part of an invocation.
func (c *command) into(start *thread.StartRequest, spec *pregel.Spec) error {
	if given(c.Resume) {
		start.Resume = resumeOf(c.Resume)
	}
	if !given(c.Update) && !given(c.Goto) {
		return nil
	}
	start.Control = &pregel.Command{}
	if given(c.Update) {
		values, err := c.fields()
		if err != nil {
			return err
		}
		conversations := channelsOf(spec, nil)
		for _, name := range namesOf(spec) {
			if v, ok := values[name]; ok {
				if conversations[name] {
					if v, err = messagesIn(v); err != nil {
						return err
					}
				}
				start.Control.Update = append(start.Control.Update, pregel.Write{Channel: name, Value: pregel.Value(v)})
			}
		}
	}
	return c.route(start.Control)
}

// fields are what a command writes: an object of fields, or a list of pairs of a field's name and its value.
func (c *command) fields() (values object, err error) {
	if json.Unmarshal(c.Update, &values) == nil {
		return values, nil
	}
	var pairs [][]json.RawMessage
	err = json.Unmarshal(c.Update, &pairs)
	values = object{}
	for _, pair := range pairs {
		var name string
		if len(pair) != 2 || json.Unmarshal(pair[0], &name) != nil {
			err = errors.New("no pair")
			break
		}
		values[name] = pair[1]
	}
	if err != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "command.update is no object of fields, and no list of pairs of a field and its value")
	}
	return values, nil
}

// route reads where a command goes: a node, {"node", "input"}, or a list of these.
func (c *command) route(into *pregel.Command) error {
	if !given(c.Goto) {
		return nil
	}
	var all []json.RawMessage
	if json.Unmarshal(c.Goto, &all) != nil {
		all = []json.RawMessage{c.Goto}
	}
	for _, one := range all {
		var node string
		if given(one) && json.Unmarshal(one, &node) == nil {
			into.Goto = append(into.Goto, pregel.Target{Node: node})
			continue
		}
		var send struct {
			Node  string          `json:"node"`
			Input json.RawMessage `json:"input"`
		}
		if json.Unmarshal(one, &send) != nil || send.Node == "" || send.Input == nil {
			return refuse(http.StatusUnprocessableEntity, "command.goto is no node, no {node, input} and no list of these")
		}
		into.Goto = append(into.Goto, pregel.Target{Node: send.Node, Send: true, Arg: pregel.Value(send.Input)})
	}
	return nil
}
