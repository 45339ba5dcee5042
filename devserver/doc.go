// Devserver is a Temporal server with its Web UI in one process and one SQLite
// file, set up for developing with Superstep.
//
//	go run ./devserver
//	devserver 127.0.0.1:7233   web UI http://127.0.0.1:8233   db superstep.db
//
// It creates what Superstep expects of a Temporal cluster: the namespace
// "default" with 30 days of retention, the search attributes SuperstepGraph,
// SuperstepStatus, SuperstepNodes, SuperstepQuestions and SuperstepParent, and
// dynamic configuration under which one run takes steps in milliseconds rather
// than twenty a second (dynamicconfig.go gives the reason for each value).
//
// # What is kept
//
// Whatever the server acknowledged is in the file, through a stop, a kill and a
// power cut: SQLite runs with a write-ahead log and synchronous=FULL. Runs that
// are open when the devserver stops go on, timers included, when it starts again
// on the same file.
//
// # Limits
//
// It is not for production. There is one process, one history shard and one
// database connection, so it neither scales out nor fails over; every caller is
// allowed everything, without TLS; and a database file that another version of
// the Temporal server laid out is refused, not migrated. Run a cluster on
// PostgreSQL where any of this matters.
//
// The command lives in a Go module of its own that imports nothing else of
// Superstep, so that users of the library never inherit go.temporal.io/server.
package main
