// Package attributes says which of the search attributes of runs a namespace has: clients choose and workers show by them.
package attributes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"superstep.dev/workflows/protocol"
)

// Read asks the server what a namespace has. A server that does not say is served without: the error is of one that gives no answer, or knows
// no such namespace.
//
// Where visibility is in SQL, the description of the namespace names them all. ListSearchAttributes is asked of no such server: one of
// 1.32 opens a connection to itself for each call, and keeps it for as long as it runs.
func Read(ctx context.Context, server workflowservice.WorkflowServiceClient, operator operatorservice.OperatorServiceClient,
	namespace string) (protocol.Found, error) {
	described, err := server.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: namespace})
	if err != nil && !isMute(err) {
		return protocol.Found{}, err
	}
	names := map[string]bool{}
	for _, name := range described.GetConfig().GetCustomSearchAttributeAliases() {
		names[name] = true
	}
	if !found(names).Inbox && !isSQL(ctx, server) {
		listed, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
		if err != nil && !isMute(err) {
			return protocol.Found{}, err
		}
		for name := range listed.GetCustomAttributes() {
			names[name] = true
		}
	}
	return found(names), nil
}

// isMute says of an error that the server does not tell this caller, now or later.
func isMute(err error) bool {
	var denied *serviceerror.PermissionDenied
	var missing *serviceerror.Unimplemented
	return errors.As(err, &denied) || errors.As(err, &missing)
}

// isSQL says whether the server keeps visibility in SQL. A server that does not say is taken for one that does not.
func isSQL(ctx context.Context, server workflowservice.WorkflowServiceClient) bool {
	info, err := server.GetClusterInfo(ctx, &workflowservice.GetClusterInfoRequest{})
	if err != nil {
		return false
	}
	return slices.ContainsFunc([]string{"sqlite", "postgres", "mysql"}, func(name string) bool {
		return strings.HasPrefix(info.GetVisibilityStore(), name)
	})
}

// found is what a namespace with those search attributes has: some of a group are as good as none.
func found(names map[string]bool) protocol.Found {
	all := func(group ...string) bool {
		return !slices.ContainsFunc(group, func(name string) bool { return !names[name] })
	}
	lists := all(protocol.AttributeGraph, protocol.AttributeStatus, protocol.AttributeNodes, protocol.AttributeQuestions,
		protocol.AttributeParent)
	return protocol.Found{Lists: lists,
		Inbox: lists && all(protocol.AttributeApprovers, protocol.AttributeDue, protocol.AttributeRisk)}
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
	server   workflowservice.WorkflowServiceClient
	operator operatorservice.OperatorServiceClient
	mu       sync.Mutex
	known    map[string]*answer
}

type answer struct {
	found protocol.Found
	at    time.Time     // zero before the first answer
	err   error         // of the newest question, when nothing is known
	asked chan struct{} // closed at the end of the question that is under way; nil when none is
}

// NewWatch returns a watch that asks when it is asked.
func NewWatch(server workflowservice.WorkflowServiceClient, operator operatorservice.OperatorServiceClient) *Watch {
	return &Watch{server: server, operator: operator, known: map[string]*answer{}}
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
	found, err := Read(ctx, w.server, w.operator, namespace)
	w.mu.Lock()
	defer w.mu.Unlock()
	if a.err = err; err == nil {
		a.found, a.at = found, time.Now()
	}
	close(a.asked)
	a.asked = nil
}
