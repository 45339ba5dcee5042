// Command starter starts, follows and answers runs. It knows no graphs: the server's workers do.
package main

import "superstep.dev/cli"

func main() { cli.Main() }
