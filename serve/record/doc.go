// Package record keeps what the agent server's protocol has of a thread and a thread itself has not: that it was created before
// anything ran, its metadata, the list of its runs, and those that wait their turn. Each thread has one Temporal workflow for that,
// its record, on a task queue of its own that the server processes poll. States, checkpoints and questions are the thread's alone.
//
// A record begins the thread's runs, one after the other, each once: the id of a run is the id of the request that begins it. So a
// server process that is killed loses no run, and two of them agree.
//
// A server of Temporal takes few updates of one workflow at a time, and holds one query of it. So a process asks a record once for all
// who follow it, shares reads, and queues changes; and what a record answers stays small, as it stays in its history.
package record
