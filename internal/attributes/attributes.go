// Package attributes says which of the search attributes of runs a namespace has: clients choose and workers show by them.
package attributes

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"

	"superstep.dev/workflows/protocol"
)

// Read asks the server what a namespace has. A server that does not say is served without.
func Read(ctx context.Context, server operatorservice.OperatorServiceClient, namespace string) (protocol.Found, error) {
	known, err := server.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	var denied *serviceerror.PermissionDenied
	var missing *serviceerror.Unimplemented
	if err != nil && !errors.As(err, &denied) && !errors.As(err, &missing) {
		return protocol.Found{}, err
	}
	all := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			return known.GetCustomAttributes()[name] == enumspb.INDEXED_VALUE_TYPE_UNSPECIFIED
		})
	}
	found := protocol.Found{Lists: all(protocol.AttributeGraph, protocol.AttributeStatus, protocol.AttributeNodes,
		protocol.AttributeQuestions, protocol.AttributeParent)}
	found.Inbox = found.Lists && all(protocol.AttributeApprovers, protocol.AttributeDue, protocol.AttributeRisk)
	return found, nil
}

// How a worker asks: a workflow task waits for the answer no longer than answerWithin, an answer that is on its way is read all
// the same, and while something is missing it is asked for again when the last answer is older than staleAfter.
const (
	answerWithin = 700 * time.Millisecond
	readWithin   = 10 * time.Second
	staleAfter   = time.Second
)

// errNotYet says that the server has not answered so far.
var errNotYet = errors.New("the server has not said so yet")

// Watch is what a worker knows of the namespaces of its runs. It is safe for concurrent use.
type Watch struct {
	server operatorservice.OperatorServiceClient
	mu     sync.Mutex
	known  map[string]*answer
}

type answer struct {
	found protocol.Found
	at    time.Time     // zero before the first answer
	err   error         // of the newest question, when nothing is known
	asked chan struct{} // closed at the end of the question that is under way; nil when none is
}

// NewWatch returns a watch that asks when it is asked.
func NewWatch(server operatorservice.OperatorServiceClient) *Watch {
	return &Watch{server: server, known: map[string]*answer{}}
}

// Found is what a namespace has. An error says that nobody knows: once the server has answered, what it said last counts until
// there is something newer.
func (w *Watch) Found(namespace string) (protocol.Found, error) {
	w.mu.Lock()
	a := w.known[namespace]
	if a == nil {
		a = &answer{}
		w.known[namespace] = a
	}
	if !a.at.IsZero() && (a.found.Inbox || time.Since(a.at) < staleAfter) {
		defer w.mu.Unlock()
		return a.found, nil
	}
	if a.asked == nil {
		a.asked = make(chan struct{})
		go w.ask(namespace, a)
	}
	asked := a.asked
	w.mu.Unlock()
	select {
	case <-asked:
	case <-time.After(answerWithin):
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !a.at.IsZero():
		return a.found, nil
	case a.err != nil:
		return a.found, a.err
	}
	return a.found, errNotYet
}

func (w *Watch) ask(namespace string, a *answer) {
	ctx, cancel := context.WithTimeout(context.Background(), readWithin)
	defer cancel()
	found, err := Read(ctx, w.server, namespace)
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.err = err; err == nil {
		a.found, a.at = found, time.Now()
	}
	close(a.asked)
	a.asked = nil
}
