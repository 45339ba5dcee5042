// Devserver is a Temporal server with its Web UI in one process, on one SQLite file
// or on PostgreSQL, set up for developing with Superstep.
//
//	go run ./devserver
//	devserver 127.0.0.1:7233   web UI http://127.0.0.1:8233   db superstep.db
//
// It creates what Superstep expects of a Temporal cluster: the namespace
// "default" with 30 days of retention, the search attributes SuperstepGraph,
// SuperstepStatus, SuperstepNodes, SuperstepQuestions, SuperstepParent,
// SuperstepApprovers, SuperstepDue and SuperstepRisk, and dynamic configuration
// under which one run takes steps in milliseconds rather than twenty a second
// (serverconfig.go gives the reason for each value). Its services call each other
// in the process, not over loopback (inprocess.go).
//
// # What is kept
//
// Whatever the server acknowledged is in the file, through a stop, a kill and a
// power cut: SQLite runs with a write-ahead log, which is on the disk before
// anything is acknowledged. Runs that are open when the devserver stops go on,
// timers included, when it starts again on the same file.
//
// Beside the file lies a directory, superstep.db.values, where the workers and
// commands of this machine keep values above 16 KiB: the namespace's data says
// where, and both belong together. The store of graphs lies in another one,
// superstep.db.store.
//
// # Live tokens
//
// A NATS server with JetStream within the process carries what nodes emit while
// they run from workers to readers: on loopback, port 8234, with its files in
// superstep.db.live or, without a database file, in memory. The namespace's data
// says where it is, and what it is named. Nothing there is needed again: the
// histories have it too, once a node has ended.
//
// # PostgreSQL
//
//	go run ./devserver --postgres postgres://me@localhost/superstep
//	SUPERSTEP_POSTGRES='postgres://me:secret@db.example/superstep?sslmode=verify-full' devserver
//
// The DSN, a URL or words as for psql, names the database of the histories; what
// lists show is in a second one, of that name and "_visibility". Both are created
// when the role may do so, laid out in one transaction each, and upgraded by the
// server's own migrations when an older server laid them out. The DSN is never
// printed. PostgreSQL must be 12 or later, and have 65 connections free; it is
// reached directly, since a pooler that lends connections by the transaction would
// lose the lock that keeps a second devserver away from the same databases.
//
// # Limits
//
// It is not for production. There is one process, on SQLite also one history shard
// and one database connection, so it neither scales out nor fails over; every
// caller is allowed everything, without TLS; and a database file that another
// version of the Temporal server laid out is refused, not migrated. Run a cluster
// where any of this matters.
//
// The command lives in a Go module of its own that imports nothing else of
// Superstep, so that users of the library never inherit go.temporal.io/server.
package main
