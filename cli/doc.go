// Package cli is Superstep's command line, made to be built into a program of yours together with your graphs:
//
//	func main() { cli.Main(refund.Graph(payments, 10_000)) }
//
// Such a program serves its graphs (worker), draws them (graph) and runs and answers them (run, resume, show, …). A
// program without graphs has every command except worker: the server's workers know the graphs.
//
// [Main] ends the process with one of the Exit codes; [Run] returns it, for tests.
package cli
