// Command cmd serves the leader of the research example:
//
//	go run ./examples/research/cmd
package main

import (
	"superstep.dev"
	"superstep.dev/cli"
	"superstep.dev/examples/research"
)

func main() { cli.Program{Leaders: []superstep.Leader{research.FromEnv()}}.Worker() }
