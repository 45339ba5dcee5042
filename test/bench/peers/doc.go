// Peers compares what users wait for Superstep with what they would wait for others doing the same work: programs written by
// hand on the same Temporal server, LangGraph with its own databases, and Temporal's plugin for LangGraph.
//
//	go run ./test/bench/peers -langgraph python3 -langgraphjs lgjs
//	go run ./test/bench/peers -run 'chain-20/(superstep|floor)' -rounds 3
//
// Absolute times say more about a machine than about a program. So all ways to do a workload take turns within one run, in
// an order that is drawn anew for each round, and what counts is the median of the ratios, round by round.
//
// # The files, in order of reading
//
//	options      the command line
//	workload     what is done
//	notice       what workers that may be killed say of nodes that start
//	graphs       the workloads as graphs
//	floor        the workloads written by hand, without a graph
//	database     transactions and bytes
//	meter        what it costs: remote calls, transactions, histories, processor time
//	serve        worker processes
//	way          one way to do a workload, and what it is compared with
//	superstep    how Superstep's users do it
//	byhand       how those do it who write workflows themselves
//	follow       how a user of the command line does it
//	crew         a worker is killed, and another one goes on
//	cluster      a Temporal server with workers, and the ways that use it
//	rounds       taking turns
//	table        medians and ratios, as a table and as JSON
//	figure       the same as a picture
//	langgraph    LangGraph in Python and in JavaScript, which have programs of their own: graphs.py, invoke.py, invoke.mjs
//	plugin       Temporal's plugin for LangGraph, whose worker is plugin.py
//	field        who takes part
//	main         the command
package main
