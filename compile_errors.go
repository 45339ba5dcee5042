package superstep

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
)

// CompileError is one mistake in a graph, found by [StateGraph.Compile].
type CompileError struct {
	// Graph and Node name where it is; Node is "" when it concerns the graph.
	Graph, Node string
	// Call is the place of the call that made it, as "directory/file.go:line".
	Call string
	// Message says what is wrong and, where it is known, what to do.
	Message string
}

// Error implements error in one line.
func (e *CompileError) Error() string {
	out := place(e.Graph, e.Node) + e.Message
	if e.Graph == "" {
		out = `graph "": ` + out
	}
	if e.Call != "" {
		out += fmt.Sprintf(" (%s)", e.Call)
	}
	return out
}

// calledAt returns the place that called the exported function that calls it. The path is cut to the file and its
// directory: enough to find it, and the same on every machine.
func calledAt() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return ""
	}
	file = filepath.ToSlash(file)
	return fmt.Sprintf("%s:%d", path.Join(path.Base(path.Dir(file)), path.Base(file)), line)
}
