package taskrun

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"superstep.dev/graphadapter/pregel"
)

// A kept result is given to every run with an equal input, whoever it is for. So a node that has read something else, such as for whom
// the run is, keeps none.

// DependsOn notes that the node which ctx is of reads what its input does not have. With that its result is not kept.
func DependsOn(ctx context.Context, what string) {
	if t, ok := TaskFrom(ctx); ok {
		noteRead(t, what)
	}
}

func noteRead(t *TaskRun, what string) {
	for ; t != nil; t = t.outer {
		t.mu.Lock()
		if t.beyond == "" {
			t.beyond = what
		}
		t.mu.Unlock()
	}
}

// RunContext returns the context value of the run, nil for none: the same in every node, branch, effect and error
// handler, also in graphs that a node calls. It must not be changed. A node whose cache policy has a key of its own keeps no result then, as
// that key says nothing of the value.
func (t *TaskRun) RunContext() pregel.Value {
	for of := t; of != nil; of = of.outer {
		if policy := of.node.Cache; policy != nil && policy.Key != nil {
			noteRead(of, "the run's context")
		}
	}
	return t.env.Context
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
		noteRead(c.task, fmt.Sprintf("the value of a %T in its context", key))
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
