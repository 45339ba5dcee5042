// Program serve is a worker with the graphs that clients of the agent server's protocol are tested with. It is the command line
// too, so that one binary is worker and server:
//
//	go run ./test/serve worker
//	go run ./test/serve serve
package main

import "superstep.dev/cli"

func main() { cli.Main(graphs()...) }
