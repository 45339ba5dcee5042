// Chaos kills the workers of the refund example, again and again, and counts what that did.
//
//	go run ./test/chaos            # 1,000 kills, 100 frozen attempts of each kind and 200 late calls, 20 minutes
//	go run ./test/chaos -n 20 -freezes 5 -late 10
//	go run ./test/chaos -n 0 -freezes 0 -late 200 -late-as deaf    # how often a call writes twice that is written wrongly
//
// Worker processes are killed with SIGKILL: half of them at random, half at a chosen moment, right before or right after
// a record, a result or a decision goes to the Temporal server, or a call to the payments service. Meanwhile
// payments is slow, fails, and commits what nobody waits for any more; people answer questions, some twice. Then workers
// are frozen in the middle of a call until another one has done the work, and thawed; and so are some whose calls, to a
// target that can only be asked, prepare before they send.
//
// It prints a table and fails when a run was lost, money moved twice or not at all, a thread ended in another state
// than in an undisturbed run, a thawed attempt's record was taken, or the workers' figures of recovery are not what the calls that they
// made to the server tell. A worker tells each count as it makes it. Where a kill came between a call and its count both are
// possible, and the program says how many there were of these.
package main
