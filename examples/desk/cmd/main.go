// Command cmd serves the graph and the leader to which examples/wire talks:
//
//	go run ./examples/desk/cmd
package main

import (
	"fmt"
	"os"

	"superstep.dev"
	"superstep.dev/cli"
	"superstep.dev/examples/desk"
)

func main() {
	office, err := desk.Office("office")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	cli.Program{Graphs: []superstep.Runnable{desk.Graph("desk")}, Leaders: []superstep.Leader{office}}.Worker()
}
