// Package assistant keeps the assistants that callers make: a graph with a name, a configuration, a context and metadata, and all
// versions of that. Each is a Temporal workflow that does nothing but remember, on the task queue of the servers, so that any server
// reads what another one has just written. The assistants that graphs have of themselves are kept nowhere until somebody changes one.
package assistant
