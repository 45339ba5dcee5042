// Peers compares what users wait for Superstep with what they would wait for others doing the same work: programs written by
// hand on the same Temporal server, and LangGraph with its own databases.
//
//	go run ./test/bench/peers -langgraph python3
//	go run ./test/bench/peers -run 'chain-20/(superstep|floor)' -rounds 3
//
// Absolute times say more about a machine than about a program. So all ways to do a workload take turns within one run, in
// an order that is drawn anew for each round, and what counts is the median of the ratios, round by round.
//
// # The files, in order of reading
//
//	workload     what is done
//	notice       what workers that may be killed say of nodes that start
//	graphs       the workloads as graphs
//	floor        the workloads written by hand, without a graph
//	meter        what it costs: remote calls, transactions, histories, processor time
//	serve        worker processes
//	way          one way to do a workload, and what it is compared with
//	superstep    how Superstep's users do it
//	byhand       how those do it who write workflows themselves
//	crew         a worker is killed, and another one goes on
//	cluster      a Temporal server with workers, and the ways that use it
//	rounds       taking turns
//	table        medians and ratios, as a table and as JSON
//	figure       the same as a picture
//	options      the command line
//	field, langgraph   who takes part
//	main         the command
package main
