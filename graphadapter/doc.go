// Package graphadapter is the untyped layer between the pure engine and whoever runs tasks: a [Graph] joins a pregel.Spec with
// the Go functions it names, and a [NodeRequest], a [Progress] and their like are what workflow and activities exchange.
// Package taskrun runs tasks, and whole threads in this process. The typed API of package superstep and the Temporal workflow
// are both built on it.
package graphadapter
