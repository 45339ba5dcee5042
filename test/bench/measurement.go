package main

import (
	"context"
	"io"
	"regexp"

	"superstep.dev/internal/processes"
)

// measurement produces one or more figures.
type measurement struct {
	name, about string
	take        func(context.Context, *bench) ([]figure, error)
}

// measurements are all there are, in the order in which they are taken.
var measurements = []measurement{
	{"engine/step", "one superstep of the pure engine: a node that loops on itself over three channels", engineStep},
	{"engine/sends", "10,000 Sends in one superstep of the pure engine, and what twice as many cost", engineSends},
	{"chain", "200 no-op nodes through Superstep against 200 no-op activities of a hand-written workflow", chain},
	{"durability/sqlite", "one run of 1,000 no-op supersteps in each mode against the bare transport, on SQLite", onSQLite},
	{"durability/postgres", "the same on a PostgreSQL server of its own, where PostgreSQL is installed", onPostgres},
	{"jobs", "1,000 subjobs of a job, 100 at once, against a hand-written parent with as many children", jobs},
	{"state", "200 nodes that read 64 KiB of state against a workflow that hands it on, on workers that have it and that do not", state},
	{"answer", "from an approval, signed and verified, to the start of the next node", answer},
	{"inbox", "the first page of what waits for people, with many runs that wait, on PostgreSQL where it is installed", onPostgresInbox},
	{"recovery", "from the kill of the worker that runs a node to the node's next start, on stock server settings", recovery},
}

// choose returns the measurements whose name matches; nil matches all.
func choose(run *regexp.Regexp) []measurement {
	var out []measurement
	for _, m := range measurements {
		if run == nil || run.MatchString(m.name) {
			out = append(out, m)
		}
	}
	return out
}

// bench is what measurements share.
type bench struct {
	options
	notes     io.Writer // for people; figures go to stdout
	processes *processes.Set
	dir       string // for databases; it goes with the bench
}
