// Package testserver gives tests real servers. That of Temporal is a devserver process on a port of its own, started when a test
// first needs one and gone with the test process, however that ends.
//
// A test takes the shared server's [Address] and a task queue of its own from [Queue], so that tests do not disturb
// each other. One that stops or kills servers takes a private one from [Start].
//
// [StartS3] starts an S3 server, [StartPostgres] a PostgreSQL server and [StartNATS] a NATS server, which a test has for itself.
//
// Each test process starts a server of its own unless SUPERSTEP_TEST_ADDRESS names one. The command in the directory
// run starts one server for all test processes of a command:
//
//	go run ./test/run -- go test ./...
package testserver
