// Command superstep is Superstep's command line: it starts, follows and answers runs of the graphs that the server's
// workers serve. A program that serves graphs of its own is built with package cli.
package main

import "superstep.dev/cli"

func main() { cli.Main() }
