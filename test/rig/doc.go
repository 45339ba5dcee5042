// Package rig has what tests of the public API share: a server with a worker that can be stopped, graphs, threads, streams
// and a bank that counts what it is asked. Tests import it, and nothing else does.
package rig
