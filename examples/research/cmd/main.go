// Command cmd serves the leader of the research example, and gives it jobs:
//
//	go run ./examples/research/cmd worker
package main

import (
	"superstep.dev"
	"superstep.dev/cli"
	"superstep.dev/examples/research"
)

func main() { cli.Program{Leaders: []*superstep.Leader{research.FromEnv()}}.Main() }
