// Command superstep is Superstep's command line for those who operate runs of any graph: it starts, looks at, answers, changes
// and steers what the server's workers serve.
//
//	go install superstep.dev/cmd/superstep@latest
//
// A program that serves graphs of its own is built with package cli.
package main

import "superstep.dev/cli"

func main() { cli.Main() }
