// Package cli is Superstep's command line, made to be built into programs of yours together with your graphs. A worker is
//
//	func main() { cli.Worker(refund.Graph(payments, 10_000)) }
//
// There are three programs:
//
//   - [Worker] serves graphs, with flags and no sub-command: go run ./worker.
//   - [Starter] starts a run, follows it and answers it: go run ./starter.
//   - [Main] has every command: run, resume, approve, show, history, fork, job …, and worker when the program has graphs. Without
//     graphs it is cmd/superstep, which operates the runs of any graph: the server's workers know the graphs.
//
// [Program] is a program with more than graphs: leaders, or a codec for all that is stored. Main, Worker and Starter end the
// process with one of the Exit codes; [Program.Run] returns it, for tests.
//
// # Where things are
//
//	app.go, root.go         the programs, Ctrl-C, and one command line on its way; the trees of commands and their help
//	command.go, checks.go   how a command is described; what arguments and flags may be; commands.yaml has what help says
//	connection.go           which server: flags, environment, configuration file
//	service.go              what commands ask of a server, and the way there
//	places.go               where large values lie, and live tokens go
//	token.go, key.go        who does something, and the proof of it
//	input.go                JSON from flags, files and standard input
//	exit.go                 errors, how they are told, exit codes
//	complete.go             what Tab suggests
//
// Each group of commands is a type over one app. Whatever asks a server goes through call, which shows the reply whole to a
// program and as text to a person:
//
//	runs        run.go, follow.go: start, fork, follow; what to type next
//	answers     question.go, resume.go, approve.go, token.go, list.go (inbox)
//	control     control.go (retry, drain, pause, cancel), send.go (event, update), erase.go (erase, prune)
//	looks       list.go, show.go (show, effects, graph), past.go (state, history), audit.go, stream.go
//	schedules   schedule.go
//	jobs        job.go, job_show.go, job_follow.go, job_plan.go, job_steer.go
//	memories    store.go
//	sealing     keys.go
//	operating   worker.go, gate.go, operations.go, health.go, key.go, serve.go
//	starting    starter.go
//
// Package [superstep.dev/cli/screen] has what is shown, without commands: tables, pictures, colours, times, secrets.
package cli
