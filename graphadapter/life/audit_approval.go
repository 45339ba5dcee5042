package life

import (
	"fmt"
	"time"

	"superstep.dev/approval"
)

// EntryAsked: a question asks for the approval of an action.
func EntryAsked(question string, a approval.Action) approval.Entry {
	return approval.Entry{Kind: approval.KindAsked, Question: question, ParamsHash: a.ParamsHash, Reason: a.Summary}
}

// EntryWithdrawn: a question is not asked any more. Hash is that of the parameters it was about.
func EntryWithdrawn(question, hash, why string) approval.Entry {
	return approval.Entry{Kind: approval.KindWithdrawn, Question: question, ParamsHash: hash, Reason: why}
}

// Why questions are withdrawn.
const (
	NotAsked     = "it is not asked any more"
	CancelledRun = "the run was cancelled"
)

// EntryViewed: somebody says to have looked at a question.
func EntryViewed(question, by string) approval.Entry {
	return approval.Entry{Kind: approval.KindViewed, Question: question, Claimed: by}
}

// EntryWarned: nobody has decided, and the time will be over at due.
func EntryWarned(question string, a approval.Action, due time.Time) approval.Entry {
	return approval.Entry{Kind: approval.KindWarned, Question: question, ParamsHash: a.ParamsHash,
		Reason: "nobody has decided, and the time is over at " + due.UTC().Format(time.RFC3339)}
}

// inTime is why silence counts.
const inTime = "nobody decided in time"

// EntryEscalated: the time is over, and others are asked.
func EntryEscalated(question string, a approval.Action) approval.Entry {
	return approval.Entry{Kind: approval.KindEscalated, Question: question, ParamsHash: a.ParamsHash, Reason: inTime}
}

// EntryMissed: the time is over, the run is paused, and the question stays open.
func EntryMissed(question string, a approval.Action) approval.Entry {
	return approval.Entry{Kind: approval.KindExpired, Question: question, ParamsHash: a.ParamsHash,
		Reason: inTime + ": the run is paused, and the question stays open"}
}

// EntryExpired: the time is over, and silence has decided so.
func EntryExpired(a approval.Action, d approval.Decision) approval.Entry {
	return approval.Entry{Kind: approval.KindExpired, Question: d.Question, ParamsHash: a.ParamsHash, Verdict: d.Verdict, Reason: d.Reason}
}

// Silence is who pauses a run because nobody decided on a question in time, and why.
func Silence(question string) (by, reason string) {
	return "superstep", fmt.Sprintf("nobody decided on the approval %s in time", question)
}

// EntryVoted: a reply counts; decided says that it was the one that decided.
func EntryVoted(question string, a approval.Action, v approval.Vote, decided bool) approval.Entry {
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
