// Soak runs one long thread in sync mode while its workers are killed, and checks that nothing was lost or came twice.
//
//	go run ./test/soak                                     # 20,000 supersteps, 200 questions, a worker killed every 30 s
//	go run ./test/soak -supersteps 2000 -questions 20 -every 10s
//
// The thread asks again and again; six people answer by update and by signal in turn, all of them every question, some
// twice. It gets so long that it is continued as a new run many times. Workers are killed with SIGKILL: one of them
// after each interval, and others right before or right after they continue the thread as a new run.
//
// It prints how far it is and at last a table, and fails when the thread ended otherwise than in its last superstep, an
// answer was lost, came twice or to another question, an answer counted that the thread had refused, or the history or
// the stream of the thread misses a superstep or has one twice.
package main
