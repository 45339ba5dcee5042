// Package approval holds the pure model of approvals: what waits for one ([Action]), what people said ([Decision]), who
// may say it (a [Gate] of keys, policy and directory), and the record of all of it ([Chain]).
//
// An approval belongs to one call, not to a tool: it is bound to the hash of exactly the parameters that were shown. A
// [Gate] needs keys, files and a clock, so it is asked in activities and never in workflow code; everything else here is
// a pure function of its arguments.
package approval
