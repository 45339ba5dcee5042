// Bench measures what Superstep costs and how fast it recovers, and holds the figures to bars.
//
//	go run ./test/bench
//	go run ./test/bench -run chain -rounds 3
//
// Absolute times say more about a machine than about a program, so where it can a row compares two things that ran
// alternately in the same process against the same server, and takes the median of the ratios. Nothing here is a test:
// a busy machine makes a figure worse, and the spread beside each median says how much to believe it.
package main
