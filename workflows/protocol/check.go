package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/temporal"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/pregel"
)

// MaxContextBytes bounds a run's context: each task carries a copy of it.
const MaxContextBytes = 64 << 10

// inputShape says what a run is started with.
const inputShape = `a run takes one argument, a JSON object such as {"graph":"refund","input":{"order_id":"o-7"}}`

// graphInput is a GraphInput as encoding/json reads it by itself.
type graphInput GraphInput

// UnmarshalJSON reads what anybody may send. What is no GraphInput, or has fields that none has, is read as one with a
// [GraphInput.Problem]: the run says so, instead of failing its workflow task again and again. What one run hands on to the next
// may come of another version, and have fields that this one does not know.
func (in *GraphInput) UnmarshalJSON(text []byte) error {
	*in = GraphInput{}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	err := strict.Decode((*graphInput)(in))
	if err == nil {
		return nil
	}
	var handedOn GraphInput
	if json.Unmarshal(text, (*graphInput)(&handedOn)) == nil && handedOn.Carried != nil {
		*in = handedOn
		return nil
	}
	*in = GraphInput{Graph: handedOn.Graph, unreadable: err}
	return nil
}

// Problem says what is wrong with the input of a run, and what to send; "" for nothing. What only the graph can tell is left to
// [GraphInput.UnknownNode] and to the graph itself.
func (in *GraphInput) Problem() string {
	if in.unreadable != nil {
		return fmt.Sprintf("%s: %v", inputShape, in.unreadable)
	}
	nothing := in.Value == nil && in.Resume == nil && in.Control == nil && len(in.Edits) == 0 && in.Cancel == nil
	switch {
	case in.Graph == "":
		return inputShape + ": the graph's name is missing"
	case in.Carried != nil:
		return ""
	case len(in.ID) > MaxNameBytes:
		return fmt.Sprintf("the request's id has %d bytes, the most is %d", len(in.ID), MaxNameBytes)
	case len(in.ThreadOrigin) > MaxNameBytes:
		return fmt.Sprintf("the origin of the thread has %d bytes, the most is %d", len(in.ThreadOrigin), MaxNameBytes)
	case in.State == nil && nothing:
		return inputShape + ": there is no input to begin the thread with"
	case in.Value != nil && (in.Resume != nil || in.Control != nil):
		return "new input abandons what the thread was about to do: answers and commands do not go with it"
	}
	return in.Settings().Problem()
}

// Problem says what is wrong with the settings of a run, "" for nothing.
func (s *Settings) Problem() string {
	switch {
	case s.Options.RecursionLimit < 0:
		return fmt.Sprintf("the recursion limit %d is negative: 0 means the default", s.Options.RecursionLimit)
	case s.Options.Budget != nil && s.Options.Budget.Problem() != "":
		return s.Options.Budget.Problem()
	case s.MaxConcurrency < 0:
		return fmt.Sprintf("the most tasks at once, %d, is negative: 0 means no bound", s.MaxConcurrency)
	case s.StepTimeout < 0:
		return fmt.Sprintf("the step timeout of %d ms is negative: 0 means no bound", s.StepTimeout)
	case s.KeepOpen < -1:
		return fmt.Sprintf("a run is kept open for %d ms: -1 is until it is cancelled, 0 not at all", s.KeepOpen)
	case len(s.Requester) > approval.MaxName:
		return fmt.Sprintf("the requester's name has %d bytes, the most is %d", len(s.Requester), approval.MaxName)
	case len(s.Context) > MaxContextBytes:
		return fmt.Sprintf("the run's context has %d bytes, the most is %d: give a reference", len(s.Context), MaxContextBytes)
	}
	return DurabilityProblem(s.Durability)
}

// DurabilityProblem says what is wrong with a durability, "" for nothing.
func DurabilityProblem(d graphadapter.Durability) string {
	known := []graphadapter.Durability{"", graphadapter.DurabilitySync, graphadapter.DurabilityAsync, graphadapter.DurabilityExit}
	if slices.Contains(known, d) {
		return ""
	}
	return fmt.Sprintf("unknown durability %q: there are sync, async and exit", d)
}

// UnknownNode returns the first breakpoint of the settings that is at no node of the graph, "" for none.
func (s *Settings) UnknownNode(spec *pregel.Spec) string {
	for _, name := range slices.Concat(s.Options.InterruptBefore, s.Options.InterruptAfter) {
		known := func(n pregel.NodeSpec) bool { return n.Name == name && !n.Handler }
		if name != pregel.All && !slices.ContainsFunc(spec.Nodes, known) {
			return name
		}
	}
	return ""
}

// NodeNames are the nodes of a graph at which a run can be stopped, as text.
func NodeNames(spec *pregel.Spec) string {
	var names []string
	for _, n := range spec.Nodes {
		if !n.Handler {
			names = append(names, n.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Refuse builds the error of one of these types with which a message is turned away.
func Refuse(kind, format string, args ...any) error {
	return temporal.NewNonRetryableApplicationError(fmt.Sprintf(format, args...), kind, nil)
}

// WantsInput reports whether a request that has left out its input was refused for that: see InvokeRequest.Begun.
func WantsInput(err error) bool {
	var refused *temporal.ApplicationError
	return errors.As(err, &refused) && refused.Type() == ErrTypeInputWanted
}

// RefusedEarly reports whether an update was refused with what may have been true only before the run handled what its caller
// had seen. A worker that does not keep the run in memory answers a query with every event there is, those included that no
// workflow task has handled; and the task that handles them hands updates to their validators first. So who was refused this
// way sends the update once more, under the same id: a later task answers, and its word counts.
func RefusedEarly(err error) bool {
	var refused *temporal.ApplicationError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Type() {
	case ErrTypeBusy, ErrTypeUnknownQuestion, ErrTypeNotFailed:
		return true
	}
	return false
}
