// Package e2e_test tests everything together, as users run it: a real server, worker processes, the payments service
// of the refund example, the command line, and clients. Processes are killed and servers restarted; what has to come
// out is always the same.
//
// Two kinds of workers run here. One is built from the command worker and serves the refund example. The other is this
// test binary itself, which serves the graphs of graphs_test.go: small ones that a test steers from outside, by files
// in a directory that goes with a run's input.
package e2e_test
