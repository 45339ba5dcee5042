// Package approval is the pure model of approvals: what waits for one ([Action]), what people said ([Reply], [Vote]), what
// follows ([Decision]), who may say it (a [Gate] of keys, policy and directory), and the record of all of it ([Chain]).
//
// An approval belongs to one call, not to a tool: it is bound to the hash of exactly the parameters that were shown.
//
//	action, err := action.Normal()                  // what is asked, with the hash of its parameters
//	ruling, err := gate.Reply(ctx, check)           // does this person's signed reply count?
//	decision, done := action.Decide(id, votes, ruling.Need, nil)
//	ruling, err = gate.Use(ctx, use)                // asked again right before the action is done
//
// # What the package promises
//
//   - A gate is closed: keys, policy or directory that cannot be asked refuse, and never allow.
//   - A token is good for one reply, of one person, to one question, about one action with these parameters.
//   - What was approved and what is done are compared by digest right before it is done; time, keys, permissions and policy
//     are asked again then.
//   - Secrets named in an action are in no view, audit or error.
//   - An audit is a chain of hashes: an entry that was changed, moved or left out shows.
//
// A Gate needs keys, files and a clock, so it is asked in activities and never in workflow code; everything else here is
// a pure function of its arguments. Package token has keys and signed tokens, rules a policy and a directory in YAML, and
// webhook tells people outside.
//
// # The files, in order of reading
//
//	params       canonical JSON, hashes, what parameters may be
//	action       what waits for approval, and its digest; votes, quorum, silence, validity
//	check        bounds of an action
//	reply        what one person answers, and the parameters that an edit proposes
//	diff         what people see: masked parameters and differences
//	gate         Gate, Policy, Directory, Keys: the questions and the ruling
//	gate_people  whose a key is, who is asked, permissions, the policy's word
//	gate_reply   does a reply count, and may a decision be acted upon now?
//	control      what is done to a run under rules
//	audit        entries and their chain
//	export       an audit as a file, and its signed end
//	notice       what people outside are told
package approval
