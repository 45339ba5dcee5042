// Command worker serves the graphs of the examples.
package main

import (
	"superstep.dev/cli"
	"superstep.dev/examples/refund"
)

func main() { cli.Main(refund.FromEnv()) }
