package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"superstep.dev"
	"superstep.dev/approval"
)

// replyFlags are the flags of approve, reject and edit.
type replyFlags struct {
	reason, params, by, token, key, id string
}

func (a *app) approveCommand() *cobra.Command {
	return a.replyCommand(approval.VerdictApprove, "approve", "Approve what a run asks to do",
		`It is approved exactly as superstep question shows it, and done once as many have approved as it takes.`,
		`approve r-7 q-41c9 --reason "checked the order"`, `approve r-7 q-41c9 --by ann --key ann.key`)
}

func (a *app) rejectCommand() *cobra.Command {
	return a.replyCommand(approval.VerdictReject, "reject", "Reject what a run asks to do",
		`One rejection decides. What happens then is the graph's to say.`,
		`reject r-7 q-41c9 --reason "wrong order"`)
}

func (a *app) editCommand() *cobra.Command {
	return a.replyCommand(approval.VerdictEdit, "edit", "Propose other parameters for what a run asks to do",
		`Nothing is done yet: the parameters proposed are a new question, with an id of its own, which has to be approved.`,
		`edit r-7 q-41c9 --params '{"order_id":"o-7","amount":20000}'`, `edit r-7 q-41c9 --params @answer.json --reason "one item only"`)
}

func (a *app) replyCommand(verdict approval.Verdict, name, short, about string, example ...string) *cobra.Command {
	var f replyFlags
	cmd := a.build(command{
		use: name + " THREAD [QUESTION]", short: short, group: groupRuns, args: []string{"THREAD", "[QUESTION]"},
		about: about + `

QUESTION is the question's id or the start of it, and can be left out while one question is open. The run's worker
verifies who answers by a token: --token or SUPERSTEP_TOKEN, or one that is made here for --by with a signing key. A
--by that is not who the token is for is refused.`,
		example: example,
		run: func(cmd *cobra.Command, args []string) error {
			return a.reply(cmd.Context(), append(args, "")[:2], verdict, f)
		},
	})
	flags := cmd.Flags()
	flags.SortFlags = false
	if verdict == approval.VerdictEdit {
		flags.StringVar(&f.params, "params", "", "all parameters to go on with, as `JSON`, @FILE, or - for standard input")
	}
	flags.StringVar(&f.reason, "reason", "", "`TEXT` for the record")
	flags.StringVar(&f.by, "by", "", "`NAME` of who answers (default: who the token or the key is for, or else your user name)")
	flags.StringVar(&f.token, "token", "", "`TOKEN` that proves it (SUPERSTEP_TOKEN)")
	flags.StringVar(&f.id, "id", "", "`ID` of this answer, to repeat it safely (default: a new one)")
	flags.StringVar(&f.key, "key", "", "private key `FILE` to make a token with ("+envSigningKey+")")
	return cmd
}

// reply answers an approval. args are the thread and the question.
func (a *app) reply(ctx context.Context, args []string, verdict approval.Verdict, f replyFlags) error {
	if err := checkThread(args[0]); err != nil {
		return err
	}
	if err := checkQuestion(args[1]); err != nil {
		return err
	}
	value, err := a.replyValue(ctx, verdict, f)
	if err != nil {
		return err
	}
	return a.withService(ctx, func(svc service) error {
		v, err := a.openApproval(ctx, svc, args[0], args[1])
		if err != nil {
			return a.repeatedReply(ctx, svc, superstep.ResumeRequest{Thread: args[0], Question: args[1], Value: value,
				By: first(f.by, a.userName()), ID: f.id}, verdict, err)
		}
		if err := noneHidden(f.params, value, v); err != nil {
			return err
		}
		req := superstep.ResumeRequest{Thread: v.Thread, Question: v.ID, Value: value, ID: f.id}
		if req.By, req.Token, err = a.proof(f, v); err != nil {
			return err
		}
		reply, err := svc.Resume(ctx, req)
		if err != nil {
			return err
		}
		return a.showCounted(reply, verdict, req, v.Others)
	})
}

// repeatedReply sends a reply again whose question is not open any more: it may be the very one that was taken. Otherwise
// the error is why the question cannot be answered.
func (a *app) repeatedReply(ctx context.Context, svc service, req superstep.ResumeRequest, verdict approval.Verdict, why error) error {
	if req.ID == "" || !errors.Is(why, superstep.ErrAnswerRefused) {
		return why
	}
	reply, err := svc.Resume(ctx, req)
	if err != nil || !reply.Repeated {
		return why
	}
	return a.showCounted(reply, verdict, req, nil)
}

// replyValue is what is answered, as JSON.
func (a *app) replyValue(ctx context.Context, verdict approval.Verdict, f replyFlags) (json.RawMessage, error) {
	if err := checkReason(f.reason, approval.MaxReason); err != nil {
		return nil, err
	}
	reply := approval.Reply{Verdict: verdict, Reason: f.reason}
	if verdict == approval.VerdictEdit {
		if f.params == "" {
			return nil, usagef("--params is missing: all parameters to go on with, as JSON or @FILE")
		}
		var err error
		if reply.Params, err = (jsonFlag{name: "--params", max: approval.MaxParams}).read(ctx, f.params, a.stdin); err != nil {
			return nil, err
		}
	}
	if err := reply.Check(); err != nil {
		return nil, &usageError{message: err.Error(), err: err}
	}
	return json.Marshal(reply)
}

// openApproval is the approval that is meant; an error says why it cannot be answered.
func (a *app) openApproval(ctx context.Context, svc service, thread, id string) (superstep.QuestionView, error) {
	v, err := svc.Question(ctx, thread, id)
	switch {
	case err != nil:
		return v, err
	case v.Given != nil:
		return v, &superstep.Error{Kind: superstep.ErrAnswerRefused, Graph: v.Graph, Thread: v.Thread, Node: v.Node, Question: v.ID,
			Message: v.ID + ": already answered" + byName(v.Given.By) + " at " + a.moment(v.Given.At),
			Do:      "See what became of it", Command: []string{"audit", v.Thread}}
	case v.Approval == nil:
		return v, usagef("%s asks for no approval; answer it: %s", v.ID,
			a.commandLine("resume", v.Thread, v.ID, "--value", sampleAnswer(v.Schema)))
	}
	return v, nil
}

// noneHidden refuses parameters copied from a screen that hides some of them: *** would be what is proposed.
func noneHidden(given string, value json.RawMessage, v superstep.QuestionView) error {
	if given != "" && len(v.Approval.Secrets) > 0 && strings.Contains(string(value), `"`+approval.Hidden+`"`) {
		return usagef("--params holds %q where the screens hide a value (%s): give the value itself", approval.Hidden, list(v.Approval.Secrets))
	}
	return nil
}

// showCounted says what became of the reply.
func (a *app) showCounted(reply superstep.ResumeReply, verdict approval.Verdict, req superstep.ResumeRequest, others []superstep.Question) error {
	if a.json() {
		return a.writeJSON(reply)
	}
	who, what, node := byName(reply.By), clean(reply.Question), clean(first(reply.Node, "the run"))
	after := nextOf(req.Thread, superstep.StatusRunning, others)
	switch {
	case reply.Repeated:
		a.printf("repeated  %s  it was taken before, under the same id\n", what)
	case verdict == approval.VerdictApprove && reply.Votes < reply.Need:
		a.printf("counted   %s%s, %d of %d\n", what, who, reply.Votes, reply.Need)
		after = []string{"question", req.Thread, reply.Question}
	case verdict == approval.VerdictApprove:
		a.printf("accepted  %s%s; %s continues\n", what, who, node)
	case verdict == approval.VerdictReject:
		a.printf("rejected  %s%s; %s continues without it\n", what, who, node)
	default:
		a.printf("proposed  %s%s; %s asks anew, with these parameters\n", what, who, node)
		after = []string{"question", req.Thread}
	}
	a.next(after)
	return nil
}
