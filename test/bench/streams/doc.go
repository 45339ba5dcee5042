// Streams measures what readers of superstep serve wait for, what open streams cost, and what its requests take beside the server that
// the agent server's protocol comes from.
//
//	go run ./test/bench/streams
//	go run ./test/bench/streams -run 'emission|slow'
//	go run ./test/bench/streams -run reference -reference FOLDER/bin/langgraph
//
// Worker, server and devserver are processes of their own, and this one reads. What is compared takes turns within one run.
//
// # The files, in order of reading
//
//	options    the command line
//	clock      a graph whose node emits the time
//	bare       the same time over NATS without anything else
//	stage      the processes
//	reading    requests, and streams as they come
//	table      figures beside their bars
//	emission   from a node's emission to its reader, with and without one who does not read
//	crowd      many open streams
//	chats      many chats at once
//	idle       threads that rest
//	reference  the server that the protocol comes from, whose graph is refund.py
//	main       the command
package main
