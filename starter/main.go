// Command starter starts a run, follows it until it asks or ends, and answers it. It knows no graphs: the server's workers do.
//
//	go run ./starter refund --thread r-7 --input '{"order_id":"o-7"}'
//	go run ./starter --thread r-7 --answer true
package main

import "superstep.dev/cli"

func main() { cli.Starter() }
