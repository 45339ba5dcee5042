// Package nats carries what nodes emit while they run between processes: [Open] returns a live.Transport over a NATS server with
// JetStream, for WorkerConfig.Transport and ClientConfig.Transport.
//
// # What is where
//
// All emissions go into one stream of the server, SUPERSTEP_LIVE, which the first process makes that finds none: on disk, or in memory
// where the address says so. Each task has a subject of its own below that of its thread, made of hashes: names of threads and nodes do
// not show. What is published is encoded by Config.DataConverter, so with keys the server sees ciphertext. A task that ends is
// replaced in the stream by a mark of some 100 bytes, which goes after a minute. The server is nats-server 2.11 or later.
//
// # Bounds
//
// The stream keeps 256 MiB and one hour, and 10,000 emissions of one task; the oldest go first. An emission has 1 MiB at most. A
// process keeps what its own tasks under way have emitted too, 16 MiB of one thread and 64 MiB in all, to publish it again after the server
// was away; above that it forgets the task that has been silent for longest. Who makes the stream before, with other bounds or replicas, has it used
// as it is: it has to allow rollups and TTLs of messages, and a consumer for each thread that is followed, in each process.
//
// # When the server is away
//
// Nobody waits. Nodes go on, and what they emit comes with their results. The transport says so once in the log, tries on, and says once
// that it is there again: then it publishes what tasks under way have emitted since their beginning. Readers get each emission once.
package nats
