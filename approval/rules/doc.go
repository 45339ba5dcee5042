// Package rules reads who may approve what from YAML files: a [Book] is both the policy and the directory of an
// approval.Gate.
//
//	people:
//	  ana: {groups: [finance], permissions: [refund.write], limits: {amount: 500000}}
//	  bob: {groups: [finance]}
//	  rita: {roles: [support]}
//	groups:
//	  finance: {permissions: [refund.write], limits: {amount: 200000}}
//	roles:
//	  support: {permissions: [refund.write]}
//	rules:
//	  - deny: refunds of nothing
//	    tool: payments.refund
//	    when: params.amount <= 0
//	  - allow: large refunds
//	    tool: payments.refund
//	    when: params.amount > 100000
//	    need: 2
//	    valid_for: 4h
//	    separate: true
//	    limit: amount
//	    approvers: [group:finance]
//
//	control:
//	  - allow: operators
//	    op: [pause, unpause, drain, retry]
//	    by: [group:ops]
//	    permissions: [run.control]
//
// A person has the permissions of their groups and roles too. A limit of their own replaces those of groups and roles,
// of which the largest counts. Only groups can be asked, as group:NAME.
//
// The first rule that matches an action decides; when none does, it is not allowed. A rule matches by tool, graph and
// risk (one or a list; left out, any) and by when, a CEL expression (cel.dev) over
//
//	params                                             the parameters, as JSON reads
//	action.tool, .tool_version, .summary, .plan_version, .permissions, .risk, .undo, .quorum, .watch
//	action.proposed_by, .proposers                     who proposed these parameters, "" for nobody; all who proposed any
//	approver, requester                                .name, .groups, .permissions, .limits
//	votes                                              a list of .by, .key_id, .at
//	now                                                the time: now - votes[0].at < duration("2h")
//	phase ("answer", "use"), verdict ("approve", "reject", "edit"), thread, graph, node
//
// It is compiled when it is read, and stopped when it costs too much or its context is over. An expression that cannot be
// evaluated for an action, because a parameter is missing, say, decides too: not allowed.
//
// Rules under control are about what is done to runs: pause, unpause, cancel, update, fork, retry, drain, resume (to answer
// what asks for no approval, or go on from a breakpoint) and event. Where there is one, each of these takes a token, the
// first rule that matches by op, graph and when (over who, op, on, thread and graph) decides, and what none allows is
// refused. An allow rule says who may (by) and which permissions they must have now.
//
// An allow rule for an action then says how many must approve (need), how long an approval counts once it was given
// (valid_for: 24h; what the action says counts when it is less), that whoever asks for it, or has proposed other parameters
// for it, does not approve it (separate), which numbers in the parameters the approver's limits bound (limit: amount, or
// a.b for one within an object; its sign does not matter)
// and who may answer (approvers). A rejection does no harm, so only approvers is held against it.
package rules
