package life

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"superstep.dev/approval"
	"superstep.dev/graphadapter"
	"superstep.dev/graphadapter/ledger"
	"superstep.dev/graphadapter/pregel"
	"superstep.dev/graphadapter/taskrun"
)

// Actor is who asked for something.
type Actor struct {
	// Claimed is who they say to be; it is not kept where a gate has proven who they are.
	Claimed string `json:"claimed,omitempty"`
	// Ruling is a gate's, zero where the rules do not ask for proof.
	Ruling approval.Ruling `json:"ruling,omitzero"`
}

func (a Actor) did(kind approval.Kind, reason string) approval.Entry {
	e := approval.Entry{Kind: kind, Who: a.Ruling.By, Token: a.Ruling.Token, KeyID: a.Ruling.KeyID, Policy: a.Ruling.Policy, Reason: reason}
	if e.Who == "" {
		e.Claimed = a.Claimed
	}
	return e
}

// Name is who it was, as far as anybody knows.
func (a Actor) Name() string {
	if a.Ruling.By != "" {
		return a.Ruling.By
	}
	return a.Claimed
}

// EntryDenied: the rules for control refused what was asked for.
func EntryDenied(op approval.Op, a Actor) approval.Entry {
	e := a.did(approval.KindDenied, a.Ruling.Reason)
	e.Op, e.Code = op, a.Ruling.Code
	return e
}

// entryCancelled: the run ends in that way.
func entryCancelled(a Actor, mode, reason string) approval.Entry {
	e := a.did(approval.KindCancelled, reason)
	e.Mode = mode
	return e
}

// EntryForked: the thread goes on from that checkpoint, of the thread from, or "" for its own.
func EntryForked(a Actor, from, checkpoint, reason string) approval.Entry {
	e := a.did(approval.KindForked, reason)
	e.From, e.Checkpoint = from, checkpoint
	return e
}

// entryEvent: the run was sent an event; name is the event's name, and nodes are the nodes that waited for the event.
func entryEvent(a Actor, name string, nodes []string) approval.Entry {
	e := a.did(approval.KindEvent, "")
	e.Event, e.Node = name, strings.Join(nodes, ", ")
	return e
}

// EntryUpdated: the state was written from outside, which made that checkpoint. The entry names the nodes in whose name that
// was, and the channels, and not what was written.
func EntryUpdated(a Actor, updates [][]graphadapter.StateUpdate, checkpoint, reason string) approval.Entry {
	e := a.did(approval.KindUpdated, reason)
	var nodes, channels []string
	for _, step := range updates {
		for _, u := range step {
			nodes = add(nodes, u.AsNode)
			for _, w := range u.Values {
				channels = add(channels, w.Channel)
			}
			if u.Input != nil {
				channels = add(channels, "(input)")
			}
		}
	}
	e.Checkpoint, e.Node = checkpoint, strings.Join(nodes, ", ")
	if len(channels) > 0 {
		e.Reason = join("wrote "+strings.Join(channels, ", "), reason)
	}
	return e
}

// Beginning is what a thread goes on with.
type Beginning struct {
	// Failed says that its run failed, or was ended, before.
	Failed bool
	// Checkpoint is the earlier one from which it goes on, "" for its newest; From is the thread that has it, "" for its own.
	Checkpoint, From string
	Input            pregel.Input
	// Answered are the questions that the input answers.
	Answered []string
	// Budget says that a thread that is there is given a budget.
	Budget bool
	Reason string
}

// Begins says what it is a recovery of that a thread goes on: a fork, answers and commands that come with the input, or,
// when nothing comes with it, a retry. A run that just begins is none of it.
func Begins(a Actor, b Beginning) []approval.Entry {
	var entries []approval.Entry
	if b.Checkpoint != "" {
		entries = append(entries, EntryForked(a, b.From, b.Checkpoint, b.Reason))
	}
	e, given := b.invoked(a)
	if given {
		entries = append(entries, e)
	}
	told := len(b.Answered) > 0 || given && b.Input.Control != nil
	if b.Failed && !told && b.Checkpoint == "" && b.Input.Value == nil {
		entries = append(entries, a.did(approval.KindRetried, b.Reason))
	}
	return entries
}

// Ops are what a beginning does to a thread, for those who may have to prove that they may: none for new input alone. A budget
// for a thread that is there is as the answer to its question for more. goesOn says that the thread's run stands still, so that a beginning with nothing lets it go on.
func (b Beginning) Ops(goesOn bool) []approval.Control {
	var ops []approval.Control
	if b.Checkpoint != "" {
		ops = append(ops, approval.Control{Op: approval.OpFork, On: b.Checkpoint})
	}
	if b.Input.Control != nil {
		ops = append(ops, approval.Control{Op: approval.OpUpdate})
	}
	if len(b.Answered) > 0 {
		ops = append(ops, approval.Control{Op: approval.OpResume})
	}
	switch {
	case len(ops) > 0 || b.Input.Value != nil && !b.Budget:
	case b.Failed && b.Input.Value == nil:
		ops = append(ops, approval.Control{Op: approval.OpRetry})
	case goesOn || b.Budget:
		ops = append(ops, approval.Control{Op: approval.OpResume})
	}
	return ops
}

// invoked: a run was given answers, a budget, writes or targets with its input; false when it was given none of them.
func (b Beginning) invoked(a Actor) (approval.Entry, bool) {
	var parts []string
	if len(b.Answered) > 0 {
		parts = append(parts, "answered "+strings.Join(b.Answered, ", "))
	}
	if b.Budget {
		parts = append(parts, "gave a budget")
	}
	if c := b.Input.Control; c != nil {
		var channels, targets []string
		for _, w := range c.Update {
			channels = add(channels, w.Channel)
		}
		for _, t := range c.Goto {
			targets = add(targets, t.Node)
		}
		if len(channels) > 0 {
			parts = append(parts, "wrote "+strings.Join(channels, ", "))
		}
		if len(targets) > 0 {
			parts = append(parts, "went to "+strings.Join(targets, ", "))
		}
	}
	return a.did(approval.KindInvoked, strings.Join(parts, "; ")), len(parts) > 0
}

func add(names []string, name string) []string {
	if name == "" || slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

func join(first, second string) string {
	if second == "" {
		return first
	}
	return first + ": " + second
}

// EntryAnswered: a person answered a question that asks for no approval. What was answered is noted only where it is a ruling
// about something unclear: a write, or a task whose workers were lost.
func EntryAnswered(a Actor, q pregel.Question, value pregel.Value) approval.Entry {
	e := a.did(approval.KindAnswered, "")
	e.Question = q.ID
	if !taskrun.IsDoubt(q) && !taskrun.IsUndo(q) {
		return e
	}
	e.Kind = approval.KindRuled
	e.Verdict = approval.Verdict(ruling(value))
	var about taskrun.Reconcile
	if json.Unmarshal(q.Value, &about) == nil {
		e.Effect, e.EffectKey, e.Reason = about.Effect, about.Key, about.Reason
	}
	return e
}

// ruling is the word of an answer about something unclear: "done", "repeat", "fail", "leave"; and "yes" or "no".
func ruling(value pregel.Value) string {
	var word string
	if json.Unmarshal(value, &word) == nil {
		return word
	}
	var yes bool
	if json.Unmarshal(value, &yes) == nil {
		return map[bool]string{true: "yes", false: "no"}[yes]
	}
	var object struct {
		Action string `json:"action"`
	}
	_ = json.Unmarshal(value, &object) // another shape has no word
	return object.Action
}

// EntryAsked: a question asks for the approval of an action.
func EntryAsked(question string, a approval.Action) approval.Entry {
	return approval.Entry{Kind: approval.KindAsked, Question: question, ParamsHash: a.ParamsHash, Reason: a.Summary}
}

// entryWithdrawn: a question is not asked any more. Hash is that of the parameters it was about.
func entryWithdrawn(question, hash, why string) approval.Entry {
	return approval.Entry{Kind: approval.KindWithdrawn, Question: question, ParamsHash: hash, Reason: why}
}

// Why questions are withdrawn.
const (
	NotAsked     = "it is not asked any more"
	CancelledRun = "the run was cancelled"
)

// entryViewed: somebody says to have looked at a question.
func entryViewed(question, by string) approval.Entry {
	return approval.Entry{Kind: approval.KindViewed, Question: question, Claimed: by}
}

// entryWarned: nobody has decided, and the time will be over at due.
func entryWarned(question string, a approval.Action, due time.Time) approval.Entry {
	return approval.Entry{Kind: approval.KindWarned, Question: question, ParamsHash: a.ParamsHash,
		Reason: "nobody has decided, and the time is over at " + due.UTC().Format(time.RFC3339)}
}

// inTime is why silence counts.
const inTime = "nobody decided in time"

// entryEscalated: the time is over, and others are asked.
func entryEscalated(question string, a approval.Action) approval.Entry {
	return approval.Entry{Kind: approval.KindEscalated, Question: question, ParamsHash: a.ParamsHash, Reason: inTime}
}

// entryMissed: the time is over, the run is paused, and the question stays open.
func entryMissed(question string, a approval.Action) approval.Entry {
	return approval.Entry{Kind: approval.KindExpired, Question: question, ParamsHash: a.ParamsHash,
		Reason: inTime + ": the run is paused, and the question stays open"}
}

// entryExpired: the time is over, and silence has decided so.
func entryExpired(a approval.Action, d approval.Decision) approval.Entry {
	return approval.Entry{Kind: approval.KindExpired, Question: d.Question, ParamsHash: a.ParamsHash, Verdict: d.Verdict, Reason: d.Reason}
}

// entryUnanswered: the deadline of a question that asks for no approval is over, and nobody has answered.
func entryUnanswered(q pregel.Question) approval.Entry {
	reason := "nobody has answered in time, which its node is told"
	if q.Default != nil {
		reason = "nobody has answered in time, and its default counts"
	}
	return approval.Entry{Kind: approval.KindExpired, Question: q.ID, Reason: reason}
}

// Silence is who pauses a run because nobody decided on a question in time, and why.
func Silence(question string) (by, reason string) {
	return "superstep", fmt.Sprintf("nobody decided on the approval %s in time", question)
}

// entryVoted: a reply counts; decided says that it was the one that decided.
func entryVoted(question string, a approval.Action, v approval.Vote, decided bool) approval.Entry {
	e := approval.Entry{Kind: approval.KindVoted, Question: question, Who: v.By, Verdict: v.Verdict, ParamsHash: a.ParamsHash,
		Token: v.Token, KeyID: v.KeyID, Reason: v.Reason, Policy: v.Policy}
	if decided {
		e.Kind = approval.KindAnswered
	}
	return e
}

// EntryRefused: a reply does not count. Question is "" when nobody asks it.
func EntryRefused(question string, r approval.Ruling) approval.Entry {
	return approval.Entry{Kind: approval.KindRefused, Question: question, Who: r.By, Code: r.Code, Reason: r.Reason,
		Token: r.Token, KeyID: r.KeyID, Policy: r.Policy}
}

// entryUndone: a write is not there any more, for what the evidence says.
func entryUndone(c taskrun.Compensation, state ledger.State, evidence string) approval.Entry {
	e := about(approval.KindUndone, c, evidence)
	e.State = string(state)
	return e
}

// entryLeft: a write stays as it is.
func entryLeft(c taskrun.Compensation, reason string) approval.Entry {
	return about(approval.KindLeft, c, reason)
}

// entryUnclear: nobody could take a write back, so a person is asked.
func entryUnclear(c taskrun.Compensation, question, reason string) approval.Entry {
	e := about(approval.KindUnclear, c, reason)
	e.Question = question
	return e
}

// about is an entry about a write that is to be taken back.
func about(kind approval.Kind, c taskrun.Compensation, reason string) approval.Entry {
	return approval.Entry{Kind: kind, Node: c.Node, Effect: c.Effect.Name, EffectKey: c.Effect.Key, Reason: reason}
}
