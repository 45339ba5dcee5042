// Package activities runs the tasks that the workflows hand out. Nodes serves a worker's nodes by one dynamic activity:
// it runs one execution of one task under the retry policy of its node, keeps the task's ledger in heartbeats, and
// reports every ending so that nothing it did is forgotten.
package activities
