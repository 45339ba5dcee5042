// Command worker serves the graph of the refund example:
//
//	go run ./worker
package main

import (
	"superstep.dev/cli"
	"superstep.dev/examples/refund"
)

func main() { cli.Worker(refund.FromEnv()) }
