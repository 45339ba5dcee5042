// Package testbed has what both benches run on: a devserver on SQLite or PostgreSQL, the processor time of processes, and
// samples, of which ratios are taken round by round.
package testbed
