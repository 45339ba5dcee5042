package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

func (a *app) questionCommand() *cobra.Command {
	return a.build(command{
		use: "question THREAD [QUESTION]", short: "Show all that a question asks", group: groupRuns,
		args: []string{"THREAD", "[QUESTION]"},
		about: `For an approval: exactly what would be done, with what, until when, who is asked, what happens when nobody answers, and
what was proposed before. Parameters that are secret show as ***. The audit notes that you have looked. QUESTION is the question's id or the start of it, and
can be left out while one question is open.`,
		example: []string{"question r-7 q-41c9", "question r-7 -o json"},
		run: func(cmd *cobra.Command, args []string) error {
			return a.question(cmd.Context(), append(args, "")[0], append(args, "")[1])
		},
	})
}

func (a *app) question(ctx context.Context, thread, id string) error {
	if err := checkQuestion(id); err != nil {
		return err
	}
	call := func(svc service, ctx context.Context, thread string) (superstep.QuestionView, error) {
		v, err := svc.Question(ctx, thread, id)
		if err == nil {
			err = a.viewed(ctx, svc, v)
		}
		return v, err
	}
	return onThread(a, ctx, thread, call, a.showQuestion)
}

// checkQuestion refuses what cannot be a question's id or the start of one.
func checkQuestion(id string) error {
	if len(id) > maxThreadID || strings.ContainsFunc(id, notPrintable) {
		return usagef("%s cannot be a question's id", quoted(id))
	}
	return nil
}

func (a *app) showQuestion(v superstep.QuestionView) error {
	if v.Given != nil {
		a.printf("%s of %s was answered%s at %s\n", clean(v.ID), clean(v.Node), byName(v.Given.By), a.moment(v.Given.At))
		a.nextAfterLook(v.Thread, superstep.StatusWaiting, v.Others)
		return nil
	}
	a.printf("%s\n", clean(v.Text()))
	if err := a.questionFacts(v).writeTo(a.stdout, ""); err != nil {
		return err
	}
	if v.Approval != nil {
		if err := a.showAction(*v.Approval); err != nil {
			return err
		}
	}
	if len(v.Others) > 0 {
		a.printf("\nalso open\n")
		for _, q := range v.Others {
			a.printf("  %s\n", questionLine(q))
		}
	}
	if v.Approval != nil {
		a.next([]string{"approve", v.Thread, v.ID})
		return nil
	}
	a.next([]string{"resume", v.Thread, v.ID, "--value", sampleAnswer(v.Schema)})
	return nil
}

// byName says by whom, nothing for somebody who gave no name.
func byName(who string) string {
	if who == "" {
		return ""
	}
	return " by " + clean(who)
}

// questionFacts are the lines of a question that have something to say.
func (a *app) questionFacts(v superstep.QuestionView) *table {
	t := newTable()
	fact := func(name, value string) {
		if value != "" {
			t.row(name, value)
		}
	}
	fact("question", v.ID)
	fact("thread", v.Thread)
	fact("node", v.Graph+" "+v.Node)
	if v.Paused != nil {
		fact("paused", a.pauseFact(*v.Paused))
	}
	if ap := v.Approval; ap != nil {
		fact("action", strings.TrimSpace(ap.Tool+" "+ap.ToolVersion))
		fact("risk", riskFact(ap.Action))
		fact("requester", ap.Requester)
		fact("needs", list(ap.Permissions))
		fact("asked", askedFact(*ap))
		fact("due", a.dueFact(*ap))
		fact("votes", a.votesFact(*ap))
		fact("valid", validFact(ap.Action))
		fact("policy", policyFact(*ap))
		fact("hash", ap.ParamsHash)
	}
	return t
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

func askedFact(v superstep.ApprovalView) string {
	who := list(v.Asked)
	if len(v.Asked) == 0 {
		who = "whoever the policy allows"
	}
	if v.Escalated {
		who += ", since those before did not answer in time"
	}
	return who
}

func (a *app) dueFact(v superstep.ApprovalView) string {
	if v.Due.IsZero() {
		return "never: it waits"
	}
	return fmt.Sprintf("%s, %s; then %s", a.distance(v.Due), a.moment(v.Due), silenceText(v))
}

// silenceText says what happens when nobody has answered.
func silenceText(v superstep.ApprovalView) string {
	switch {
	case v.Silence == approval.SilenceDefault:
		return "it counts as " + string(v.Default)
	case v.Silence == approval.SilenceEscalate && !v.Escalated:
		return "others are asked: " + list(v.Escalate)
	case v.Silence == approval.SilencePause:
		return "the run is paused, and the question stays"
	default:
		return "it is denied"
	}
}

// votesFact lists the approvals so far, "" for one that takes one approval and has none.
func (a *app) votesFact(v superstep.ApprovalView) string {
	if len(v.Votes) == 0 && v.Need <= 1 {
		return ""
	}
	text := fmt.Sprintf("%d of %d", len(v.Votes), v.Need)
	for i, vote := range v.Votes {
		text += map[bool]string{true: ": ", false: "; "}[i == 0]
		text += fmt.Sprintf("%s at %s", vote.By, a.moment(vote.At))
		if vote.Reason != "" {
			text += fmt.Sprintf(" (%s)", vote.Reason)
		}
	}
	return text
}

// policyFact is the version of the policy that the newest vote was held to.
func policyFact(v superstep.ApprovalView) string {
	if len(v.Votes) == 0 {
		return ""
	}
	return v.Votes[len(v.Votes)-1].Policy
}

// showAction shows the parameters exactly, and what is different from what was asked before.
func (a *app) showAction(v superstep.ApprovalView) error {
	a.printf("\nparameters\n")
	a.showExactly(v.Params)
	if len(v.Watch) > 0 {
		a.printf("\nrelies on\n")
		t := newTable()
		for _, name := range slices.Sorted(maps.Keys(v.Watch)) {
			t.row(name, v.Watch[name])
		}
		if err := t.writeTo(a.stdout, "  "); err != nil {
			return err
		}
	}
	if v.Before == nil {
		return nil
	}
	a.printf("\n%s\n", clean(beforeText(*v.Before)))
	t := newTable()
	for _, c := range v.Changes {
		t.row(first(c.Path, "all"), valueOrNone(c.Before), "→ "+valueOrNone(c.Now))
	}
	return t.writeTo(a.stdout, "  ")
}

// showExactly shows JSON with a line for each value: nothing is shortened.
func (a *app) showExactly(v json.RawMessage) {
	if len(v) == 0 {
		a.printf("  none\n")
		return
	}
	var indented bytes.Buffer
	if json.Indent(&indented, v, "  ", "  ") != nil {
		a.printf("  %s\n", clean(string(v)))
		return
	}
	for line := range strings.Lines("  " + indented.String()) {
		text := strings.TrimLeft(line, " ")
		a.printf("%s%s\n", line[:len(line)-len(text)], clean(strings.TrimRight(text, "\n")))
	}
}

// beforeText says what the question follows from.
func beforeText(b approval.Before) string {
	if b.By != "" {
		return fmt.Sprintf("%s proposed other parameters than question %s had", b.By, b.Question)
	}
	if slices.Equal(b.Changed, []string{"approval"}) {
		return fmt.Sprintf("question %s was about the same, and its approval does not count any more", b.Question)
	}
	return fmt.Sprintf("question %s was about something else; changed: %s", b.Question, list(b.Changed))
}

func valueOrNone(v json.RawMessage) string {
	if v == nil {
		return "none"
	}
	return cell(v)
}
