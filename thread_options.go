package superstep

import (
	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// AskOption says who asks for something that is done to a thread, and why: both are in its audit. It goes with every call
// that changes a run from outside.
type AskOption interface {
	ReplyOption
	ControlOption
	EventOption
	CancelOption
	UpdateOption
	RunOption
}

// ControlOption shapes [Thread.Pause], [Thread.Unpause], [Thread.Retry], [Thread.Drain] and [Thread.Fork].
type ControlOption interface{ applyControl(*runtime.Asker) }

func askerOf(opts []ControlOption) (a runtime.Asker) {
	for _, o := range opts {
		o.applyControl(&a)
	}
	return a
}

type askOption func(*runtime.Asker)

func (o askOption) applyControl(a *runtime.Asker) { o(a) }

func (o askOption) applyReply(r *replyOptions) { o(&r.Asker) }

func (o askOption) applyEvent(r *thread.EventRequest) {
	a := runtime.Asker{By: r.By, Token: r.Token}
	o(&a)
	r.By, r.Token = a.By, a.Token
}

func (o askOption) ApplyCancel(r *thread.CancelRequest) {
	r.By, r.Reason, r.Token = o.on(r.By, r.Reason, r.Token)
}

func (o askOption) applyUpdate(r *thread.UpdateRequest) {
	r.By, r.Reason, r.Token = o.on(r.By, r.Reason, r.Token)
}

func (o askOption) applyRun(r *runOptions) {
	q := &r.request
	q.By, q.Reason, q.Token = o.on(q.By, q.Reason, q.Token)
}

func (o askOption) on(by, reason, token string) (string, string, string) {
	a := runtime.Asker{By: by, Reason: reason, Token: token}
	o(&a)
	return a.By, a.Reason, a.Token
}

// AskedBy names who asks, at most 200 bytes. Nobody checks the name; where rules want proof, [WithToken] is that.
func AskedBy(name string) AskOption { return askOption(func(a *runtime.Asker) { a.By = name }) }

// WithToken proves who asks or answers: a token for this question or request, signed by somebody whose key the gate knows.
func WithToken(token string) AskOption { return askOption(func(a *runtime.Asker) { a.Token = token }) }

// WithReason says why, for the record: at most 1,000 bytes.
func WithReason(reason string) AskOption {
	return askOption(func(a *runtime.Asker) { a.Reason = reason })
}

// ReplyOption shapes an answer.
type ReplyOption interface{ applyReply(*replyOptions) }

type replyOptions struct {
	runtime.Asker
	id     string
	tokens map[string]string
}

type replyOption func(*replyOptions)

func (o replyOption) applyReply(r *replyOptions) { o(r) }

// WithTokens proves it for several questions that are answered at once, by their ids as they were given.
func WithTokens(tokens map[string]string) ReplyOption {
	return replyOption(func(r *replyOptions) { r.tokens = tokens })
}

// RequestID makes an answer or an event idempotent: see [WithRequestID].
type RequestID interface {
	ReplyOption
	EventOption
}

type requestID string

func (id requestID) applyReply(r *replyOptions) { r.id = string(id) }

func (id requestID) applyEvent(r *thread.EventRequest) { r.ID = string(id) }

// WithRequestID makes an answer or an event idempotent: the thread takes the same id once, of at most 200 bytes, and says so
// of the next, also when its run is over. Example: the id that a webhook is delivered under.
func WithRequestID(id string) RequestID { return requestID(id) }

// AnsweredBy names who answers. In a [Memory] without a gate the answer counts as theirs; a gate refuses it when its token
// is somebody else's (approval.CodeWrongPerson).
func AnsweredBy(name string) ReplyOption { return replyOption(func(r *replyOptions) { r.By = name }) }

func replyOptionsOf(opts []ReplyOption) (o replyOptions) {
	for _, opt := range opts {
		opt.applyReply(&o)
	}
	return o
}

// EventOption shapes an event: see [WithRequestID].
type EventOption interface{ applyEvent(*thread.EventRequest) }

// CancelOption shapes one cancellation.
type CancelOption interface{ ApplyCancel(*thread.CancelRequest) }

// StateOption shapes [Thread.State].
type StateOption interface{ applyState(*thread.StateRequest) }

// HistoryOption shapes [Thread.History].
type HistoryOption interface{ applyHistory(*thread.HistoryRequest) }

// CheckpointOption is what [AtCheckpoint] returns.
type CheckpointOption interface {
	StateOption
	UpdateOption
}

// SubgraphOption is what [InSubgraph] returns.
type SubgraphOption interface {
	StateOption
	HistoryOption
	UpdateOption
}

// AtCheckpoint names a checkpoint of the thread's history. Reading there shows what was known then; updating it begins a
// branch.
func AtCheckpoint(id string) CheckpointOption { return atCheckpoint(id) }

type atCheckpoint string

func (id atCheckpoint) applyState(r *thread.StateRequest) { r.Checkpoint = string(id) }

func (id atCheckpoint) applyUpdate(r *thread.UpdateRequest) { r.Checkpoint = string(id) }

// InSubgraph addresses the subgraph that is under way in the task of the last of these nodes; the nodes lead to it,
// outermost first.
func InSubgraph(nodes ...string) SubgraphOption { return inSubgraph(nodes) }

type inSubgraph []string

func (n inSubgraph) applyState(r *thread.StateRequest) { r.Subgraph = n }

func (n inSubgraph) applyHistory(r *thread.HistoryRequest) { r.Subgraph = n }

func (n inSubgraph) applyUpdate(r *thread.UpdateRequest) { r.Subgraph = n }

type stateOption func(*thread.StateRequest)

func (o stateOption) applyState(r *thread.StateRequest) { o(r) }

// WithSubgraphs shows the states of subgraphs under way in [thread.TaskView].State.
func WithSubgraphs() StateOption {
	return stateOption(func(r *thread.StateRequest) { r.Subgraphs = true })
}

type historyOption func(*thread.HistoryRequest)

func (o historyOption) applyHistory(r *thread.HistoryRequest) { o(r) }

// Limit bounds the checkpoints that are returned: the newest ones.
func Limit(n int) HistoryOption { return historyOption(func(r *thread.HistoryRequest) { r.Limit = n }) }

// Before leaves out that checkpoint and everything newer.
func Before(checkpoint string) HistoryOption {
	return historyOption(func(r *thread.HistoryRequest) { r.Before = checkpoint })
}

// FromSource selects the checkpoints made by "input", "loop", "update" or "fork".
func FromSource(source string) HistoryOption {
	return historyOption(func(r *thread.HistoryRequest) { r.Source = source })
}

// AtStep selects the checkpoints of a superstep; -1 is that of the first input.
func AtStep(step int) HistoryOption {
	return historyOption(func(r *thread.HistoryRequest) { r.Step = &step })
}

// WithValues returns the values at each checkpoint too.
func WithValues() HistoryOption {
	return historyOption(func(r *thread.HistoryRequest) { r.Values = true })
}

// UpdateOption shapes [Thread.Update].
type UpdateOption interface{ applyUpdate(*thread.UpdateRequest) }

// AsNode says as which node an update is made: what comes next is what follows that node. [End] finishes what was about
// to run, with its finished tasks' writes. Without it the node that ran last is taken.
func AsNode(node string) UpdateOption { return asNode(node) }

type asNode string

func (n asNode) applyUpdate(r *thread.UpdateRequest) {
	for _, step := range r.Updates {
		for i := range step {
			step[i].AsNode = string(n)
		}
	}
}

// StreamOption shapes [Thread.Stream]. Each [thread.StreamMode] is one: it asks for that mode.
type StreamOption interface{ ApplyStream(*thread.StreamRequest) }

type streamOption func(*thread.StreamRequest)

func (o streamOption) ApplyStream(r *thread.StreamRequest) { o(r) }

// StreamFrom goes on behind the part of that offset, in any process.
func StreamFrom(offset string) StreamOption {
	return streamOption(func(r *thread.StreamRequest) { r.From = offset })
}

// StreamSubgraphs streams subgraphs too; [thread.Part].Namespace tells them apart.
func StreamSubgraphs() StreamOption {
	return streamOption(func(r *thread.StreamRequest) { r.Subgraphs = true })
}
