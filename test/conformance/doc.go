// Command conformance runs recorded LangGraph traces against this project's engines. What a case is and how one is written stands
// in FORMAT.md beside the recordings.
//
//	main.go, load.go, report.go, trial.go, run.go       the command: cases read, run and told of
//	case.go, build.go, functions.go, script.go          a case: its graphs, and the scripts of their nodes
//	expr.go, ops.go, action.go, input.go, part.go       expressions, operations and actions of the format
//	engine*.go, server.go, host.go, exit.go             what is tested: in memory, on a Temporal server, and in exit mode
//	record.go, state.go, normalise.go, failure.go       what an engine answers, in the form of the recordings
//	deviation.go, situation.go, counters.go             where results differ on purpose, and what scripts report meanwhile
package main
