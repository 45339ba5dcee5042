// Package thread holds what callers and runtimes say to each other about threads and jobs: requests, replies, views and
// errors. All of it is data. Package superstep and its Client take the requests and return the views; the command line prints
// the views as JSON.
//
//	errors.go    [Error] and what errors.Is tells apart, such as [ErrNotFound] and [ErrBadInput]; ids of threads
//	view.go      [Status], where a thread stands, and [View], what is known of a thread without its values; states, checkpoints and their records, effects
//	question.go  questions, approvals and answers; lists of threads, and the inbox
//	request.go   what may be asked of a thread
//	budget.go    what a thread may spend, and has spent
//	erase.go     erasing a thread, and the proof
//	stream.go    modes and parts of a stream
//	job.go       jobs as people see them
package thread
