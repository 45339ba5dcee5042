package superstep

import (
	"fmt"
	"slices"

	"superstep.dev/internal/runtime"
	"superstep.dev/thread"
)

// RequestOption shapes one request that changes a thread from outside. Who asks, and why, goes with every request, a run's and a
// cancellation's too; the other options say what they are for, and another request refuses them with [thread.ErrBadInput].
type RequestOption interface {
	RunOption
	applyRequest(*requestOptions)
}

// ReadOption shapes [Thread.State] and [Thread.History]. [AtCheckpoint] and [InSubgraph] go with [Thread.Update] as well.
type ReadOption interface {
	RequestOption
	applyRead(*requestOptions)
}

type requestOptions struct {
	runtime.Asker
	id      string
	tokens  map[string]string
	asNode  string
	mode    thread.CancelMode
	state   thread.StateRequest
	history thread.HistoryRequest
	// special are the options beyond who asks, by name: not every request takes them.
	special []string
}

// requestOption is one option; those that every request takes have no name.
type requestOption struct {
	name  string
	apply func(*requestOptions)
}

func (o requestOption) applyRequest(r *requestOptions) {
	o.apply(r)
	if o.name != "" {
		r.special = append(r.special, o.name)
	}
}

func (o requestOption) applyRead(r *requestOptions) { o.applyRequest(r) }

func (o requestOption) applyRun(r *runOptions) {
	q := &r.request
	of := requestOptions{Asker: runtime.Asker{By: q.By, Reason: q.Reason, Token: q.Token}}
	o.applyRequest(&of)
	q.By, q.Reason, q.Token = of.By, of.Reason, of.Token
	r.special = append(r.special, of.special...)
}

// misplaced refuses options that a request does not take.
func misplaced(graph, id, what string, special, takes []string) error {
	for _, name := range special {
		if !slices.Contains(takes, name) {
			return &thread.Error{Kind: thread.ErrBadInput, Graph: graph, Thread: id, Message: fmt.Sprintf("%s takes no %s", what, name),
				Do: "Leave the option out"}
		}
	}
	return nil
}

// AskedBy names who asks or answers, at most 200 bytes. Nobody checks the name; where rules want proof, [WithToken] is that. In a
// [Memory] without a gate an answer to an approval counts as theirs; a gate refuses one whose token is somebody else's
// (approval.CodeWrongPerson).
func AskedBy(name string) RequestOption {
	return requestOption{"", func(r *requestOptions) { r.By = name }}
}

// WithToken proves who asks or answers: a token for this question or request, signed by somebody whose key the gate knows.
func WithToken(token string) RequestOption {
	return requestOption{"", func(r *requestOptions) { r.Token = token }}
}

// WithReason says why, for the record: at most 1,000 bytes.
func WithReason(reason string) RequestOption {
	return requestOption{"", func(r *requestOptions) { r.Reason = reason }}
}

// WithTokens proves who answers several approvals at once, by the questions' ids as they were given. It is for
// [Thread.AnswerByID] and [Thread.ResumeByID].
func WithTokens(tokens map[string]string) RequestOption {
	return requestOption{"WithTokens", func(r *requestOptions) { r.tokens = tokens }}
}

// WithRequestID makes an answer or an event idempotent: the thread takes the same id once, of at most 200 bytes, and says so
// of the next, also when its run is over. Example: the id that a webhook is delivered under.
func WithRequestID(id string) RequestOption {
	return requestOption{"WithRequestID", func(r *requestOptions) { r.id = id }}
}

// WithMode says what a cancelled run leaves behind; the default is [thread.CancelKeep]. It is for [Thread.Cancel].
func WithMode(m thread.CancelMode) RequestOption {
	return requestOption{"WithMode", func(r *requestOptions) { r.mode = m }}
}

// AsNode says as which node an update is made: what comes next is what follows that node. [End] finishes what was about
// to run, with its finished tasks' writes. Without it the node that ran last is taken. It is for [Thread.Update].
func AsNode(node string) RequestOption {
	return requestOption{"AsNode", func(r *requestOptions) { r.asNode = node }}
}

// AtCheckpoint names a checkpoint of the thread's history. Reading the state there shows what was known then; updating it
// begins a branch.
func AtCheckpoint(id string) ReadOption {
	return requestOption{"AtCheckpoint", func(r *requestOptions) { r.state.Checkpoint = id }}
}

// InSubgraph addresses the subgraph that is under way in the task of the last of these nodes; the nodes lead to it,
// outermost first.
func InSubgraph(nodes ...string) ReadOption {
	return requestOption{"InSubgraph", func(r *requestOptions) { r.state.Subgraph, r.history.Subgraph = nodes, nodes }}
}

// WithSubgraphs shows the states of subgraphs under way in [thread.TaskView].State. It is for [Thread.State].
func WithSubgraphs() ReadOption {
	return requestOption{"WithSubgraphs", func(r *requestOptions) { r.state.Subgraphs = true }}
}

// Limit bounds the checkpoints that [Thread.History] returns: the newest ones.
func Limit(n int) ReadOption {
	return requestOption{"Limit", func(r *requestOptions) { r.history.Limit = n }}
}

// Before leaves that checkpoint and everything newer out of a [Thread.History].
func Before(checkpoint string) ReadOption {
	return requestOption{"Before", func(r *requestOptions) { r.history.Before = checkpoint }}
}

// FromSource selects the checkpoints of a [Thread.History] that were made by "input", "loop", "update" or "fork".
func FromSource(source string) ReadOption {
	return requestOption{"FromSource", func(r *requestOptions) { r.history.Source = source }}
}

// AtStep selects the checkpoints of a superstep in a [Thread.History]; -1 is that of the first input.
func AtStep(step int) ReadOption {
	return requestOption{"AtStep", func(r *requestOptions) { r.history.Step = &step }}
}

// WithValues returns the values at each checkpoint of a [Thread.History] too.
func WithValues() ReadOption {
	return requestOption{"WithValues", func(r *requestOptions) { r.history.Values = true }}
}

// StreamOption shapes [Thread.Stream]. Each [thread.StreamMode] is one: it asks for that mode.
type StreamOption interface{ ApplyStream(*thread.StreamRequest) }

type streamOption func(*thread.StreamRequest)

// ApplyStream implements [StreamOption].
func (o streamOption) ApplyStream(r *thread.StreamRequest) { o(r) }

// StreamFrom goes on behind the part of that offset, in any process.
func StreamFrom(offset string) StreamOption {
	return streamOption(func(r *thread.StreamRequest) { r.From = offset })
}

// StreamSubgraphs streams subgraphs too; [thread.Part].Namespace tells them apart.
func StreamSubgraphs() StreamOption {
	return streamOption(func(r *thread.StreamRequest) { r.Subgraphs = true })
}
