// Command worker serves the graph of the chat example:
//
//	go run ./examples/chat/worker
package main

import (
	"superstep.dev/cli"
	"superstep.dev/examples/chat"
)

func main() { cli.Worker(chat.FromEnv()) }
