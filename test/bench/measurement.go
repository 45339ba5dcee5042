package main

import (
	"context"

	"superstep.dev/test/bench/testbed"
)

// measurement produces one or more figures.
type measurement struct {
	name, about string
	take        func(context.Context, *bench) ([]figure, error)
}

// bench is what measurements share.
type bench struct {
	options
	*testbed.Bed
}
