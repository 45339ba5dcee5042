package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"superstep.dev/approval"
	"superstep.dev/cli/screen"
	"superstep.dev/thread"
)

func (a answers) questionCommand() *cobra.Command {
	return a.build(command{
		name: "question",
		run: func(ctx context.Context, args []string) error {
			return call(ctx, a.app, func(svc service) (thread.QuestionView, error) {
				v, err := svc.Question(ctx, args[0], args[1])
				if err == nil && v.Approval != nil && v.Given == nil {
					err = svc.Viewed(ctx, v.Thread, v.ID, a.userName())
				}
				return v, err
			}, a.showQuestion)
		},
	})
}

func (a answers) showQuestion(v thread.QuestionView) {
	if v.Given != nil {
		a.Printf("%s of %s was answered%s at %s\n", screen.Clean(v.ID), screen.Clean(v.Node), screen.By(v.Given.By), a.Moment(v.Given.At))
		a.nextAfterLook(v.Thread, thread.StatusWaiting, v.Others)
		return
	}
	a.Printf("%s\n", screen.Clean(v.Text()))
	a.questionFacts(v).Print("")
	if v.Approval != nil {
		a.showAction(*v.Approval)
	} else if len(v.Schema) > 0 {
		a.showAsked(v.Value)
		a.showAnswer(v.Schema)
	}
	if len(v.Others) > 0 {
		a.Printf("\nalso open\n")
		for _, q := range v.Others {
			a.Printf("  %s\n", screen.QuestionLine(q))
		}
	}
	if v.Approval != nil {
		a.next("approve", v.Thread, v.ID)
		return
	}
	a.next(answerLine(v.Thread, v.Question)...)
}

// questionFacts are the lines of a question that have something to say.
func (a answers) questionFacts(v thread.QuestionView) *screen.Table {
	t := a.Table()
	t.Fact("question", v.ID)
	t.Fact("thread", v.Thread)
	t.Fact("node", v.Graph+" "+v.Node)
	if v.Paused != nil {
		t.Fact("paused", a.pauseFact(*v.Paused))
	}
	if ap := v.Approval; ap != nil {
		t.Fact("action", strings.TrimSpace(ap.Tool+" "+ap.ToolVersion))
		t.Fact("risk", riskFact(ap.Action))
		t.Fact("requester", ap.Requester)
		t.Fact("needs", screen.List(ap.Permissions))
		t.Fact("asked", askedFact(*ap))
		t.Fact("due", a.dueFact(*ap))
		t.Fact("votes", a.votesFact(*ap))
		t.Fact("valid", validFact(ap.Action))
		t.Fact("policy", policyFact(*ap))
		t.Fact("hash", ap.ParamsHash)
	} else if !v.Due.IsZero() {
		t.Fact("due", a.deadlineFact(v.Question))
	}
	return t
}

// showAsked shows what is asked when that is more than a text: an unclear write with its parameters, say.
func (a answers) showAsked(value json.RawMessage) {
	var object map[string]json.RawMessage
	if json.Unmarshal(value, &object) == nil && len(object) > 1 {
		a.Printf("\nabout\n")
		a.Exactly(value)
	}
}

// showAnswer shows the schema of the answers that a question takes, and before it the meaning of each choice.
func (a answers) showAnswer(schema json.RawMessage) {
	if meant := screen.Meanings(schema); len(meant) > 0 {
		a.Printf("\nchoices\n")
		for _, text := range meant {
			a.Printf("  %s\n", screen.Clean(text))
		}
	}
	a.Printf("\nanswer\n")
	a.Exactly(schema)
}

// deadlineFact says until when a question waits, and what follows.
func (a answers) deadlineFact(q thread.Question) string {
	then := "its node is told that nobody has answered"
	if q.Default != nil {
		then = "the answer is " + screen.ValueText(q.Default)
	}
	return fmt.Sprintf("%s, %s; then %s", a.Distance(q.Due), a.Moment(q.Due), then)
}

// riskFact says how much harm the action can do, and whether it can be undone.
func riskFact(action approval.Action) string {
	if action.Undo == "" {
		return string(action.Risk) + "; it cannot be undone"
	}
	return string(action.Risk) + "; to undo it: " + action.Undo
}

// validFact says how long an approval counts, "" for ever.
func validFact(action approval.Action) string {
	if action.ValidFor == 0 {
		return ""
	}
	return fmt.Sprintf("%s from when it is given; then it is asked for anew", time.Duration(action.ValidFor)*time.Millisecond)
}

func askedFact(v thread.ApprovalView) string {
	who := screen.List(v.Asked)
	if len(v.Asked) == 0 {
		who = "whoever the policy allows"
	}
	if v.Escalated {
		who += ", since those before did not answer in time"
	}
	return who
}

func (a answers) dueFact(v thread.ApprovalView) string {
	if v.Due.IsZero() {
		return "never: it waits"
	}
	return fmt.Sprintf("%s, %s; then %s", a.Distance(v.Due), a.Moment(v.Due), silenceText(v))
}

// silenceText says what happens when nobody has answered.
func silenceText(v thread.ApprovalView) string {
	switch {
	case v.Silence == approval.SilenceDefault:
		return "it counts as " + string(v.Default)
	case v.Silence == approval.SilenceEscalate && !v.Escalated:
		return "others are asked: " + screen.List(v.Escalate)
	case v.Silence == approval.SilencePause:
		return "the run is paused, and the question stays"
	default:
		return "it is denied"
	}
}

// votesFact lists the approvals so far, "" for one that takes one approval and has none.
func (a answers) votesFact(v thread.ApprovalView) string {
	if len(v.Votes) == 0 && v.Need <= 1 {
		return ""
	}
	text := fmt.Sprintf("%d of %d", len(v.Votes), v.Need)
	for i, vote := range v.Votes {
		text += map[bool]string{true: ": ", false: "; "}[i == 0]
		text += fmt.Sprintf("%s at %s", vote.By, a.Moment(vote.At))
		if vote.Reason != "" {
			text += fmt.Sprintf(" (%s)", vote.Reason)
		}
	}
	return text
}

// policyFact is the version of the policy that the newest vote was held to.
func policyFact(v thread.ApprovalView) string {
	if len(v.Votes) == 0 {
		return ""
	}
	return v.Votes[len(v.Votes)-1].Policy
}

// showAction shows the parameters exactly, and what is different from what was asked before.
func (a answers) showAction(v thread.ApprovalView) {
	a.Printf("\nparameters\n")
	a.Exactly(v.Params)
	if len(v.Watch) > 0 {
		a.Printf("\nrelies on\n")
		t := a.Table()
		for _, name := range slices.Sorted(maps.Keys(v.Watch)) {
			t.Row(name, v.Watch[name])
		}
		t.Print("  ")
	}
	if v.Before == nil {
		return
	}
	a.Printf("\n%s\n", screen.Clean(beforeText(*v.Before)))
	t := a.Table()
	for _, c := range v.Changes {
		t.Row(cmp.Or(c.Path, "all"), valueOrNone(c.Before), "→ "+valueOrNone(c.Now))
	}
	t.Print("  ")
}

// beforeText says what the question follows from.
func beforeText(b approval.Before) string {
	if b.By != "" {
		return fmt.Sprintf("%s proposed other parameters than question %s had", b.By, b.Question)
	}
	if slices.Equal(b.Changed, []string{"approval"}) {
		return fmt.Sprintf("question %s was about the same, and its approval does not count any more", b.Question)
	}
	return fmt.Sprintf("question %s was about something else; changed: %s", b.Question, screen.List(b.Changed))
}

func valueOrNone(v json.RawMessage) string {
	if v == nil {
		return "none"
	}
	return screen.Cell(v)
}
