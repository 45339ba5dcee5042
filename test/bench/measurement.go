package main

import (
	"context"
	"io"

	"superstep.dev/test/processes"
)

// measurement produces one or more figures.
type measurement struct {
	name, about string
	take        func(context.Context, *bench) ([]figure, error)
}

// bench is what measurements share.
type bench struct {
	options
	notes     io.Writer // for people; figures go to stdout
	processes *processes.Set
	dir       string // for databases; it goes with the bench
}
