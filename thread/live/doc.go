// Package live carries what nodes emit to the readers of streams while the nodes run: [Transport], and [Local] for one process. Package
// thread/live/nats has one for several processes.
package live
