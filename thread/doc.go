// Package thread holds what callers and runtimes say to each other about threads and jobs: requests, replies, views and
// errors. All of it is data. Package superstep and its Client take the requests and return the views; the command line prints
// the views as JSON.
//
//	errors.go    [Error] and what errors.Is tells apart: [ErrNotFound], [ErrBadInput], [ErrAnswerRefused] and others
//	id.go        ids of threads: [NewID], [CheckID]
//	status.go    [Status], where a thread stands
//	view.go      [View], what is known of a thread without its values
//	question.go  questions, approvals and answers
//	state.go     states, checkpoints and effects
//	request.go   what may be asked of a thread
//	list.go      lists of threads, and the inbox of open questions
//	stream.go    modes and parts of a stream
//	job.go       jobs as people see them
package thread
