package taskrun

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
)

// A kept result is given to every run with an equal input, whoever it is for. So a node that has read something else, such as for whom
// the run is, keeps none.

// DependsOn notes that the node reads what its input does not have. With that its result is not kept.
func (t *TaskRun) DependsOn(what string) {
	for ; t != nil; t = t.outer {
		t.mu.Lock()
		if t.beyond == "" {
			t.beyond = what
		}
		t.mu.Unlock()
	}
}

// dependsOnContext notes that the node reads the run's context value, which a key of the node's own says nothing of.
func (t *TaskRun) dependsOnContext() {
	for ; t != nil; t = t.outer {
		if policy := t.node.Cache; policy != nil && policy.Key != nil {
			t.DependsOn("the run's context")
		}
	}
}

// readContext is the context of a node whose result may be kept. It notes what the node reads from it: the store, the caller's values, the
// server's words about the run.
type readContext struct {
	context.Context
	task *TaskRun
}

// Value implements context.Context.
func (c readContext) Value(key any) any {
	v := c.Context.Value(key)
	if v != nil && !isOurs(key, v) {
		c.task.DependsOn(fmt.Sprintf("the value of a %T in its context", key))
	}
	return v
}

// isOurs reports whether a value says nothing about the run: it is the machinery of contexts, of tasks, or of tracing.
func isOurs(key, value any) bool {
	if _, is := value.(context.Context); is || reflect.TypeOf(key).PkgPath() == "superstep.dev" {
		return true // context.WithCancel looks for the nearest one that can be cancelled
	}
	pkg := reflect.TypeOf(key).PkgPath()
	return slices.ContainsFunc(machinery, func(prefix string) bool { return pkg == prefix || strings.HasPrefix(pkg, prefix+"/") })
}

// machinery are the packages whose values in a context are not the caller's. The root package's are an entrypoint's, whose input is in the state.
var machinery = []string{"superstep.dev/graphadapter", "superstep.dev/activities", "superstep.dev/internal", "superstep.dev/graphtest",
	"go.opentelemetry.io/otel/trace"}

// notKept are the nodes whose results this process has said that it does not keep, and why.
var notKept sync.Map

// mayKeep reports whether the node's result depends on its input alone. The first time that a node has read something else the log says
// so: its policy has no effect.
func (t resultCache) mayKeep() bool {
	if !t.dependsOnInputAlone() {
		return false
	}
	t.mu.Lock()
	beyond := t.beyond
	t.mu.Unlock()
	if beyond == "" {
		return true
	}
	of := [3]string{t.info.Graph, t.info.Node, beyond}
	if _, before := notKept.LoadOrStore(of, true); !before {
		t.goesWithout(&graphadapter.CacheError{Graph: t.info.Graph, Node: t.info.Node, Op: "set",
			Err: errors.New("its result is not kept, as the node read " + beyond + ", which is not part of its input: put it into the state, " +
				"or leave out the cache policy")})
	}
	return false
}

// remembersOthers reports whether the task began with calls that an execution before has recorded: what that one read is not known here. A
// thread-wide call is the thread's.
func (t resultCache) remembersOthers() bool {
	for _, e := range t.journal.Entries() {
		if e.ThreadWide || e.Kind == ledger.KindTask && t.remembered[e.Key] {
			return true
		}
	}
	return false
}
